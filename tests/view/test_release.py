"""What a visitor leaves behind: nothing."""

import gc
import socket
import time
import weakref

import panel as pn
import pytest
from bokeh.client import pull_session

from dashboards import stencil
from dashboards.fingerprint import FingerprintPage
from dashboards.mechanism import MechanismPage
from dashboards.whitening import WhiteningPage


def is_up(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("make", [FingerprintPage, WhiteningPage, MechanismPage])
def test_a_page_goes_with_its_session(monkeypatch, make):
    monkeypatch.setattr(stencil, "_DRAWN", {})  # the first page draws for all, and must go too
    alive = []

    def app():
        page = make()
        alive.extend([weakref.ref(page), weakref.ref(page.live), weakref.ref(page.state)])
        return page.__panel__()

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = pn.serve(
        {"app": app},
        port=port,
        threaded=True,
        show=False,
        verbose=False,
        check_unused_sessions_milliseconds=100,
        unused_session_lifetime_milliseconds=100,
    )
    try:
        deadline = time.monotonic() + 120
        while not is_up(port):
            assert time.monotonic() < deadline
        for _ in range(2):
            pull_session(url=f"http://localhost:{port}/app").close()
        assert len(alive) == 6
        while any(ref() is not None for ref in alive):
            gc.collect()
            left = [type(ref()).__name__ for ref in alive if ref() is not None]
            assert time.monotonic() < deadline, f"still there: {left}"
    finally:
        server.stop()
