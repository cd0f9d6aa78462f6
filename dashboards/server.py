"""Everything about the server, set up once: resources, safety, sockets, threads."""

from __future__ import annotations

import argparse
import logging
import sys
from functools import lru_cache
from pathlib import Path
from socket import AF_INET, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket
from typing import Any

from leakviz import _stop  # isort: skip  # first: Ctrl-C ends quietly what is still loading

import panel as pn
from bokeh.document import Document
from bokeh.server.views.ws import WebSocketClosedError
from panel.io.application import build_single_handler_application
from panel.io.resources import LOCAL_DIST
from threadpoolctl import threadpool_limits
from tornado.web import RequestHandler

from dashboards.ahead import AHEAD
from dashboards.markup import clean
from dashboards.shelf import Shelf
from leakviz.cli import unusable
from leakviz.errors import InputError

APP = Path(__file__).resolve().parents[1] / "app.py"
PORT = 5006
MESSAGE_BYTES = 4 << 20  # a browser sends no more at once; files come in pieces of 1 MB, see upload.py


@lru_cache(maxsize=1)
def prepare() -> None:
    """Set up the process that serves pages; the first session calls it, the rest find it done."""
    # Sliders wake the server for a few milliseconds at a time: spinning BLAS threads cost more than they give.
    threadpool_limits(limits=1)
    pn.config.sizing_mode = "stretch_width"
    # A tab that closes while an answer is on its way is no news.
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)
    logging.getLogger("asyncio").addFilter(_is_news)
    # For panes that somebody makes without `markup`: names from files never become HTML.
    pn.pane.HTML.param.update(sanitize_html=True, sanitize_hook=clean)


def _is_news(record: logging.LogRecord) -> bool:
    """Tell whether a record is about anything but a message to a browser that has gone."""
    return not (record.exc_info and isinstance(record.exc_info[1], WebSocketClosedError))


def own_styles(document: Document) -> None:
    """Let Panel's style sheets come from this server, also in a session that no page was written for.

    Panel learns where they are when it writes the page. A browser that connects without one (its session was
    given up before the socket came, or the server was started again) would be sent to Panel's CDN.
    """
    document._template_variables["dist_url"] = LOCAL_DIST


def no_delay(context: Any) -> None:
    """Send a session's messages at once, and take no larger ones than `serve` does from its browser.

    Without TCP_NODELAY a third of the messages wait for a delayed acknowledgement. The limit is for
    ``panel serve app.py``, whose own is 20 MB; which pages may connect, it decides itself: its own host's.

    Parameters
    ----------
    context : bokeh.document.document.SessionContext or None
    """
    session = getattr(context, "session", None)
    for connection in getattr(session, "_subscribed_connections", ()):
        line = connection._socket
        line.set_nodelay(True)
        line.settings["websocket_max_message_size"] = MESSAGE_BYTES  # of those that come later
        if line.ws_connection is not None:  # it has not gone already
            line.ws_connection.params.max_message_size = MESSAGE_BYTES


def warm() -> None:
    """Build the first page, and the one that must answer a drop at once, before the first visitor comes."""
    from app import FIRST, PAGES

    for name in (FIRST, "predictions"):
        _, make = PAGES[name]
        make("", Shelf()).__panel__().get_root()


class Home(RequestHandler):
    """Sends a browser that asks for ``/`` to the app, and what its link says along; Bokeh's own drops that."""

    def get(self) -> None:
        """Answer with the address of the app."""
        asked = self.request.query
        self.redirect(f"/app?{asked}" if asked else "/app")


def options(port: int, address: str) -> dict[str, Any]:
    """Return what the server lets in: pages of its own host, messages of a limited size; and where ``/`` leads."""
    return {
        "extra_patterns": [(r"/?", Home)],
        "websocket_origin": [f"{host}:{port}" for host in dict.fromkeys([address, "localhost", "127.0.0.1"])],
        "websocket_max_message_size": MESSAGE_BYTES,
    }


def free_port(port: int, address: str) -> int:
    """Return a port that the app can be served at: the one that is asked for, or any if that is 0.

    Raises
    ------
    leakviz.InputError
        If it cannot be had.
    """
    with socket(AF_INET, SOCK_STREAM) as tried:
        tried.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)  # as the server does
        try:
            tried.bind((address, port))
        except OSError as error:
            raise InputError(
                f"port {port} cannot be had at {address} ({error.strerror}): is the app running already? Give another one; "
                "0 takes any that is free."
            ) from error
        return int(tried.getsockname()[1])


def serve(port: int = PORT, *, address: str = "localhost", show: bool = False, file: str = "") -> None:
    """Serve the app until it is interrupted.

    Parameters
    ----------
    port : int
        0 takes any that is free.
    address : str
        The host name under which browsers reach it; only pages from there may connect.
    show : bool
        Whether to open a browser.
    file : str
        A file of predictions that the app opens in each session, or "".

    Raises
    ------
    leakviz.InputError
        If the port cannot be had.
    """
    port = free_port(port, address)
    prepare()
    warm()
    _stop.loaded()
    print(f"leakviz is at http://{address}:{port}/app (Ctrl-C stops it)", flush=True)
    try:
        pn.serve(
            {"app": build_single_handler_application(str(APP), [file] if file else [])},
            port=port,
            address=address,  # nobody else on the network reaches it
            show=show,
            verbose=False,
            **options(port, address),
            title="leakviz",
        )
    finally:
        AHEAD.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve the app.")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--show", action="store_true", help="open a browser")
    parser.add_argument("--file", default="", help="predictions to open")
    arguments = parser.parse_args()
    if arguments.file and not Path(arguments.file).is_file():
        parser.error(f"there is no file {arguments.file!r}. Check the path and the working directory.")
    try:
        serve(arguments.port, show=arguments.show, file=arguments.file)
    except InputError as error:
        sys.exit(unusable(error))
