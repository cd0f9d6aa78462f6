"""The server's settings: made once, in dashboards/server.py."""

import http.client
import socket
import time

import panel as pn
import pytest
from threadpoolctl import threadpool_info

from dashboards import server


@pytest.fixture(scope="module")
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    running = pn.serve(
        {"app": lambda: pn.pane.HTML("here")}, port=number, threaded=True, show=False, verbose=False,
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


def test_one_thread_and_sanitised_panes():
    server.prepare()
    assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}
    pane = pn.pane.HTML("<b>18</b><script>alert(1)</script>")
    assert pane._transform_object(pane.object)["object"] == "&lt;b&gt;18&lt;/b&gt;"


class Handler:
    delayed = True

    def set_nodelay(self, value):
        self.delayed = not value


def test_messages_leave_at_once(monkeypatch):
    handler = Handler()
    connection = type("Connection", (), {"_socket": handler})()
    session = type("Session", (), {"_subscribed_connections": {connection}})()
    context = type("Context", (), {"session": session})()
    monkeypatch.setattr(pn.state, "_curdoc", None, raising=False)
    server.no_delay(context)
    assert not handler.delayed
