"""Make the picture in README: a screenshot of the real page.

python docs/picture.py
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
PORT = 5093


@contextmanager
def app(port: int = PORT):
    """Serve the app while the block runs; yields its address."""
    server = subprocess.Popen(
        [sys.executable, "-m", "dashboards.server", "--port", str(port)],
        cwd=HERE.parent,
        stdout=subprocess.DEVNULL,
    )
    try:
        with sync_playwright() as p, p.chromium.launch(**chromium()) as browser:
            page = browser.new_page()
            for _ in range(100):
                try:
                    urllib.request.urlopen(f"http://localhost:{port}/app").close()
                    break
                except OSError:
                    page.wait_for_timeout(200)
        yield f"http://localhost:{port}/app"
    finally:
        server.terminate()
        server.wait()


def chromium() -> dict:
    """Return Playwright's launch options for the Chromium of this machine."""
    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
        "/usr/bin/chromium",
    )
    return {"executable_path": found, "args": ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"]}


def main() -> None:
    """Take the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "fingerprint.png")
    out = parser.parse_args().out
    with app() as address, sync_playwright() as p, p.chromium.launch(**chromium()) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 1200})
        page.goto(address)
        page.get_by_text("Sensitivity and specificity at this gate").wait_for()
        page.wait_for_function(
            """() => { const find = (root) => { let n = 0; for (const e of root.querySelectorAll("*")) {
                 if (e.tagName === "CANVAS" && e.width > 300) n += 1
                 if (e.shadowRoot) n += find(e.shadowRoot) } return n }
               return find(document) >= 4 }"""
        )
        page.evaluate("() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")
        page.screenshot(path=out)
    print(out)


if __name__ == "__main__":
    main()
