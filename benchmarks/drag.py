"""From the hand to the pixels: the app's page against the same page written with `pn.bind`.

    python benchmarks/drag.py [--page fingerprint|purity|calibration|whitening|audit|lodo|learn] [--check] [--saved]

Serves ``app.py`` and ``bound.py``, opens both in one Chromium and measures them in turn, so that
noise on the machine hits both alike. The purity and the calibration page show 500,000 simulated rows.

Key press: from the trusted keydown (`event.timeStamp`) to the end of the last rendering step that
changed something outside the slider: a canvas has other pixels (their hash differs), or text or SVG
has changed. Everything is timed by the page's own clock; the cost of hashing comes after the stamp.

Drag: real mouse events, 60 a second, each a stop or more further; counted between the first and the
last move, before the release. `--saved` measures the page as a saved file instead, alone: a key press must
show within 30 ms at p50. `--check` fails when a requirement is not met; they are for an idle machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from first_paint import free_port, start_server
from playwright.sync_api import Browser, sync_playwright

HERE = Path(__file__).resolve().parent
ROWS = "n=500000"
SAE = "sae_logistic,+constant+0.5"
# Of each page: its sliders, the query at which it is measured, and the link to press there, if any.
PAGES = {
    "fingerprint": (("oracle gate", "tau"), "?page=fingerprint", ""),
    "computed": (("alpha", "tau"), "?page=fingerprint&battery=computed", ""),
    "purity": (("delta", "k_min"), f"?page=purity&first=arm:miscalibrated&beside=none&{ROWS}", ""),
    "calibration": (
        ("bins", "threshold from", "threshold to"),
        f"?page=purity&first=arm:miscalibrated&beside=none&{ROWS}",
        "Calibration",
    ),
    "whitening": (("alpha",), "?page=whitening", ""),
    "audit": (("oracle gate", "tau"), "?page=audit", ""),
    "learn": (("alpha",), "?page=learn&step=world", ""),
    "lodo": (("retention threshold", "firing ratio"), f"?page=lodo&case=published&model={SAE}", ""),
}
# ms without a change or a message, after which a step is over; the server draws one figure after the other.
QUIET = {"app": 300, "bound": 1500}

PROBE = r"""(() => {
  const B = window.__drag = {keys: [], moves: [], steps: [], sent: [], heard: [], fresh: 0, blank: 0, last: 0}
  const now = () => performance.now()
  B.arm = () => { Object.assign(B, {keys: [], moves: [], steps: [], sent: [], heard: [], fresh: 0, blank: 0}) }
  const inside = (n, a) => { for (; n; n = n.parentNode ?? n.host) if (n === a) return true; return false }
  const own = (n) => B.widget && inside(n, B.widget)
  // After a rendering step: a message posted in an animation frame arrives when the frame is painted.
  const channel = new MessageChannel(), raf = window.requestAnimationFrame.bind(window)
  let in_frame = false, pending = false, nodes = 0
  window.requestAnimationFrame = (f) => raf((t) => { in_frame = true; try { f(t) } finally { in_frame = false } })
  const post = () => channel.port2.postMessage(0)
  const touch = () => { if (!pending) { pending = true; in_frame ? post() : raf(post) } }
  const drawn = new Set(), hashes = new Map()
  const hash = (c) => {
    if (!c.width || !c.height) return 0
    const d = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer)
    let h = d.length
    for (let i = 0; i < d.length; i++) h = Math.imul(h ^ d[i], 16777619)
    return h
  }
  channel.port1.onmessage = () => {
    const t = now()
    let canvases = 0
    pending = false
    for (const c of drawn) {
      if (!c.isConnected || own(c)) continue
      if (!hashes.has(c) && B.area) B.fresh++
      const h = hash(c)
      if (h !== hashes.get(c)) { hashes.set(c, h); canvases++ }
    }
    if (canvases || nodes) { B.steps.push({t, canvases}); B.last = now() }
    drawn.clear()
    nodes = 0
  }
  const draws = ["fill", "stroke", "fillRect", "clearRect", "strokeRect", "drawImage", "fillText", "strokeText", "putImageData"]
  for (const name of draws) {
    const draw = CanvasRenderingContext2D.prototype[name]
    CanvasRenderingContext2D.prototype[name] = function (...a) { drawn.add(this.canvas); touch(); return draw.apply(this, a) }
  }
  // Text and SVG, in every shadow root; classes, styles and ARIA are not the picture.
  const told = ["x1", "x2", "y1", "y2", "cx", "cy", "r", "d", "x", "y", "width", "height", "points", "transform", "fill"]
  const observer = new MutationObserver((records) => {
    for (const {type, target, oldValue, attributeName} of records) {
      const e = target.nodeType === 1 ? target : target.parentElement ?? target.host
      if (!e?.isConnected || own(e) || ["STYLE", "HEAD", "TITLE"].includes(e.tagName)) continue
      if (type === "attributes" && (!(e instanceof SVGElement) || oldValue === e.getAttribute(attributeName))) continue
      if (type === "characterData" && oldValue === target.data) continue
      const r = e.getBoundingClientRect()
      if (r.width && r.height) { nodes++; touch() }
    }
  })
  const watch = (root) => observer.observe(root, {subtree: true, childList: true, characterData: true,
    characterDataOldValue: true, attributes: true, attributeOldValue: true, attributeFilter: told})
  const attach = Element.prototype.attachShadow
  Element.prototype.attachShadow = function (o) { const root = attach.call(this, o); watch(root); return root }
  watch(document)
  addEventListener("keydown", (e) => B.keys.push(e.timeStamp), true)
  addEventListener("pointermove", (e) => { if (e.buttons) B.moves.push(e.timeStamp) }, true)
  const size = (d) => d.length ?? d.byteLength ?? d.size ?? 0
  window.WebSocket = class extends WebSocket {
    constructor(...a) { super(...a); this.addEventListener("message", (e) => B.heard.push([now(), size(e.data)])) }
    send(d) { B.sent.push([now(), size(d)]); super.send(d) }
  }
  // A frame is blank when the canvases cover less than they did at the start.
  const covered = () => {
    const seen = new Map()
    for (const c of hashes.keys()) {
      if (!c.isConnected) { hashes.delete(c); continue }
      const r = c.getBoundingClientRect()
      seen.set([r.x, r.y, r.width, r.height].map(Math.round).join(), r.width * r.height)
    }
    return [...seen.values()].reduce((a, b) => a + b, 0)
  }
  const frame = () => { if (B.on) { if (covered() < 0.98 * B.area) B.blank++; raf(frame) } }
  B.watch = (on) => { B.on = on; B.area ??= covered(); if (on) raf(frame) }
  const all = function* (root) { for (const e of root.querySelectorAll("*")) { yield e; if (e.shadowRoot) yield* all(e.shadowRoot) } }
  B.seen = (label) => { for (const [e] of B.handles(label)) if (e.getClientRects().length) return true; return false }
  B.handles = function* (label) { // a range input with a label, or the handle of Bokeh's slider, and its widget
    for (const e of all(document)) {
      const root = e.getRootNode()
      if (e.type === "range" && e.getAttribute("aria-label") === label) yield [e, e.closest(".slider")]
      if (e.role === "slider" && root.textContent.includes(label + ":")) yield [e, root.host]
    }
  }
  B.find = (label) => {
    for (const pair of B.handles(label)) [B.handle, B.widget] = pair
    const track = B.handle.closest(".noUi-target") ?? B.handle
    track.scrollIntoView({block: "center"})
    const t = track.getBoundingClientRect(), h = B.handle.getBoundingClientRect(), {value, min, max} = B.handle
    const x = B.handle === track ? t.x + 9 + (value - min) / (max - min) * (t.width - 18) : h.x + h.width / 2
    return {x, y: h.y + h.height / 2, left: t.x, width: t.width}
  }
  const message = () => Math.max(0, ...[B.heard.at(-1), B.sent.at(-1)].map((m) => m?.[0] ?? 0))
  B.settled = (quiet, changed, limit = 20000) => new Promise((done) => {
    const start = now()
    const look = () => {
      if ((!changed || B.steps.length) && !pending && now() - Math.max(start, B.last, changed ? 0 : message()) > quiet) return done(true)
      now() - start > limit ? done(false) : setTimeout(look, 8)
    }
    look()
  })
})()"""


class Page:
    """One of the two pages, open in the browser."""

    def __init__(self, browser: Browser, script: str, url: str, sliders: tuple[str, ...], press: str):
        self.quiet = QUIET[script]
        self.page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
        self.page.set_default_timeout(120_000)
        self.page.add_init_script(PROBE)
        self.page.goto(url)
        self.wait(sliders[0] if not press else "")
        if press:
            self.page.get_by_role("link", name=press).click()
            self.wait(sliders[0])
        self.steps: dict[str, list[tuple[float, float]]] = {slider: [] for slider in sliders}
        self.drags: dict[str, dict[str, float]] = {}
        self.missed = self.fresh = self.blank = 0

    def wait(self, slider: str) -> None:
        """Wait until the page stands: a slider is there, if one is named, and nothing changes any more."""
        self.page.wait_for_function(
            "(slider) => document.querySelector('main *') && globalThis.Bokeh?.documents.length && Bokeh.documents.every((d) => d.is_idle)"
            " && (!slider || __drag.seen(slider))",
            arg=slider,
        )
        self.settle(quiet=5000)

    def settle(self, quiet: int = 0, changed: bool = False) -> bool:
        return self.page.evaluate("([q, c]) => __drag.settled(q, c)", [quiet or self.quiet, changed])

    def measure(self, slider: str, what: Callable[[str], None]) -> None:
        self.page.bring_to_front()
        self.where = self.page.evaluate(
            "(label) => { __drag.watch(true); return __drag.find(label) }", slider
        )
        what(slider)
        self.page.evaluate("__drag.watch(false)")

    def stops(self) -> int:
        """Return how many steps the slider in hand has."""
        return self.page.evaluate(
            "Number(__drag.handle.max ?? __drag.handle.getAttribute('aria-valuemax')) || 36"
        )

    def away_from_the_end(self, slider: str) -> tuple[str, str]:
        """Return the key that has most stops before it, then the other one: no press may find none."""
        up = self.page.evaluate(
            """(label) => {
              __drag.find(label)
              const {value, min, max} = __drag.handle
              return 2 * value < Number(min) + Number(max)
            }""",
            slider,
        )
        return ("ArrowRight", "ArrowLeft") if up else ("ArrowLeft", "ArrowRight")

    def seen(self) -> dict[str, list]:
        """Return what happened since the probe was armed."""
        seen = self.page.evaluate("({...__drag, handle: 0, widget: 0})")
        self.fresh += seen["fresh"]
        self.blank += seen["blank"]
        return seen

    def press(self, slider: str, key: str, times: int, record: bool = True) -> None:
        for _ in range(times):
            self.page.evaluate("() => { __drag.handle.focus({preventScroll: true}); __drag.arm() }")
            self.page.keyboard.press(key)
            changed = self.settle(changed=True)
            seen = self.seen()
            if not changed:
                self.missed += 1
            elif record:
                times = [step["t"] - seen["keys"][0] for step in seen["steps"]]
                self.steps[slider].append((times[0], times[-1]))

    def drag(self, slider: str, seconds: float) -> None:
        mouse, at = self.page.mouse, self.where
        middle, half = at["left"] + at["width"] / 2, at["width"] * 0.35
        stride = at["width"] / min(36, self.stops())
        mouse.move(at["x"], at["y"])
        mouse.down()
        mouse.move(middle, at["y"], steps=4)
        self.settle(quiet=600)
        self.page.evaluate("__drag.arm()")
        x, start, due = middle, time.perf_counter(), 0.0
        while (now := time.perf_counter() - start) < seconds:
            if abs(x + stride - middle) > half:
                stride = -stride
            x += stride
            mouse.move(x, at["y"])
            due = max(due + 1 / 60, now)
            time.sleep(max(0.0, start + due - time.perf_counter()))
        self.settle(quiet=2000, changed=True)
        seen = self.seen()
        mouse.up()
        self.settle(quiet=600)
        first, last = seen["moves"][0], seen["moves"][-1]
        canvas = [s for s in seen["steps"] if first < s["t"] <= last]
        frames = {way: [n for t, n in seen[way] if t >= first] for way in ("sent", "heard")}
        self.drags[slider] = {
            "moves": len(seen["moves"]),
            "updates": len(canvas),
            "share": len(canvas) / len(seen["moves"]),
            "per second": len(canvas) / (last - first) * 1000,
            "settle": max(0.0, seen["steps"][-1]["t"] - last),
            **{way: len(sizes) for way, sizes in frames.items()},
            "bytes": sum(map(sum, frames.values())),
            "new": seen["fresh"],
            "blank": seen["blank"],
        }


def saved(page: str, folder: Path) -> str:
    """Save a page as a file; return its address."""
    sys.path.insert(0, str(HERE.parent))
    from app import PAGES as MADE
    from dashboards.page_file import page_file

    query = PAGES[page][1]
    asked, _, state = query.removeprefix("?page=").partition("&")
    name, state = (page, "") if page in MADE and asked != page else (asked, state)
    file = folder / f"{page}.html"
    file.write_text(page_file(name, MADE[name][1], state, title=page).html, encoding="utf-8")
    return file.as_uri()


def report_saved(page: Page) -> list[str]:
    """Print what was measured of a saved page; return which requirements are not met."""
    failures = []
    for slider, steps in page.steps.items():
        first, done = np.array(steps).T
        p50, p95 = np.percentile(done, [50, 95])
        d = page.drags[slider]
        print(
            f"{slider:20} key press to pixels p50 {p50:5.1f} ms, p95 {p95:5.1f}, first change {np.median(first):5.1f} (n {len(done)})"
            f" | drag: {d['moves']} moves, {d['updates']} updates ({d['share']:.0%}, {d['per second']:.1f}/s), new canvases"
            f" {d['new']}, blank frames {d['blank']}"
        )
        if p50 > 30:
            failures.append(f"{slider}: p50 {p50:.1f} ms, above 30")
        if d["share"] < 0.8:
            failures.append(f"{slider}: {d['share']:.0%} of the moves seen, not 80 %")
    if page.fresh or page.blank or page.missed:
        failures.append(f"{page.fresh} new canvases, {page.blank} blank frames, {page.missed} steps unseen")
    return failures


def report(app: Page, bound: Page) -> list[str]:
    """Print what was measured; return which requirements are not met."""
    failures = []

    def require(met: bool, what: str) -> None:
        if not met:
            failures.append(what)

    print(f"{'':14}{'key press to pixels, ms':>26}{'':8}{'drag':>8}")
    for slider in app.steps:
        p50, p95 = {}, {}
        for name, page in (("app", app), ("bound", bound)):
            first, done = np.array(page.steps[slider]).T
            p50[name], p95[name] = np.percentile(done, [50, 95])
            d = page.drags[slider]
            print(
                f"{slider:12} {name:6} p50 {p50[name]:6.1f}  p95 {p95[name]:6.1f}, first change {np.median(first):6.1f} (n {len(done)})"
                f" | {d['moves']} moves, {d['updates']} updates ({d['share']:.0%}, {d['per second']:.1f}/s), settled after"
                f" {d['settle']:.0f} ms | websocket: {d['sent']} out, {d['heard']} in, {d['bytes'] / 1e3:.1f} kB"
                f" | new canvases {d['new']}, blank frames {d['blank']}"
            )
        ratio = p50["bound"] / p50["app"]
        print(f"{slider:12} ratio  p50 {ratio:6.1f}  p95 {p95['bound'] / p95['app']:6.1f}")
        require(ratio >= 10, f"{slider}: {ratio:.1f} times faster, not 10")
        require(p50["app"] <= 40, f"{slider}: p50 {p50['app']:.1f} ms, above 40")
        require(p95["app"] <= 70, f"{slider}: p95 {p95['app']:.1f} ms, above 70")
        dragged = app.drags[slider]
        require(dragged["share"] >= 0.8, f"{slider}: {dragged['share']:.0%} of the moves seen, not 80 %")
        require(dragged["sent"] + dragged["heard"] == 0, f"{slider}: websocket frames before the release")
    for name, page in (("app", app), ("bound", bound)):
        print(
            f"{name}: in all {page.fresh} new canvases, {page.blank} blank frames, {page.missed} steps unseen"
        )
    require(app.fresh == app.blank == app.missed == 0, "new canvases, blank frames or unseen steps")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--page", choices=list(PAGES), default="fingerprint")
    parser.add_argument("--check", action="store_true", help="fail when a requirement is not met")
    parser.add_argument("--saved", action="store_true", help="measure the page as a saved file, alone")
    parser.add_argument("--steps", type=int, default=40, help="key presses per slider and page, in tens")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a drag")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    sliders, query, press = PAGES[args.page]
    servers = []
    folder = TemporaryDirectory()
    try:
        urls = {"app": saved(args.page, Path(folder.name))} if args.saved else {}
        for script in () if args.saved else (HERE.parent / "app.py", HERE / "bound.py"):
            port = free_port()
            servers.append(start_server(port, script))
            asked = query if script.stem == "app" else f"?page={args.page}&{query.partition('&')[2]}"
            urls["app" if script.stem == "app" else "bound"] = f"http://localhost:{port}/{script.stem}{asked}"
        load = os.getloadavg()[0]
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=args.chromium, args=["--no-sandbox", "--disable-gpu"])
            pages = [
                Page(browser, script, url, sliders, press if script == "app" and not args.saved else "")
                for script, url in urls.items()
            ]
            for slider in sliders:
                keys = pages[0].away_from_the_end(slider)
                for page in pages:
                    page.measure(slider, partial(page.press, key=keys[0], times=3, record=False))
                times = (
                    10 if pages[0].stops() > 13 else 8
                )  # after the first three, there is no end before them
                for block in range(args.steps // 10):
                    key = keys[block % 2]
                    for page in pages:
                        page.measure(slider, partial(page.press, key=key, times=times))
                for page in pages:
                    page.measure(slider, partial(page.drag, seconds=args.seconds))
            browser.close()
    finally:
        for server in servers:
            server.terminate()
            server.wait()
        folder.cleanup()
    failures = report_saved(*pages) if args.saved else report(*pages)
    print(f"load {load:.2f} before, {os.getloadavg()[0]:.2f} after, {os.cpu_count()} cores")
    for failure in failures:
        print(f"not met: {failure}")
    return int(args.check and bool(failures))


if __name__ == "__main__":
    sys.exit(main())
