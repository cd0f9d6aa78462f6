"""How long until the page is seen, against an empty page of the same template, in one run.

    python benchmarks/first_paint.py

The server is started cold for every pair (a new process; its first session pays every import),
then asked again warm. "Seen" is the first frame after which the heading is on the screen (empty
page: the header) and, for the app, the first figure has pixels.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).resolve().parent
EMPTY = """
import panel as pn, sys
sys.path.insert(0, {root!r})
from app import framed
from dashboards import server
from dashboards.shell import Shell
server.prepare()
framed(Shell(pages=[["empty", "Empty"]], page="empty"), pn.Column()).servable(title="empty")
"""
SEEN = """(wanted) => {
  const find = (root) => { for (const e of root.querySelectorAll("*")) {
    if (wanted === "header" && e.tagName === "HEADER" && e.getBoundingClientRect().height) return true
    if (wanted === "canvas" && e.tagName === "CANVAS" && e.width > 100) {
      const d = e.getContext("2d").getImageData(0, e.height >> 1, e.width, 1).data
      for (let i = 3; i < d.length; i += 4) if (d[i]) return true
    }
    if (e.shadowRoot && find(e.shadowRoot)) return true } return false }
  return find(document)
}"""


def seen(browser: Browser, url: str, wanted: str) -> float:
    page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
    start = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.wait_for_function(SEEN, arg=wanted, polling="raf", timeout=60_000)
    took = time.perf_counter() - start
    page.context.close()
    return took


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


def start_server(port: int, script: Path) -> subprocess.Popen:
    command = [
        sys.executable,
        "-m",
        "panel",
        "serve",
        str(script),
        "--port",
        str(port),
        "--log-level",
        "critical",
    ]
    process = subprocess.Popen(command)
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://localhost:{port}/static/js/bokeh.min.js").close()
            return process
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server did not start")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    empty = HERE / "empty.tmp"
    root = HERE.parent
    script = empty.with_suffix(".tmp.py")
    script.write_text(EMPTY.format(root=str(root)))
    port = free_port()
    times: dict[str, list[float]] = {k: [] for k in ("empty cold", "app cold", "empty warm", "app warm")}
    try:
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=args.chromium, args=["--no-sandbox", "--disable-gpu"])
            for r in range(args.rounds):
                pages = [("empty", script, "header"), ("app", root / "app.py", "canvas")]
                for name, path, wanted in pages if r % 2 else reversed(pages):
                    server = start_server(port, path)
                    try:
                        url = f"http://localhost:{port}/{path.stem}"
                        times[f"{name} cold"].append(seen(browser, url, wanted))
                        times[f"{name} warm"].append(seen(browser, url, wanted))
                    finally:
                        server.terminate()
                        server.wait()
            browser.close()
    finally:
        script.unlink()
    for kind, values in times.items():
        print(f"{kind:12s} median {statistics.median(values):.2f} s of {len(values)}")
    for kind in ("cold", "warm"):
        ratio = statistics.median(times[f"app {kind}"]) / statistics.median(times[f"empty {kind}"])
        print(f"app / empty, {kind}: {ratio:.2f}")


if __name__ == "__main__":
    main()
