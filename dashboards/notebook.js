// A page in a notebook cell follows the theme of what it stands on. See notebook.py.

// What notebooks say of themselves; where one says nothing, what is painted behind the page.
function ground(el) {
  const {jpThemeLight, vscodeThemeKind} = document.body.dataset
  if (jpThemeLight !== undefined) return jpThemeLight === "false" ? "dark" : "light"
  if (vscodeThemeKind !== undefined) return vscodeThemeKind.endsWith("light") ? "light" : "dark"
  for (let e = el.parentNode; e; e = e.parentNode ?? e.host) {
    if (!(e instanceof Element)) continue
    const [r, g, b, alpha = 1] = getComputedStyle(e).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0]
    if (alpha > 0.5) return 0.299 * r + 0.587 * g + 0.114 * b < 128 ? "dark" : "light"
  }
  return "" // nobody paints: the page keeps its own white
}

// Marks in a colour of the page follow it; Bokeh's axes read it from CSS and need a repaint.
function paint(doc, el, repaint) {
  const style = getComputedStyle(el)
  for (const model of doc.all_models) {
    for (const tag of model.tags ?? []) {
      if (typeof tag !== "string" || !tag.startsWith("theme:")) continue
      const [, color, property] = tag.split(":")
      const value = style.getPropertyValue(`--lv-${color}`).trim()
      if (value) model.setv({[property]: value}, {sync: false})
    }
    if (repaint && model.type === "Figure") model.change.emit()
  }
}

// What only the browser shows (a slider's way, a colour of the theme) is marked as not to be told. A server's session
// heeds that; Panel's line to a kernel tells all, for every step of the hand.
function keep_quiet() { // once per window
  const line = globalThis.Bokeh?.Models?.get("panel.models.comm_manager.CommManager")?.prototype
  if (!line?._document_changed || line._document_changed.quiet) return
  const tell = line._document_changed
  line._document_changed = function (event) { if (event.sync !== false) tell.call(this, event) }
  line._document_changed.quiet = true
}

export function render({view}) {
  keep_quiet()
  const el = view.root.el, doc = view.root.model.document
  const look = () => {
    const now = ground(el)
    if (now === (el.dataset.theme ?? "")) return
    if (now) el.dataset.theme = now
    else delete el.dataset.theme
    paint(doc, el, true)
  }
  look()
  // The style sheets of another theme may come a moment after its name.
  const watch = new MutationObserver(() => { look(); setTimeout(look, 300) })
  for (const node of [document.documentElement, document.body]) watch.observe(node, {attributes: true})
  let frame = 0
  doc.on_change(() => { // what is built later
    if (el.dataset.theme !== "dark") return
    cancelAnimationFrame(frame)
    frame = requestAnimationFrame(() => paint(doc, el, false))
  })
}
