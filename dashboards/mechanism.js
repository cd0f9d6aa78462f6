// The hand on the world: the switch, the sliders, the centres in the plane. See mechanism.py.
//
// What is an answer table moves without the server (live.js). The rest asks it, by its own clock: one
// request is under way, and of what the hand asks for meanwhile the latest is asked next.

const make = (tag, attrs = {}, ...children) => {
  const node = document.createElement(tag)
  for (const [k, v] of Object.entries(attrs)) v === false || v == null || node.setAttribute(k, v === true ? "" : v)
  node.append(...children.filter((child) => child != null))
  return node
}

const plain = (map) => Object.fromEntries(map instanceof Map ? map : Object.entries(map))
const LONG = 420 // ms, from one fit to the other
const NEAR = 22 // px, how far from a centre a finger takes it

export function render({model, view, el}) {
  const data = view.model.data
  const {id, controls} = JSON.parse(data.wiring)
  const table = () => globalThis.__leakviz_live?.tables.find((t) => t.id === id && t.document === view.model.document)

  // ---- asking, one at a time
  let sent = data.answered, flying = false, waiting = null, giving_up = 0
  let moving = false // from where the hand begins until it rests and that is answered
  const send = () => {
    if (flying || !waiting) return
    flying = true
    giving_up = setTimeout(landed, 10_000) // whatever became of it, the hand is not held for ever
    const {change, rest} = waiting
    waiting = null
    model.send_msg({n: ++sent, change, rest})
    moving = !rest
  }
  const landed = () => {
    clearTimeout(giving_up)
    flying = false
    requestAnimationFrame(send) // what came is painted first
  }
  const ask = (change, rest = false) => {
    waiting = {change: {...waiting?.change, ...change}, rest}
    moving = true
    send()
  }
  data.properties.answered.change.connect(() => { if (data.answered >= sent) landed() })

  // ---- the switch
  let turn = 0, goal = null // where it is turning to
  const flip = (on) => {
    const t = table()
    if (!t) return
    const last = t.values.share.length - 1, to = on ? last : 0, from = t.state.share
    const mine = ++turn, begun = performance.now()
    const long = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : LONG * Math.abs(to - from) / last
    goal = on
    show_switch(on)
    const step = () => {
      if (mine !== turn) return
      const way = long ? Math.min(1, (performance.now() - begun) / long) : 1
      t.move({share: Math.round(from + (to - from) * way)})
      if (way < 1) { requestAnimationFrame(step); return }
      goal = null
      show_switch(on)
      t.release()
    }
    step()
  }
  const knob = make("button", {type: "button", role: "switch", class: "switch", "aria-checked": "false", "aria-describedby": "switch-help"},
    make("span", {class: "track"}), make("span", {class: "name"}, "the class is in the fit set"))
  const show_switch = (on) => knob.setAttribute("aria-checked", String(Boolean(on)))
  knob.addEventListener("click", () => flip(knob.getAttribute("aria-checked") !== "true"))

  // ---- the sliders and menus
  const parts = new Map()
  const value_of = ({stops, min, step}, at) => stops ? stops[at] : Math.round((min + at * step) * 1e6) / 1e6
  const at_of = ({stops, min, step}, value) => stops ? stops.indexOf(value) : Math.round((value - min) / step)
  const says = ({unit}, value) => `${value.toLocaleString("en")}${unit}`

  const menu = (c) => {
    const select = make("select", {id: c.name, "aria-describedby": `${c.name}-help`}, ...c.options.map(([value, text]) => make("option", {value}, text)))
    select.addEventListener("input", () => ask({[c.name]: c.whole ? Number(select.value) : select.value}, true))
    parts.set(c.name, {c, select})
    return make("div", {class: "control menu", "data-name": c.name}, make("label", {for: c.name}, c.label), select, make("p", {id: `${c.name}-help`}, c.help))
  }

  const slider = (c) => {
    const last = c.stops ? c.stops.length - 1 : Math.round((c.max - c.min) / c.step)
    const output = make("output", {for: c.name})
    const input = make("input", {id: c.name, type: "range", min: 0, max: last, step: 1, "aria-label": c.label, "aria-describedby": `${c.name}-help`})
    const tell = () => {
      const text = says(c, value_of(c, Number(input.value)))
      output.textContent = text
      input.setAttribute("aria-valuetext", text)
      input.style.setProperty("--done", `${100 * input.value / last}%`)
    }
    let resting = 0
    input.addEventListener("input", () => {
      clearTimeout(resting)
      tell()
      ask({[c.name]: value_of(c, Number(input.value))})
    })
    input.addEventListener("change", () => { // keys repeat: they rest a little later
      clearTimeout(resting)
      resting = setTimeout(() => ask({[c.name]: value_of(c, Number(input.value))}, true), 250)
    })
    parts.set(c.name, {c, input, tell})
    return make("div", {class: "control", "data-name": c.name}, make("label", {for: c.name}, c.label + " ", output), input, make("p", {id: `${c.name}-help`}, c.help))
  }

  const title = make("h2", {})
  const again = make("button", {type: "button", class: "framed"}, "Reset")
  again.addEventListener("click", () => ask({reset: true}, true))
  const box = make("div", {class: "controls", role: "group", "aria-label": "controls of the world"}, title,
    make("div", {class: "wide top"},
      make("div", {class: "control", "data-name": "in_fit"}, knob, make("p", {id: "switch-help"}, "the leak; default off")),
      make("div", {class: "control", "data-name": "reset"}, again)),
    ...controls.map((c) => c.options ? menu(c) : slider(c)))
  if (data.alone) box.append(make("p", {class: "wide"}, "What is grey needs the app: a saved page has no server to ask."))
  el.replaceChildren(box)

  const show = () => {
    const values = plain(data.values), shown = new Set(data.shown)
    title.textContent = data.title
    title.hidden = !data.title
    for (const node of box.querySelectorAll(".control")) node.hidden = !shown.has(node.dataset.name)
    box.hidden = !shown.size
    if (waiting || flying || moving) return // the hand is ahead of what was said
    for (const {c, select, input, tell} of parts.values()) {
      if (!(c.name in values)) continue
      if (select) select.value = String(values[c.name])
      else if (Number(input.value) !== at_of(c, values[c.name]) || !input.hasAttribute("aria-valuetext")) { input.value = at_of(c, values[c.name]); tell() }
    }
    for (const {input, select} of parts.values()) (input ?? select).disabled = data.alone
    again.disabled = data.alone
  }
  for (const name of ["values", "shown", "title", "alone"]) data.properties[name].change.connect(show)
  data.properties.answered.change.connect(show)
  show()

  // ---- the centres in the plane
  const plane = () => {
    const t = table(), figure = [...view.model.document.all_models].find((m) => m.tags?.includes(`${id}/plane:figure`))
    const shown = figure && globalThis.Bokeh?.index.find_one(figure)
    return t && shown?.frame ? {t, shown} : null
  }
  const source = (name) => [...view.model.document.all_models].find((m) => m.tags?.includes(`${id}/${name}:source`))
  const centres = () => ["centre", "ood_centre"].flatMap((name) => {
    const s = source(name)
    const [x, y] = [s.get_column("x"), s.get_column("y")]
    return Array.from(x, (_, i) => ({which: name === "centre" ? i : -1, x: x[i], y: y[i]})).filter((c) => Number.isFinite(c.x))
  })
  const on_screen = ({shown}, {clientX, clientY}) => {
    const {left, top} = shown.el.getBoundingClientRect()
    return [clientX - left, clientY - top]
  }
  const near = (p, event) => {
    if (!data.shown.includes("centres") || data.alone) return null
    const [sx, sy] = on_screen(p, event)
    let best = null
    for (const c of centres()) {
      const away = Math.hypot(p.shown.frame.x_scale.compute(c.x) - sx, p.shown.frame.y_scale.compute(c.y) - sy)
      if (away <= NEAR && (!best || away < best.away)) best = {...c, away}
    }
    return best
  }
  let held = null
  const ring = (x, y) => source("held")?.patch({x: [[0, x]], y: [[0, y]]}, {sync: false})
  const under = (p, event) => {
    const [sx, sy] = on_screen(p, event), {x_range: xs, y_range: ys} = p.shown.frame
    const keep = (v, {start, end}) => Math.round(100 * Math.max(start, Math.min(end, v))) / 100
    return [keep(p.shown.frame.x_scale.invert(sx), xs), keep(p.shown.frame.y_scale.invert(sy), ys)]
  }
  const down = (event) => {
    const p = plane(), c = p && event.button === 0 && near(p, event)
    if (!c) return
    event.preventDefault()
    event.stopPropagation()
    held = {p, which: c.which, target: event.currentTarget}
    event.currentTarget.setPointerCapture(event.pointerId)
    ring(c.x, c.y)
  }
  const drag = (event) => {
    if (!held) {
      const p = plane()
      if (p) event.currentTarget.style.cursor = near(p, event) ? "grab" : ""
      return
    }
    event.stopPropagation()
    const [x, y] = under(held.p, event)
    ring(x, y)
    ask({centre: [held.which, x, y]})
  }
  const up = (event) => {
    if (!held) return
    event.stopPropagation()
    const [x, y] = under(held.p, event)
    ask({centre: [held.which, x, y]}, true)
    ring(-99, -99) // out of sight
    held = null
  }
  const touch = (event) => { // else the finger would scroll
    const p = plane()
    if (p && event.touches.length === 1 && near(p, event.touches[0])) event.preventDefault()
  }
  let gripped = null
  const grip = () => {
    const shown = plane()?.shown.el
    if (!shown || shown === gripped) return
    gripped = shown
    shown.addEventListener("pointerdown", down, true)
    shown.addEventListener("pointermove", drag, true)
    shown.addEventListener("pointerup", up, true)
    shown.addEventListener("pointercancel", up, true)
    shown.addEventListener("touchstart", touch, {passive: false, capture: true})
  }

  // ---- the switch follows the table, wherever that was moved
  const follower = {follow: (t) => { show_switch(goal ?? t.state.share > 0); grip() }}
  model.on("msg:custom", ({flip: to}) => { if (to !== undefined) flip(to) })
  let following = null, looking = 0
  const look = () => {
    const t = table()
    if (t && t !== following) {
      following?.views.delete(follower)
      following = t
      t.views.add(follower)
      follower.follow(t)
    }
    grip()
    if (!t || !gripped) looking = setTimeout(look, 100)
  }
  look()
  model.on("remove", () => {
    clearTimeout(looking)
    clearTimeout(giving_up)
    following?.views.delete(follower)
  })
}
