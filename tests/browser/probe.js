// What the browser tests see of a page: elements in every shadow root, models by their tags.
globalThis.probe = {
  *elements(selector, root = document) {
    yield* root.querySelectorAll(selector)
    for (const e of root.querySelectorAll("*")) if (e.shadowRoot) yield* probe.elements(selector, e.shadowRoot)
  },

  get table() { return globalThis.__leakviz_live?.tables[0] },

  get models() { return [...probe.table.model.document.all_models] },

  // Figures that have come to stand: as many as asked for, each with an area and a canvas.
  ready(count) {
    const documents = globalThis.Bokeh?.documents ?? []
    if (!probe.table || !documents.length || documents.some((d) => !d.is_idle)) return false
    const drawn = [...probe.elements(".bk-Figure")].filter((e) => probe.area(e) > 0)
    return drawn.length === count && drawn.every((e) => [...probe.elements("canvas", e.shadowRoot ?? e)].length > 0)
  },

  area(element) {
    const {width, height} = element.getBoundingClientRect()
    return width * height
  },

  tagged(name) {
    const found = probe.models.filter((m) => (m.tags ?? []).includes(`${probe.table.id}/${name}`))
    if (found.length !== 1) throw new Error(`${found.length} models are tagged ${name}`)
    return found[0]
  },

  column(name, column) { return probe.entries(probe.tagged(`${name}:source`).get_column(column)) },

  entries(column) { return Array.from(column, (v) => v?.shape ? Array.from(v) : v) },

  // What every text shows that follows the hand; where two show different things, both.
  texts() {
    const texts = {}
    for (const node of probe.elements("[data-live-text]")) {
      const variable = node.dataset.liveText.split(" ")[1]
      const other = texts[variable] ?? node.textContent
      texts[variable] = other === node.textContent ? other : `${other} | ${node.textContent}`
    }
    return texts
  },

  // The attributes of every node that follows the hand, by the variable that they show.
  attributes() {
    const seen = {}
    for (const node of probe.elements("[data-live-attrs]")) {
      for (const pair of node.dataset.liveAttrs.split(" ").slice(1)) {
        const [attribute, variable] = pair.split("=")
        seen[variable] = node.getAttribute(attribute)
      }
    }
    return seen
  },

  slider(label) { return [...probe.elements(`input[type=range][aria-label="${label}"]`)][0] },

  // As a hand does: the value of the input, and the event that tells of it.
  slide(label, stop) {
    const input = probe.slider(label)
    input.value = stop
    input.dispatchEvent(new Event("input", {bubbles: true}))
  },

  frames(n = 2) {
    return new Promise((done) => {
      const next = () => n-- ? requestAnimationFrame(next) : done()
      next()
    })
  },

  // Where a point of the figure that holds a tagged model is on the screen, after scrolling there.
  place(name, x, y) {
    const model = probe.tagged(name)
    const figure = probe.models.find((m) => m.type === "Figure" && (m === model || m.references().has(model)))
    const view = Bokeh.index.find_one(figure)
    const box = view.el.getBoundingClientRect()
    if (box.top < 0 || box.bottom > innerHeight) view.el.scrollIntoView({block: "center"})
    const {left, top} = view.el.getBoundingClientRect()
    return {x: left + view.frame.x_scale.compute(x), y: top + view.frame.y_scale.compute(y)}
  },
}
