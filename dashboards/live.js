// The answer table in the browser: see live.py for what it is and how it is made.
//
// Python ships, once, every answer that the sliders' stops can ask for. Here a stop is looked up
// and its row copied into plot sources, model attributes and texts. Nothing is computed and nothing
// is sent to the server on the way to the pixels; the stop at which the hand lets go is sent once.

const ARRAYS = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array, f8: Float64Array}

// blob = uint32 header length, JSON header, then the arrays, each aligned to 8 bytes.
function parse(bytes) {
  const buffer = ArrayBuffer.isView(bytes) ? bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) : bytes
  const length = new DataView(buffer).getUint32(0, true)
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)))
  const array = ([offset, kind, n]) => new ARRAYS[kind](buffer, 4 + length + offset, n)
  for (const v of Object.values(header.variables)) {
    v.index = array(v.index)
    v.rows = array(v.rows)
  }
  return header
}

function* elements(root, selector) { // in every open shadow root too
  yield* root.querySelectorAll(selector)
  for (const e of root.querySelectorAll("*")) if (e.shadowRoot) yield* elements(e.shadowRoot, selector)
}

// Each time that Bokeh paints a plot it asks the page's style for the colour of every line, fill and text, and
// measures all tick labels to see whether the layout still holds. The browser works styles out anew for many of
// these questions: together they cost more than the painting. While a hand moves a slider no style changes, and
// labels only where a range does: each is asked once then, and painted from what is known.
let known = null // in a gesture: element or plot -> question -> answer
let known_end = 0

function ask_once() {
  known ??= new WeakMap()
  clearTimeout(known_end)
  known_end = setTimeout(() => { known = null }, 250)
}

function answer(about, question, ask) {
  let answers = known.get(about)
  if (!answers) known.set(about, answers = new Map())
  if (!answers.has(question)) answers.set(question, ask())
  return answers.get(question)
}

function owner(object, name) { // the prototype that has it
  while (object && !Object.hasOwn(object, name)) object = Object.getPrototypeOf(object)
  return object
}

// Bokeh lays the whole page out whenever its size changes. It may come by between making a plot's view and laying
// that out for the first time: there is nothing to measure then, and it throws. What is new is laid out as soon as it
// is rendered, so until then it is passed over.
function pass_over_new_plots() { // once per window
  const plot = globalThis.Bokeh?.Models?.get("Figure")?.prototype.default_view?.prototype
  for (const name of ["_measure_layout", "_after_layout"]) {
    const own = owner(plot, name), act = own?.[name]
    if (act) own[name] = function () { if (this.layout) act.call(this) }
  }
}

pass_over_new_plots()

let eased = false

function ease(figure) { // once per window, as soon as there is a figure
  const plot = globalThis.Bokeh?.index.find_one(figure)
  const visual = owner(plot?.visuals?.background_fill, "_get_css_value")
  if (!visual) return
  eased = true
  const style = visual._get_css_value
  visual._get_css_value = function (name) {
    return known ? answer(this.obj.el, this.css_prefix + name, () => style.call(this, name)) : style.call(this, name)
  }
  const sized = owner(plot, "base_font_size"), size = sized && Object.getOwnPropertyDescriptor(sized, "base_font_size")
  if (size?.get) {
    Object.defineProperty(sized, "base_font_size", {...size, get() {
      return known ? answer(this.el, "font size", () => size.get.call(this)) : size.get.call(this)
    }})
  }
  const sheet = owner(plot._computed_style, "_update"), write = sheet?._update
  if (write) { // the same text written again makes the browser work out all styles again
    sheet._update = function (css) { if (this.el.textContent !== css) write.call(this, css) }
  }
  const laid = owner(plot, "_invalidate_layout_if_needed"), lay = laid?._invalidate_layout_if_needed
  if (!lay) return
  laid._invalidate_layout_if_needed = function () {
    if (!known || this._needs_layout) return lay.call(this)
    const ends = [this.model.x_range, this.model.y_range].flatMap(({start, end, factors}) => [start, end, ...factors ?? []])
    answer(this, [...ends, this.bbox.width, this.bbox.height].join(), () => { lay.call(this) })
  }
}

class Table { // one per Bokeh model; the sliders of all its views move together
  constructor(model) {
    this.model = model
    this.data = model.data
    this.views = new Set()
    this.gesture = 0
    this.load()
  }

  get document() { return this.model.document }

  load() {
    Object.assign(this, parse(this.data.table), JSON.parse(this.data.wiring))
    // What the hand has moved and not yet told stays; where Python has moved, it goes there.
    const told = this.told()
    this.state = Object.fromEntries(Object.keys(told).map((dim) =>
      [dim, this.agreed?.[dim] === told[dim] ? this.state[dim] : told[dim]]))
    this.agreed = told
    for (const [dim, stops] of Object.entries(this.values)) this.state[dim] = Math.min(this.state[dim], stops.length - 1)
    this.applied = new Map() // target -> number of the row it shows
  }

  told() { // the state that Python and the browser agreed on last
    const s = this.data.state
    return Object.fromEntries(s instanceof Map ? s : Object.entries(s))
  }

  // ---- looking up
  row_number(name, state = this.state) {
    const v = this.variables[name]
    let stop = 0
    v.dims.forEach((dim, i) => { stop = stop * v.shape[i] + this.stop(dim, state) })
    return v.index[stop]
  }

  stop(dim, state) { // where it stands, or what it follows
    const variable = this.follows[dim]
    return variable === undefined ? state[dim] : this.row(variable, this.row_number(variable, state))[0]
  }

  row(name, number) {
    const v = this.variables[name]
    if (v.bits) {
      const start = number * Math.ceil(v.width / 8)
      return Uint8Array.from({length: v.width}, (_, i) => v.rows[start + (i >> 3)] >> (i & 7) & 1)
    }
    const row = v.rows.subarray(number * v.width, (number + 1) * v.width)
    return v.text ? Array.from(row, (code) => this.pool[code]) : row
  }

  product(names) { // of one variable its row; of several, what all of them leave
    const [first, ...others] = names.map((name) => this.row(name, this.row_number(name)))
    return others.length ? Float64Array.from(first, (v, i) => others.reduce((p, row) => p * row[i], v)) : first
  }

  value(name, number) {
    const v = this.row(name, number)[0]
    return this.variables[name].bool ? v !== 0 : v
  }

  nearest(dim, x, by) {
    const values = by ? this.values[dim].map((_, i) => this.value(by, this.row_number(by, {...this.state, [dim]: i}))) : this.values[dim]
    let best = 0
    values.forEach((v, i) => { if (Math.abs(v - x) < Math.abs(values[best] - x)) best = i })
    return best
  }

  // ---- what is on the page (looked for at the start of a gesture, for pages come and go)
  look() {
    const by_tag = new Map()
    for (const m of this.document.all_models) {
      for (const tag of m.tags ?? []) {
        if (typeof tag !== "string" || !tag.startsWith(this.id + "/")) continue
        const name = tag.slice(this.id.length + 1)
        by_tag.has(name) ? by_tag.get(name).push(m) : by_tag.set(name, [m])
      }
    }
    this.by_tag = by_tag
    for (const m of eased ? [] : this.document.all_models) if (m.type === "Figure" && !eased) ease(m)
    this.nodes = []
    for (const node of elements(document, "[data-live-text], [data-live-attrs], [data-live-go], [data-live-flip], [data-live-choose]")) {
      const d = node.dataset
      const add = (kind, spec) => {
        const [id, ...rest] = spec.split(" ")
        if (id === this.id) this.nodes.push({kind, node, rest})
      }
      if (d.liveText) add("text", d.liveText)
      if (d.liveAttrs) add("attrs", d.liveAttrs)
      if (d.liveGo) add("go", d.liveGo)
      if (d.liveFlip) add("flip", d.liveFlip)
      if (d.liveChoose) add("choose", d.liveChoose)
    }
    for (const grip of this.grips) this.hold(grip)
    this.looked = performance.now()
  }

  stale() {
    return !this.by_tag || performance.now() - this.looked > 1500 || this.nodes.some(({node}) => !node.isConnected)
  }

  // ---- moving
  move(stops) {
    let moved = false
    for (const [dim, stop] of Object.entries(stops)) {
      if (!(dim in this.values)) continue
      const s = Math.max(0, Math.min(this.values[dim].length - 1, stop))
      if (s !== this.state[dim]) { this.state[dim] = s; moved = true }
    }
    if (moved) this.show()
    if (moved) for (const t of tables) if (t.leader === this.id && t.document === this.document) t.move(stops)
    return moved
  }

  show(everything = false) {
    if (everything) this.applied.clear()
    ask_once()
    const first = performance.now() - this.gesture > 400
    this.gesture = performance.now()
    if (!this.by_tag || (first && this.stale())) this.look()
    const patches = new Map(), attributes = new Map()
    const changed = (key, variable) => {
      const number = this.row_number(variable)
      if (this.applied.get(key) === number) return -1
      this.applied.set(key, number)
      return number
    }
    for (const [target, column, variable] of this.columns) {
      const factors = [variable].flat()
      const numbers = factors.map((factor) => changed(`${target} ${column} ${factor}`, factor))
      if (numbers.every((number) => number < 0)) continue
      for (const source of this.by_tag.get(target) ?? []) {
        const row = this.product(factors)
        const old = source.get_column(column)
        const all = {start: null, stop: null, step: null}
        const image = old?.length === 1 && old[0]?.shape?.length === 2 && old[0].length === row.length
        if (!image && old?.length !== row.length) continue // the figure shows other data by now
        const patch = patches.get(source) ?? {}
        patch[column] = [[image ? [0, all, all] : all, row]]
        patches.set(source, patch)
      }
    }
    for (const [target, attribute, variable] of this.attributes) {
      const number = changed(`${target} .${attribute}`, variable)
      if (number < 0) continue
      for (const model of this.by_tag.get(target) ?? []) {
        const attrs = attributes.get(model) ?? {}
        attrs[attribute] = this.value(variable, number)
        attributes.set(model, attrs)
      }
    }
    this.busy = true // a grip that we move ourselves is not the hand
    for (const [source, patch] of patches) source.patch(patch, {sync: false})
    for (const [model, attrs] of attributes) model.setv(attrs, {sync: false})
    this.mark()
    this.busy = false
    for (const {kind, node, rest} of this.nodes) {
      if (kind === "text") {
        const text = this.value(rest[0], this.row_number(rest[0]))
        if (node.textContent !== text) node.textContent = text
      } else if (kind === "attrs") {
        for (const pair of rest) {
          const [attribute, variable] = pair.split("=")
          node.setAttribute(attribute, this.value(variable, this.row_number(variable)))
        }
      } else if (kind === "go") {
        node.setAttribute("aria-pressed", String(this.state[rest[0]] === Number(rest[1])))
      } else if (kind === "flip") {
        node.setAttribute("aria-pressed", String(this.state[rest[0]] === 1))
      } else if (kind === "choose") {
        if (node.value !== String(this.state[rest[0]])) node.value = String(this.state[rest[0]])
      }
    }
    for (const view of this.views) view.follow(this)
  }

  release(delay = 0) { // keys repeat: they are told once, when they rest
    clearTimeout(this.timer)
    const tell = () => { this.agreed = {...this.state}; this.data.state = {...this.state} }
    delay ? this.timer = setTimeout(tell, delay) : tell()
  }

  go(stops) {
    if (this.move(stops)) this.release()
  }

  // ---- grips: things in a figure that the hand can move
  hold({kind, target, attribute, dim, by}) {
    if (kind !== "edge") return
    for (const model of this.by_tag.get(target) ?? []) {
      model.__leakviz ??= new Set()
      if (model.__leakviz.has(attribute)) continue
      model.__leakviz.add(attribute)
      model.properties[attribute].change.connect(() => {
        if (this.busy) return
        const stop = this.nearest(dim, model[attribute], by)
        this.move({[dim]: stop})
        this.held = true
      })
      if (model.pan && !model.__leakviz.has("pan")) {
        model.__leakviz.add("pan")
        model.pan.connect((phase) => {
          if ((Array.isArray(phase) ? phase[0] : phase) === "pan:end" && this.held) {
            this.held = false
            this.show(true) // the edge snaps to its stop
            this.release()
          }
        })
      }
    }
  }

  tapped(target, x, y) {
    const stops = {}
    for (const grip of this.grips) {
      if (grip.kind !== "tap" || grip.target !== target) continue
      if (grip.x) stops[grip.x] = this.nearest(grip.x, x)
      if (grip.y) stops[grip.y] = this.nearest(grip.y, y)
    }
    this.go(stops)
  }

  mark() { // what is selected follows too: a point that was left another way can be tapped again
    for (const {kind, target, dim, stops} of this.grips) {
      if (kind !== "select") continue
      const i = stops.indexOf(this.state[dim])
      for (const {selected} of this.by_tag.get(target) ?? []) {
        if (selected.indices[0] !== (i < 0 ? undefined : i)) selected.setv({indices: i < 0 ? [] : [i]}, {sync: false})
      }
    }
  }

  selected(target) {
    if (this.busy) return
    if (this.stale()) this.look()
    const stops = {}, tapped = this.grips.find((grip) => grip.kind === "select" && grip.target === target)
    const among = this.grips.filter((grip) => grip.kind === "select" && grip.figure === tapped?.figure)
    for (const grip of among) {
      // A figure that lost what was selected because another figure's point was: that is no hand on this one.
      if (among.some(({dim, stops}) => dim === grip.dim && stops.includes(this.state[dim]))) stops[grip.dim] ??= 0
      for (const source of this.by_tag.get(grip.target) ?? []) {
        const i = source.selected.indices[0]
        if (i !== undefined) stops[grip.dim] = grip.stops[i]
      }
    }
    this.go(stops)
  }
}

const tables = [] // every Table of this window

function table_of(model) {
  let table = tables.find((t) => t.model === model)
  if (!table) {
    table = new Table(model)
    tables.push(table)
    model.data.properties.table.change.connect(() => { // tables that follow each other are of the same figures
      table.load()
      if (!(performance.now() - table.looked < 400)) table.by_tag = null
      table.show(true)
    })
    model.data.properties.state.change.connect(() => {
      const state = table.told()
      table.agreed = {...state}
      if (Object.keys(state).some((dim) => state[dim] !== table.state[dim])) { table.state = state; table.show() }
    })
  }
  return table
}

const by_id = (id) => tables.filter((t) => t.id === id)

if (!globalThis.__leakviz_live) { // once per window: everything that bubbles up from any shadow root
  globalThis.__leakviz_live = {tables}
  const spec = (event, name) => {
    for (const node of event.composedPath()) {
      const text = node.dataset?.[name]
      if (text) return [node, text.split(" ")]
    }
  }
  document.addEventListener("click", (event) => {
    let hit = spec(event, "liveGo")
    if (hit) for (const t of by_id(hit[1][0])) t.go({[hit[1][1]]: Number(hit[1][2])})
    hit = spec(event, "liveReset")
    if (hit) for (const t of by_id(hit[1][0])) { t.go(t.starts); t.data.resets += 1 }
    hit = spec(event, "liveFlip")
    if (hit) for (const t of by_id(hit[1][0])) t.go({[hit[1][1]]: 1 - t.state[hit[1][1]]})
  })
  document.addEventListener("input", (event) => {
    const hit = spec(event, "liveChoose")
    if (hit) for (const t of by_id(hit[1][0])) t.go({[hit[1][1]]: Number(hit[0].value)})
  })
  document.addEventListener("leakviz:tap", ({detail}) => {
    const [id, target] = detail.tag.split("/")
    for (const t of by_id(id)) if (t.document === detail.document) t.tapped(target, detail.x, detail.y)
  })
  document.addEventListener("leakviz:select", ({detail}) => {
    const [id, target] = detail.tag.split("/")
    for (const t of by_id(id)) if (t.document === detail.document) t.selected(target)
  })
}

class Strip { // the sliders of one view
  constructor(table, el) {
    this.parts = new Map()
    el.replaceChildren()
    const make = (tag, attrs, ...children) => {
      const node = document.createElement(tag)
      for (const [k, v] of Object.entries(attrs)) node.setAttribute(k, v)
      node.append(...children)
      return node
    }
    const strip = make("div", {class: "strip", role: "group", "aria-label": "sliders"})
    table.sliders.forEach(({dim, label, help}, i) => {
      const id = `${table.id}-${i}`
      const output = make("output", {for: id})
      const input = make("input", {id, type: "range", min: 0, step: 1,
        "aria-label": label, "aria-describedby": `${id}-help`})
      let pointer = false
      input.addEventListener("pointerdown", () => { pointer = true })
      input.addEventListener("input", () => table.move({[dim]: Number(input.value)}))
      input.addEventListener("change", () => { table.release(pointer ? 0 : 300); pointer = false })
      const ticks = make("div", {class: "marks", "aria-hidden": "true"})
      strip.append(make("div", {class: "slider"},
        make("label", {for: id}, label + " ", output), input, ticks, make("p", {id: `${id}-help`}, help)))
      this.parts.set(dim, {input, output, ticks})
    })
    this.make = make
    el.append(strip)
    this.follow(table)
  }

  mark(table) { // how many stops there are, and what is marked: another table may have others
    this.sliders = table.sliders
    for (const {dim, marks} of table.sliders) {
      const {input, ticks} = this.parts.get(dim), last = Math.max(1, table.values[dim].length - 1)
      input.max = table.values[dim].length - 1
      ticks.replaceChildren(...marks.map(([stop, what]) => this.make("i", {title: what, style: `left: ${100 * stop / last}%`})))
    }
  }

  follow(table) {
    if (this.sliders !== table.sliders) this.mark(table)
    for (const [dim, {input, output}] of this.parts) {
      const stop = table.state[dim], label = table.labels[dim][stop]
      if (Number(input.value) !== stop) input.value = stop
      if (output.textContent !== label) output.textContent = label
      input.setAttribute("aria-valuetext", label)
      input.style.setProperty("--done", `${100 * stop / Math.max(1, table.values[dim].length - 1)}%`)
    }
  }
}

export function render({model, view, el}) {
  const table = table_of(view.model)
  const strip = new Strip(table, el)
  table.views.add(strip)
  const look = () => requestAnimationFrame(() => { if (table.document) table.look() })
  const grown = (event) => event.events ? event.events.some(grown) : event.attr === "children"
  const follow_growth = (event) => { if (grown(event)) look() }
  table.document.on_change(follow_growth) // figures that come later have grips too
  look()
  const painted = (then) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(then)))
  if (!table.data.seen) painted(() => painted(() => { table.data.seen = true }))
  model.on("remove", () => {
    table.views.delete(strip)
    view.model.document?.remove_on_change(follow_growth)
    if (!table.views.size) tables.splice(tables.indexOf(table), 1)
  })
}
