"""The notebooks run, and what they leave is alive: in a cell, and as plain HTML without kernel or network."""

from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from jupyter_core.utils import ensure_event_loop
from nbclient import NotebookClient
from nbconvert import HTMLExporter

import leakviz
from dashboards import theme

from .conftest import DESKTOP, PHONE, PROBE, ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
STANDING = "probe.table && [...probe.elements('.bk-Figure')].filter((e) => probe.area(e) > 0).length === 4"
PIXELS = "[...probe.elements('canvas')].map((c) => c.toDataURL()).join()"
TOP = "document.querySelector('div[data-theme]')"  # the page, as soon as it has seen what it stands on


@pytest.fixture(scope="module")
def run():
    """Return what runs a notebook, all in one kernel: most of a notebook's time is what it imports.

    In a thread of its own: Playwright's event loop runs in this one.
    """

    def start():
        manager = KernelManager()
        manager.start_kernel(cwd=str(ROOT))
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        return manager, client

    def execute(notebook):
        client = NotebookClient(
            notebook, km=manager, timeout=120, resources={"metadata": {"path": str(ROOT)}}
        )
        client.kc = channels
        client.execute()

    def stop():
        channels.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
        ensure_event_loop().close()

    with ThreadPoolExecutor(max_workers=1) as thread:
        manager, channels = thread.submit(start).result()
        yield lambda notebook: thread.submit(execute, notebook).result()
        thread.submit(stop).result()


@pytest.fixture(scope="module")
def executed():
    return {}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_shows_its_page(path, run, executed):
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "stored without outputs"
    notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))  # of another notebook's names
    run(notebook)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [o for o in outputs if o["output_type"] == "error"] == []
    shown = [o["data"].get("text/html", "") for o in outputs if "data" in o]
    (page,) = [text for text in shown if "live.js" in text or "__leakviz_live" in text]
    assert "data-live-text" in page
    executed[path.stem] = notebook


@pytest.fixture
def plain(browser, run, executed, tmp_path):
    """Return the fingerprint's notebook as nbconvert writes it, opened from disk without a network."""
    if "fingerprint" not in executed:  # this test alone
        executed["fingerprint"] = nbformat.read(ROOT / "notebooks" / "fingerprint.ipynb", as_version=4)
        run(executed["fingerprint"])
    text, _ = HTMLExporter().from_notebook_node(executed["fingerprint"])
    path = tmp_path / "fingerprint.html"
    path.write_text(text, encoding="utf-8")
    context = browser.new_context(offline=True, viewport=DESKTOP)
    context.add_init_script(path=PROBE)
    page, complaints = context.new_page(), []
    page.set_default_timeout(20_000)

    def heard(message):
        # nbconvert's own require.js and MathJax, which the page does not need.
        own = message.location["url"].startswith("https://cdnjs.cloudflare.com/ajax/libs/")
        if message.type in ("error", "warning") and not own:
            complaints.append(message.text)

    page.on("console", heard)
    page.on("pageerror", lambda error: complaints.append(f"page error: {error}"))
    page.goto(path.as_uri())
    page.wait_for_function(STANDING)
    yield page
    context.close()
    assert complaints == []


@pytest.mark.filterwarnings("ignore:Your element with mimetype")  # of Panel's empty outputs
def test_plain_html_is_alive_without_kernel_or_network(plain):
    before = plain.evaluate(PIXELS)
    tau = plain.get_by_role("slider", name="tau", exact=True)
    tau.focus()
    for _ in range(10):
        tau.press("ArrowLeft")
    plain.evaluate("probe.frames(3)")
    score = leakviz.score_battery(leakviz.load_battery("published"), leakviz.Rule(gate=0.95, tau=0.6))
    caught = int(score.correct.sel(regime="leak"))
    assert caught != 18  # it is another answer than at the start
    assert plain.evaluate("probe.texts().leak_count") == f"{caught} of 20"
    assert plain.evaluate(PIXELS) != before

    # In a cell that is narrower than the window nothing is squeezed or cut off, and on a phone neither.
    plain.evaluate("document.querySelector('main').style.maxWidth = '900px'")
    plain.evaluate("probe.frames(3)")
    cell = plain.evaluate(f"{TOP}.clientWidth")
    assert cell < 900 < DESKTOP["width"]
    assert plain.evaluate(f"{TOP}.scrollWidth") <= cell
    widths = plain.evaluate("[...probe.elements('.bk-Figure')].map((e) => e.getBoundingClientRect().width)")
    assert min(widths) > 0.9 * cell  # one below the other
    # The figures, and the marks in them, follow the notebook's theme.
    ink = "probe.models.find((m) => m.tags.includes('theme:ink:line_color')).line_color"
    value = lambda: plain.evaluate(f"({ink}).value ?? {ink}")  # noqa: E731
    color = lambda: plain.evaluate(f"getComputedStyle({TOP}).getPropertyValue('--lv-ink').trim()")  # noqa: E731
    assert (value(), color()) == (theme.LIGHT["ink"],) * 2
    plain.evaluate("document.body.dataset.jpThemeLight = 'false'")
    plain.evaluate("probe.frames(3)")
    assert (value(), color()) == (theme.DARK["ink"],) * 2
    plain.set_viewport_size(PHONE)
    plain.evaluate("probe.frames(3)")
    assert plain.evaluate(f"{TOP}.scrollWidth <= {TOP}.clientWidth")
