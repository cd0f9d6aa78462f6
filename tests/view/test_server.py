"""The server's settings: made once, in dashboards/server.py."""

import http.client
import logging
import runpy
import socket
import sys
import time
from types import SimpleNamespace

import panel as pn
import pytest
from bokeh.client import pull_session
from bokeh.models import ImportedStyleSheet
from panel.io import application
from panel.io.application import build_single_handler_application
from threadpoolctl import threadpool_info
from tornado.websocket import WebSocketClosedError

import app
from dashboards import server
from leakviz.errors import InputError


@pytest.fixture(scope="module")
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    running = pn.serve(
        {"here": lambda: pn.pane.HTML("here"), "app": build_single_handler_application(str(server.APP))},
        port=number, threaded=True, show=False, verbose=False,
        **server.options(number, "localhost"),
    )  # fmt: skip
    yield number
    running.stop()


def handshake(port, origin):
    """Return the status of the answer to a request for a websocket."""
    connection = http.client.HTTPConnection("localhost", port, timeout=20)
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "bGVha3ZpemxlYWt2aXo9PQ==",
        "Origin": origin,
    }
    deadline = time.monotonic() + 20
    while True:
        try:
            connection.request("GET", "/app/ws", headers=headers)
            return connection.getresponse().status
        except ConnectionRefusedError:  # not up yet
            assert time.monotonic() < deadline
        finally:
            connection.close()


def test_a_page_of_another_host_may_not_connect(port):
    assert handshake(port, "http://elsewhere.example") == 403
    assert handshake(port, f"http://localhost:{port}") == 101


def test_a_link_without_the_apps_name_keeps_what_it_says(port):
    connection = http.client.HTTPConnection("localhost", port, timeout=20)
    for asked, to in {
        "/?page=lodo&case=penguins": "/app?page=lodo&case=penguins",
        "/?first=a%26b//evil.example": "/app?first=a%26b//evil.example",
        "/": "/app",
    }.items():
        connection.request("GET", asked)
        answer = connection.getresponse()
        answer.read()
        assert (answer.status, answer.headers["Location"]) == (302, to)
    connection.close()


def test_style_sheets_are_this_servers_also_where_no_page_was_written(port):
    """As for a browser that comes back after a restart, or whose session was given up before its socket came."""
    session = pull_session(url=f"http://localhost:{port}/app", arguments={"page": "embeddings"})
    sheets = {str(sheet.url) for sheet in session.document.select({"type": ImportedStyleSheet})}
    session.close()
    assert any(url.endswith("listpanel.css?v=" + pn.__version__) for url in sheets)
    assert not [url for url in sheets if "//" in url]


def test_a_file_from_the_command_line_is_the_apps_argument(monkeypatch, tmp_path):
    """What the app makes of it, a browser sees in test_generic.py, where ``panel serve`` hands it over."""
    path = tmp_path / "brought.csv"
    path.write_text("p,y\n0.9,1\n0.2,0\n")
    served = {}
    monkeypatch.setattr(pn, "serve", lambda apps, **options: served.update(apps))
    monkeypatch.setattr(application, "build_single_handler_application", lambda script, argv: (script, argv))
    nothing = SimpleNamespace(__panel__=pn.Column)
    monkeypatch.setattr(app, "PAGES", dict.fromkeys(app.PAGES, ("", lambda query, shelf: nothing)))
    monkeypatch.setattr(server.AHEAD, "stop", lambda: None)  # it belongs to the other tests too
    for given, argv in ((["--file", str(path)], [str(path)]), ([], [])):
        monkeypatch.setattr(sys, "argv", ["server", "--port", "0", *given])
        runpy.run_path(server.__file__, run_name="__main__")
        assert served["app"] == (str(server.APP), argv)


def test_a_port_is_free_or_said_to_be_taken(port):
    assert server.free_port(0, "localhost") not in (0, port)
    with pytest.raises(InputError, match=rf"port {port} cannot be had at localhost .*already"):
        server.serve(port)


def test_one_thread_and_sanitised_panes():
    server.prepare()
    assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}
    pane = pn.pane.HTML("<b>18</b><script>alert(1)</script>")
    assert pane._transform_object(pane.object)["object"] == "&lt;b&gt;18&lt;/b&gt;"


class Handler:
    delayed = True

    def __init__(self):
        self.settings = {"websocket_max_message_size": 20 << 20}  # as panel serve has it
        params = type("Params", (), {"max_message_size": 20 << 20})()
        self.ws_connection = type("Socket", (), {"params": params})()

    def set_nodelay(self, value):
        self.delayed = not value


def test_messages_leave_at_once_and_large_ones_do_not_come_in(monkeypatch):
    handler = Handler()
    connection = type("Connection", (), {"_socket": handler})()
    session = type("Session", (), {"_subscribed_connections": {connection}})()
    context = type("Context", (), {"session": session})()
    monkeypatch.setattr(pn.state, "_curdoc", None, raising=False)
    server.no_delay(context)
    assert not handler.delayed
    assert handler.settings["websocket_max_message_size"] == server.MESSAGE_BYTES
    assert handler.ws_connection.params.max_message_size == server.MESSAGE_BYTES
    handler.ws_connection = None
    server.no_delay(context)  # a tab that has gone


def test_a_browser_that_has_gone_is_no_news(caplog):
    server.prepare()
    log = logging.getLogger("asyncio")
    for error in (WebSocketClosedError(), RuntimeError("news")):
        log.error("Task exception was never retrieved", exc_info=error)
    assert [record.exc_info[0] for record in caplog.records] == [RuntimeError]
