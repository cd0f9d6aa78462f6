"""A served app and a real browser; a page that complains or asks another host fails its test."""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).with_name("probe.js")
FIGURES = 4  # on the fingerprint page
DESKTOP = {"width": 1280, "height": 720}
PHONE = {"width": 390, "height": 844}
LEFT = "WARNING: panel.io.document - Failed sending message as connection was closed"
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Every window would build the address bar's menus, two more renderers each.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,Translate,PaintHolding,HttpsUpgrades",
]


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


# Package-wide, not session-wide: Playwright's event loop must be gone before other tests run theirs.


@pytest.fixture(scope="package")
def browser():
    found = [w for w in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if w]
    assert found, "the browser tests need Chromium: make chromium installs it"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found[0], args=SWITCHES)
        yield chromium
        chromium.close()


@contextmanager
def served(command, path, log):
    """Run a server on a free port; afterwards it must not have complained either."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://localhost:{port}/{path}"
    with open(log, "w", encoding="utf-8") as out:
        server = subprocess.Popen(
            [sys.executable, *command, "--port", str(port)],
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:  # the port, not the page: asking for that would build one for nobody
                socket.create_connection(("localhost", port)).close()
                break
            except OSError:
                assert server.poll() is None, f"the server stopped:\n{log.read_text()}"
                assert time.monotonic() < deadline, f"no answer from {url}:\n{log.read_text()}"
                time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait(10)
    # A visitor who leaves while something is on its way is no fault.
    said = log.read_text(encoding="utf-8").replace(LEFT, "")
    assert not any(word in said for word in ("Traceback", "ERROR", "WARNING")), said


@pytest.fixture(scope="package")
def app_url(tmp_path_factory):
    with served(["-m", "dashboards.server"], "app", tmp_path_factory.mktemp("app") / "log.txt") as url:
        yield url


@contextmanager
def visits(browser, app_url):
    """Give a function that opens the app (or another address) and waits until its figures stand."""
    contexts, complaints = [], []

    def watch(page, host):
        def heard(message):
            if message.type in ("error", "warning"):
                complaints.append(f"console {message.type}: {message.text}")

        def asked(request):
            if not request.url.startswith((f"http://{host}/", "data:", "blob:")):
                complaints.append(f"request: {request.url}")

        page.on("console", heard)
        page.on("pageerror", lambda error: complaints.append(f"page error: {error}"))
        page.on("request", asked)
        page.on("response", lambda r: complaints.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
        page.on(
            "websocket", lambda w: None if f"//{host}/" in w.url else complaints.append(f"socket: {w.url}")
        )

    def visit(
        query="", *, url=None, figures=FIGURES, context=None, viewport=DESKTOP, prepare=None, **options
    ):
        address = url or app_url
        if context is None:
            context = browser.new_context(viewport=viewport, **options)
            context.add_init_script(path=PROBE)
            contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        watch(page, address.split("/")[2])
        if prepare is not None:
            prepare(page)
        page.goto(address + query)
        if figures is not None:
            stand(page, figures)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def visit(browser, app_url):
    with visits(browser, app_url) as visit:
        yield visit


@pytest.fixture(scope="package")
def standing(browser, app_url):
    """Return one page for all tests that do not mind what was done to it before, or press Reset."""
    with visits(browser, app_url) as visit:
        yield visit()


@pytest.fixture
def reset(standing):
    """Return the standing page as it is after Reset."""
    return press_reset(standing)


def press_reset(page):
    """Press Reset on the fingerprint page of the published battery, and wait until it is at its start."""
    page.mouse.move(2, 2)
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function(
        """() => ["", "?page=fingerprint&gate=0.95&tau=0.65"].includes(location.search)
          && probe.texts().leak_count === "18 of 20" """
    )
    return page


class Frames:
    """Counts what goes over the page's websockets, either way."""

    def __init__(self, page):
        self.count = 0
        page.on("websocket", self._hear)

    def _hear(self, socket):
        for way in ("framesent", "framereceived"):
            socket.on(way, self._add)

    def _add(self, payload):
        self.count += 1


def drag(page, frames, label, read, shares=(0.6, 0.8, 0.3, 0.1)):
    """Drag a slider; the picture follows, no message is sent, no canvas is made. Return what was read."""
    page.mouse.move(2, 2)
    still = -1
    while still != frames.count:  # what was asked for before is answered
        still = frames.count
        page.wait_for_timeout(400)
    page.evaluate("for (const c of probe.elements('canvas')) c.known = true")
    slider = page.get_by_role("slider", name=label, exact=True)
    slider.scroll_into_view_if_needed()
    track, last = slider.bounding_box(), int(slider.get_attribute("max"))
    now = int(slider.input_value()) / last
    at = lambda share: track["x"] + 9 + share * (track["width"] - 18)  # noqa: E731
    y = track["y"] + track["height"] / 2
    page.mouse.move(at(now), y)
    page.mouse.down()
    page.evaluate("probe.frames(3)")
    before, seen = frames.count, []
    for share in shares:
        page.mouse.move(at(share), y, steps=4)
        page.evaluate("probe.frames(3)")
        seen.append((int(slider.input_value()), page.evaluate(read)))
    during = frames.count
    page.mouse.up()
    assert during == before, f"{during - before} websocket frames during the drag"
    assert page.evaluate("[...probe.elements('canvas')].filter((c) => !c.known).length") == 0, "new canvases"
    return seen


def stand(page, figures=FIGURES):
    """Wait until every figure of a page stands."""
    page.wait_for_function(f"globalThis.probe?.ready({figures})")


def set_theme(page, name):
    button = page.get_by_role("button", name=f"switch to the {name} theme")
    if button.count():
        button.click()
    assert page.evaluate("document.documentElement.dataset.theme") == name


def fits(page):
    """Check at both sizes that nothing is wider than the screen."""
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        page.evaluate("probe.frames(3)")
        wide = page.evaluate(
            "[document.documentElement, document.body].map((e) => [e.scrollWidth, e.clientWidth])"
        )
        assert all(scroll <= client for scroll, client in wide), (size, wide)


def sound(page):
    """Check that the page fits, and that axe-core finds nothing serious in either theme."""
    fits(page)
    for name in ("dark", "light"):
        set_theme(page, name)
        found = Axe().run(page).response["violations"]
        assert [
            f"{name}: {v['id']} ({v['impact']}): " + "; ".join(n["html"][:200] for n in v["nodes"][:5])
            for v in found
            if v["impact"] in ("serious", "critical")
        ] == []
