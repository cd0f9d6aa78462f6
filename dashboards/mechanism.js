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
const WALK = 1500 // ms, once round the quarter of an ellipse, or from one alpha to another
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

  // ---- what moves by itself
  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches
  let walking = 0 // the number of the last walk: another, or a hand, ends it
  const travel = (long, wanted, go) => { // goes on frame by frame as long as it is wanted, from 0 to 1 in so many ms
    const begun = performance.now(), all = still() ? 0 : long
    const step = () => {
      if (!wanted()) return
      const way = all ? Math.min(1, (performance.now() - begun) / all) : 1
      go(way)
      if (way < 1) requestAnimationFrame(step)
    }
    step()
  }

  // ---- the switch
  let turn = 0, goal = null // where it is turning to
  const flip = (on) => {
    const t = table()
    if (!t) return
    const last = t.values.share.length - 1, to = on ? last : 0, from = t.state.share
    const mine = ++turn
    goal = on
    show_switch(on)
    travel(LONG * Math.abs(to - from) / last, () => mine === turn, (way) => {
      t.move({share: Math.round(from + (to - from) * way)})
      if (way < 1) return
      goal = null
      show_switch(on)
      t.release()
    })
  }
  const knob = make("button", {type: "button", role: "switch", class: "switch", "aria-checked": "false", "aria-describedby": "switch-help"},
    make("span", {class: "track"}), make("span", {class: "name"}, "OOD class in the fit set"))
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
      walking += 1 // the hand goes before what was shown to it
      clearTimeout(resting)
      tell()
      ask({[c.name]: value_of(c, Number(input.value))})
    })
    let pointer = false
    input.addEventListener("pointerdown", () => { pointer = true })
    input.addEventListener("change", () => { // keys repeat: they rest later, for what follows takes longer than a step
      clearTimeout(resting)
      resting = setTimeout(() => ask({[c.name]: value_of(c, Number(input.value))}, true), pointer ? 100 : 500)
      pointer = false
    })
    parts.set(c.name, {c, input, tell})
    return make("div", {class: "control", "data-name": c.name}, make("label", {for: c.name}, c.label + " ", output), input, make("p", {id: `${c.name}-help`}, c.help))
  }

  // Goes to a value as a hand would; what is on the way is asked for as for a hand.
  const walk = ([name, to]) => {
    const {c, input, tell} = parts.get(name), from = Number(input.value), goal = at_of(c, to)
    const mine = ++walking
    travel(WALK, () => mine === walking && data.shown.includes(name), (way) => {
      input.value = Math.round(from + (goal - from) * way * way * (3 - 2 * way))
      tell()
      ask({[name]: value_of(c, Number(input.value))}, way === 1)
    })
  }

  // Alpha is in the table: it goes there without the server.
  const glide = (to) => {
    const t = table(), from = t?.state.alpha, mine = ++walking
    travel(WALK, () => t && mine === walking && table() === t, (way) => {
      t.move({alpha: Math.round(from + (to - from) * way)})
      if (way === 1) t.release()
    })
  }

  const again = make("button", {type: "button", class: "framed"}, "Reset")
  again.addEventListener("click", () => ask({reset: true}, true))
  const box = make("div", {class: "controls", role: "group", "aria-label": "controls of the world"},
    make("div", {class: "wide top"},
      make("div", {class: "control", "data-name": "in_fit"}, knob, make("p", {id: "switch-help"}, "the leak; default off")),
      make("div", {class: "control", "data-name": "reset"}, again)),
    ...controls.map((c) => c.options ? menu(c) : slider(c)))
  if (data.alone) box.append(make("p", {class: "wide"}, "What is grey needs the app: a saved page has no server to ask. The switch and alpha are alive."))
  el.replaceChildren(box)

  const show = () => {
    const values = plain(data.values), shown = new Set(data.shown)
    for (const node of box.querySelectorAll(".control")) node.hidden = !shown.has(node.dataset.name)
    box.hidden = !shown.size
    for (const {name, help} of controls) { // a lesson starts where it wants to: no default is its own
      box.querySelector(`#${name}-help`).textContent = shown.has("reset") ? help : help.replace(/;? ?default .*$/, "")
    }
    box.classList.toggle("few", shown.has("in_fit") ? shown.size < 4 : shown.size === 1)
    if (waiting || flying || moving) return // the hand is ahead of what was said
    for (const {c, select, input, tell} of parts.values()) {
      if (!(c.name in values)) continue
      if (select) select.value = String(values[c.name])
      else if (Number(input.value) !== at_of(c, values[c.name]) || !input.hasAttribute("aria-valuetext")) { input.value = at_of(c, values[c.name]); tell() }
    }
    for (const {input, select} of parts.values()) (input ?? select).disabled = data.alone
    again.disabled = data.alone
  }
  for (const name of ["values", "shown", "alone"]) data.properties[name].change.connect(show)
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
    if (!movable()) return null
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
  // By keys: Space chooses a centre, arrows move it, Shift further.
  let chosen = null, keyed = 0
  const heard = make("p", {class: "heard", role: "status"})
  box.append(heard)
  const let_go = () => {
    if (chosen) ring(-99, -99)
    chosen = null
  }
  const press = (event) => {
    const p = plane(), way = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1]}[event.key]
    if (!p || !movable() || event.altKey || event.ctrlKey || event.metaKey) return
    if (event.key === " " || event.key === "Enter") {
      const all = centres()
      chosen = all[(all.findIndex(({which}) => which === chosen?.which) + 1) % all.length]
    } else if (event.key === "Escape" && chosen) {
      let_go()
      return event.stopPropagation()
    } else if (way && chosen) {
      const {x_range, y_range} = p.shown.frame, by = event.shiftKey ? 1 : 0.2
      const keep = (v, {start, end}) => Math.round(10 * Math.max(start, Math.min(end, v))) / 10
      chosen = {...chosen, x: keep(chosen.x + way[0] * by, x_range), y: keep(chosen.y + way[1] * by, y_range)}
      ask({centre: [chosen.which, chosen.x, chosen.y]})
      clearTimeout(keyed)
      keyed = setTimeout(() => ask({}, true), 300)
    } else return
    ring(chosen.x, chosen.y)
    heard.textContent = `${chosen.which < 0 ? "OOD class" : `known class ${chosen.which + 1}`} at ${chosen.x.toFixed(1)}, ${chosen.y.toFixed(1)}`
    event.preventDefault()
    event.stopPropagation()
  }
  const movable = () => data.shown.includes("centres") && !data.alone
  const touch = (event) => { // else the finger would scroll
    const p = plane()
    if (p && event.touches.length === 1 && near(p, event.touches[0])) event.preventDefault()
  }
  let gripped = null
  const grip = () => {
    const shown = plane()?.shown.el
    if (shown && movable() !== shown.hasAttribute("tabindex")) {
      if (movable()) {
        for (const [k, v] of Object.entries({tabindex: 0, role: "application", "aria-label": "the plane: Space chooses a centre, arrow keys move it"})) shown.setAttribute(k, v)
      } else for (const k of ["tabindex", "role", "aria-label"]) shown.removeAttribute(k)
    }
    if (!shown || shown === gripped) return
    gripped = shown
    shown.addEventListener("pointerdown", down, true)
    shown.addEventListener("pointermove", drag, true)
    shown.addEventListener("pointerup", up, true)
    shown.addEventListener("pointercancel", up, true)
    shown.addEventListener("touchstart", touch, {passive: false, capture: true})
    shown.addEventListener("keydown", press)
    shown.addEventListener("blur", let_go)
  }

  // ---- the switch follows the table, wherever that was moved
  const follower = {follow: (t) => { show_switch(goal ?? t.state.share > 0); grip() }}
  model.on("msg:custom", (said) => {
    if (said.flip !== undefined) flip(said.flip)
    if (said.glide !== undefined) glide(said.glide)
    if (said.walk !== undefined) walk(said.walk)
  })
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
    clearTimeout(keyed)
    following?.views.delete(follower)
  })
}
