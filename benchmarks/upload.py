"""From the drop of a file to its verdict and its purity curve on the screen, in a real browser.

    python benchmarks/upload.py [--rows 500000] [--large]

A file of so many rows, once as CSV and once as Parquet, is dropped on the page "Your predictions", as a hand
drops it. The clock is the page's own: it starts with the event `drop` and stops with the frame after which
the sentence on top holds the verdict and the figure shows the curve of these rows. The first drop of a server
pays for what is loaded once in a process, so it is printed apart.

`--large` drops 500 MB of CSV instead and prints what the progress bar said, how long it all took, and how long
another session, which asks something every half second, waited for its answers meanwhile.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from first_paint import free_port
from playwright.sync_api import Browser, Page, sync_playwright

from leakviz.arms import simulate_arms

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

PROBE = r"""
globalThis.drop = {
  *all(selector, root = document) {
    yield* root.querySelectorAll(selector)
    for (const e of root.querySelectorAll("*")) if (e.shadowRoot) yield* drop.all(selector, e.shadowRoot)
  },
  // What a test's input took is dropped on the page.
  drop(file) {
    const carried = new DataTransfer()
    carried.items.add(file)
    drop.started = performance.now()
    for (const type of ["dragover", "drop"]) {
      document.querySelector("main").dispatchEvent(
        new DragEvent(type, {dataTransfer: carried, bubbles: true, cancelable: true}))
    }
  },
  said() { return [...drop.all("h1")].filter((e) => e.getClientRects().length).map((e) => e.textContent).join() },
  ink() { // pixels of the first figure that are drawn
    const figure = [...drop.all(".bk-Figure")].find((e) => e.getClientRects().length)
    if (!figure) return 0
    let ink = 0
    for (const c of drop.all("canvas", figure.shadowRoot ?? figure)) {
      if (!c.width || !c.height) continue
      const {data} = c.getContext("2d").getImageData(0, 0, c.width, c.height)
      for (let i = 3; i < data.length; i += 4) if (data[i]) ink++
    }
    return ink
  },
  last_rank() {
    for (const d of Bokeh.documents) {
      for (const m of d.all_models) {
        if ((m.tags ?? []).some((t) => typeof t === "string" && t.endsWith("/curve_0:source"))) {
          const ranks = m.get_column("rank")
          return ranks[ranks.length - 1]
        }
      }
    }
  },
  until(rows, limit = 600000) {
    const times = {}
    return new Promise((done) => {
      const look = () => {
        const now = performance.now() - drop.started
        if (!times.verdict && /leaky|not shown|undetermined/.test(drop.said())) times.verdict = now
        if (times.verdict && drop.last_rank() === rows && drop.ink() > 2000) {
          return requestAnimationFrame(() => { times.curve = performance.now() - drop.started; done(times) })
        }
        now > limit ? done(times) : requestAnimationFrame(look)
      }
      look()
    })
  },
}
const input = document.createElement("input")
input.type = "file"
input.id = "brought"
addEventListener("DOMContentLoaded", () => { input.style.display = "none"; document.body.append(input) })
"""


def start(port: int) -> subprocess.Popen:
    """Start the server as `make serve` does, and wait for it."""
    server = subprocess.Popen(
        [sys.executable, "-m", "dashboards.server", "--port", str(port)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    server.stdout.readline()  # where it is; from here on it answers
    time.sleep(0.5)
    return server


def open_page(browser: Browser, url: str) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
    page.add_init_script(PROBE)
    page.goto(f"{url}?page=predictions")
    page.get_by_role("heading", name="Bring predicted risks").wait_for()
    page.wait_for_function("Bokeh.documents.every((d) => d.is_idle)")
    page.wait_for_timeout(1500)  # whoever drops a file has looked for it first
    return page


def bring(page: Page, file: Path, rows: int) -> dict[str, float]:
    """Drop a file; return the milliseconds until the verdict and the curve are seen."""
    page.set_input_files("#brought", file)
    return page.evaluate(
        "(rows) => { drop.drop(document.querySelector('#brought').files[0]); return drop.until(rows) }", rows
    )


def simulated(rows: int) -> pd.DataFrame:
    arms = simulate_arms(n=rows, prevalence=0.02, c_statistic=0.84, beta=2.5, flag_fraction=0.003, seed=0)
    return pd.DataFrame({"p": arms["p"].sel(arm="deterministic").values, "y": arms["y"].values})


def measure(browser: Browser, url: str, folder: Path, rows: int, repeats: int) -> None:
    frame = simulated(rows)
    files = [folder / "risks.csv", folder / "risks.parquet"]
    frame.to_csv(files[0], index=False)
    frame.to_parquet(files[1])
    first = True
    for file in files:
        times = []
        for _ in range(repeats + first):
            page = open_page(browser, url)
            took = bring(page, file, rows)
            if first:
                print(f"{file.name}, first of this server: curve after {took['curve']:.0f} ms")
            else:
                times.append(took)
            first = False
            page.context.close()
        verdict, curve = ([t[what] for t in times] for what in ("verdict", "curve"))
        print(
            f"{file.name}, {file.stat().st_size / 1e6:.1f} MB, {rows:,} rows: verdict after {statistics.median(verdict):.0f} ms, "
            f"curve after {statistics.median(curve):.0f} ms (largest {max(curve):.0f}, n {len(curve)}; at most 1500)"
        )


def large_file(folder: Path, size: int) -> tuple[Path, int]:
    """Write a CSV of so many bytes, whole blocks of simulated rows; return it and its rows."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 8, 1_000_000)
    block = pd.DataFrame({"p": p, "y": (rng.random(p.size) < p).astype(int)})
    text = block.to_csv(index=False, header=False).encode()
    blocks = size // len(text) + 1
    file = folder / "large.csv"
    with file.open("wb") as out:
        out.write(b"p,y\n")
        for _ in range(blocks):
            out.write(text)
    return file, blocks * p.size


def measure_large(browser: Browser, url: str, folder: Path) -> None:
    file, rows = large_file(folder, 500_000_000)
    one, other = open_page(browser, url), open_page(browser, url)
    one.set_input_files("#brought", file)
    one.evaluate(
        """(rows) => {
          drop.drop(document.querySelector("#brought").files[0])
          drop.until(rows).then((times) => { drop.times = times })
        }""",
        rows,
    )
    words, waits, begun = [], [], time.perf_counter()
    while one.evaluate("drop.times === undefined"):
        said = one.evaluate("[...drop.all('.words')].map((e) => e.textContent).join()")
        if said and said != (words or [""])[-1]:
            words.append(said)
        begin = time.perf_counter()
        name = f"ping{len(waits)}.csv"
        other.set_input_files("input[type=file]:not(#brought)", {"name": name, "mimeType": "", "buffer": b""})
        other.get_by_role("alert").filter(has_text=name).wait_for()
        waits.append(1000 * (time.perf_counter() - begin))
        time.sleep(0.5)
    times = one.evaluate("drop.times")
    print(
        f"{file.stat().st_size / 1e6:.0f} MB of CSV, {rows:,} rows: curve after {times['curve'] / 1000:.1f} s"
    )
    print(f"progress bar: {len(words)} steps, {words[0]!r} ... {words[len(words) // 2]!r} ... {words[-1]!r}")
    print(
        f"another session's answers meanwhile: median {statistics.median(waits):.0f} ms, largest {max(waits):.0f} ms "
        f"(n {len(waits)}, in {time.perf_counter() - begun:.0f} s)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="500 MB of CSV instead")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    port = free_port()
    server = start(port)
    url = f"http://localhost:{port}/app"
    try:
        with tempfile.TemporaryDirectory() as name, sync_playwright() as p:
            browser = p.chromium.launch(executable_path=args.chromium, args=["--no-sandbox", "--disable-gpu"])
            if args.large:
                measure_large(browser, url, Path(name))
            else:
                measure(browser, url, Path(name), args.rows, args.repeats)
            browser.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
