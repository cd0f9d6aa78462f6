// The lessons: text, a question, the answer, and where one is. See lessons.py for what comes and goes.

const SVG = "http://www.w3.org/2000/svg"

const make = (tag, attrs = {}, ...children) => {
  const node = document.createElement(tag)
  for (const [k, v] of Object.entries(attrs)) v === false || v == null || node.setAttribute(k, v === true ? "" : v)
  node.append(...children.filter((child) => child != null))
  return node
}

const draw = (tag, attrs = {}, text = null) => {
  const node = document.createElementNS(SVG, tag)
  for (const [k, v] of Object.entries(attrs)) v == null || node.setAttribute(k, v)
  if (text != null) node.textContent = text
  return node
}

const two = (value) => value.toFixed(value >= 0.995 && value < 1 ? 3 : 2) // as the page beside it does
const lower = (text) => text[0].toLowerCase() + text.slice(1)
const plain = (map) => Object.fromEntries(map instanceof Map ? map : Object.entries(map))

// What stands on an axis from 0 to 1; x in per cent of its width.
const LEFT = 6, RIGHT = 94
const place = (value) => LEFT + (RIGHT - LEFT) * value

function axis_picture({guess = null, truth = null, small = false}) {
  const height = small ? 26 : 82, y = small ? 13 : 28 // the truth above the axis, the guess below: they never meet
  const svg = draw("svg", {class: small ? "axis small" : "axis", height, "aria-hidden": "true"})
  const at = (value) => `${place(value)}%`
  svg.append(draw("line", {class: "rail", x1: at(0), x2: at(1), y1: y, y2: y}))
  for (const tick of [0, 0.5, 1]) {
    svg.append(draw("line", {class: tick === 0.5 ? "coin" : "tick", x1: at(tick), x2: at(tick), y1: y - 7, y2: y + 7}))
  }
  if (!small) {
    for (const [tick, number, word] of [[0, "0", "upside down"], [0.5, "0.5", "a coin"], [1, "1", "perfect"]]) {
      const anchor = tick === 0 ? "start" : tick === 1 ? "end" : "middle"
      const x = tick === 0 ? "1%" : tick === 1 ? "99%" : at(tick)
      const text = draw("text", {x, y: y + 48, "text-anchor": anchor, class: "word"})
      text.append(number, draw("tspan", {class: "m"}, `  ${word}`))
      svg.append(text)
    }
  }
  if (truth != null) {
    const mark = draw("svg", {x: at(truth), y, overflow: "visible"})
    mark.append(draw("path", {class: "truth", d: "M0-8l7 8-7 8-7-8z"}))
    svg.append(mark)
    if (!small) svg.append(draw("text", {x: at(truth), y: y - 16, class: "truth", "text-anchor": anchor_of(truth)}, two(truth)))
  }
  if (guess != null) {
    svg.append(draw("circle", {class: "guess", cx: at(guess), cy: y, r: small ? 5 : 7}))
    if (!small) svg.append(draw("text", {x: at(guess), y: y + 26, class: "guess", "text-anchor": anchor_of(guess)}, `you: ${two(guess)}`))
  }
  return svg
}

const anchor_of = (value) => value < 0.12 ? "start" : value > 0.88 ? "end" : "middle"

export function render({model, view, el}) {
  const data = view.model.data
  const {lessons, ending, world} = JSON.parse(data.course)
  const last = lessons.length
  let pointing = 0.5 // where the hand is on the axis before it says so

  // Answers are kept for the visit of this tab: a page that is loaded again has them.
  const KEPT = "leakviz-learn-answers"
  const keep = () => {
    try { sessionStorage.setItem(KEPT, JSON.stringify(guesses())) } catch {} // not allowed: for this page alone
  }
  const kept = () => {
    try {
      const found = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}")
      return Object.fromEntries(lessons.filter(({number}) => number in found).map(({number}) => [number, found[number]]))
    } catch { return {} }
  }

  const guesses = () => plain(data.guesses)
  const lesson = () => lessons.find(({number}) => String(number) === data.step)
  const revealed = (number) => String(number) in guesses()
  const order = [...lessons.map(({number}) => String(number)), "end"]

  const bar = make("nav", {class: "bar", "aria-label": "lessons"})
  const body = make("div", {class: "body"})
  const box = make("section", {class: "player", "aria-label": "lesson"}, bar, body)
  el.replaceChildren(box)

  // ---- what the hand does
  const go = (step, focus = true) => {
    if (step === data.step) return
    if (data.alone) location.hash = `step=${step}` // in a file, what the address is in the app
    unknown = ""
    data.step = step // which shows it
    if (focus) begin()
  }
  const begin = () => { // the keyboard goes on where the question is
    box.scrollIntoView({block: "nearest"})
    const first = body.querySelector(".ask [tabindex='0'], .ask button, .go .next, a, button")
    first?.focus({preventScroll: true})
  }
  const neighbour = (way) => data.step === "world" ? null : order[order.indexOf(data.step) + way]
  const looked = new Set() // the further cases that were on the screen
  const look = (stage) => { looked.add(`${data.step}.${stage}`); data.stage = stage }
  const unseen = () => { // which further case comes before the next lesson, or 0
    const here = lesson()
    return here && revealed(here.number) ? 1 + here.also.findIndex((_, i) => !looked.has(`${here.number}.${i + 1}`)) : 0
  }
  const next = () => {
    const stage = unseen(), to = neighbour(1)
    if (stage) {
      look(stage)
      body.querySelector(".next")?.focus({preventScroll: true})
    } else if (to) go(to)
  }
  const back = () => { const to = data.step === "world" ? order.at(-1) : neighbour(-1); if (to) go(to) }
  const answer = (value) => {
    const {number} = lesson()
    if (revealed(number)) return
    data.guesses = {...guesses(), [number]: value}
    keep()
    body.querySelector(".next")?.focus({preventScroll: true})
    show_plane()
  }

  // On a phone the figure is below the answer's text: what the answer moves is brought into sight.
  const show_plane = () => requestAnimationFrame(() => {
    if (!matchMedia("(max-width: 760px)").matches) return
    const plane = [...view.model.document.all_models].find((m) => m.tags?.some((tag) => /\/plane:figure$/.test(tag)))
    const shown = plane && globalThis.Bokeh?.index.find_one(plane)?.el
    if (shown?.getClientRects().length) shown.scrollIntoView({block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"})
  })

  // ---- the steps of a file: its hash
  let unknown = ""
  const opened_at = data.step
  const read_hash = () => {
    const asked = /^#step=(.*)$/.exec(location.hash)?.[1]
    if (asked === undefined && location.hash) return // "About this file"
    const step = asked ?? opened_at
    const known = order.includes(step) || step === "world"
    unknown = known ? "" : decodeURIComponent(step).slice(0, 60)
    if (!known) history.replaceState(null, "", `#step=${data.step}`)
    if (known && step !== data.step) data.step = step
    else if (unknown) show()
  }

  // ---- where one is
  const leave = make("button", {type: "button", title: "large type, arrow keys"})
  leave.addEventListener("click", () => { data.present = !data.present })
  const address = (step) => data.alone ? `#step=${step}` : `?page=learn&step=${step}${data.present ? "&present=1" : ""}`
  const show_bar = () => {
    const link = (step, label, name, done) => {
      const here = step === data.step
      const a = make("a", {href: address(step), class: [here && "on", done && "done"].filter(Boolean).join(" "),
        "aria-current": here && "step", "aria-label": `${name}${done ? ", answered" : ""}`, title: name}, label)
      a.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return
        event.preventDefault()
        go(step, false)
      })
      return a
    }
    bar.replaceChildren(
      ...lessons.map(({number, title}) => link(String(number), String(number), `lesson ${number}: ${title}`, revealed(number))),
      link("end", "answers", "your answers", false), link("world", "explore", "explore the world", false), leave)
    leave.textContent = data.present ? "leave" : "present"
    leave.setAttribute("aria-label", data.present ? "leave the presentation" : "present to a class: large type, arrow keys")
  }

  // ---- the question
  const where = ({number, about, truth}) => {
    const known = revealed(number), guess = guesses()[number]
    const name = `AUROC of ${about}`
    if (known) return make("div", {class: "where", role: "img", "aria-label": `${name}: ${two(truth)}${guess == null ? "" : `; you said ${two(guess)}`}`}, axis_picture({guess, truth}))
    const slider = make("div", {class: "where open", role: "slider", tabindex: 0, "aria-label": `your guess: ${name}`, "aria-valuemin": 0, "aria-valuemax": 1})
    const point = (value) => {
      pointing = Math.round(100 * Math.max(0, Math.min(1, value))) / 100
      slider.setAttribute("aria-valuenow", pointing)
      slider.setAttribute("aria-valuetext", `${two(pointing)}; Enter to answer`)
      slider.replaceChildren(axis_picture({guess: pointing}))
    }
    const under = (event) => {
      const {left, width} = slider.getBoundingClientRect()
      return (100 * (event.clientX - left) / width - LEFT) / (RIGHT - LEFT)
    }
    slider.addEventListener("pointermove", (event) => point(under(event)))
    slider.addEventListener("click", (event) => { point(under(event)); answer(pointing) })
    slider.addEventListener("keydown", (event) => {
      if (data.present && ["ArrowLeft", "ArrowRight", "PageUp", "PageDown"].includes(event.key)) return // back and next
      const by = {ArrowLeft: -0.05, ArrowDown: -0.05, ArrowRight: 0.05, ArrowUp: 0.05, PageDown: -0.2, PageUp: 0.2}[event.key]
      if (by !== undefined) point(pointing + by)
      else if (event.key === "Home" || event.key === "End") point(event.key === "Home" ? 0 : 1)
      else if (event.key === "Enter" || event.key === " ") answer(pointing)
      else return
      event.preventDefault()
      event.stopPropagation()
    })
    pointing = 0.5
    slider.setAttribute("aria-valuenow", pointing)
    slider.replaceChildren(axis_picture({}))
    return slider
  }

  const choices = ({number, options, answer: right}) => {
    const known = revealed(number), guess = guesses()[number]
    return make("div", {class: "choices", role: "group", "aria-label": "answers"}, ...options.map((option, i) => {
      const marks = known ? [i === right && "right", i === guess && "mine"].filter(Boolean).join(" ") : ""
      const button = make("button", {type: "button", class: marks, disabled: known}, option,
        known && i === right ? make("span", {class: "m"}, i === guess ? " ✓ your answer" : " ✓") : known && i === guess ? make("span", {class: "m"}, " – your answer") : null)
      button.addEventListener("click", () => answer(i))
      return button
    }))
  }

  const verdict = ({number, kind, truth, answer: right}) => {
    const guess = guesses()[number]
    if (guess == null) return kind === "where" ? `It lands at ${two(truth)}.` : ""
    if (kind === "choice") return guess === right ? "Right." : "Not so."
    return Math.abs(guess - truth) <= 0.05 ? `Right: ${two(truth)}.` : `It lands at ${two(truth)}.`
  }

  const steps = () => {
    const here = lesson(), known = here && revealed(here.number)
    const before = make("button", {type: "button", class: "framed back"}, "Back")
    before.addEventListener("click", back)
    const after = make("button", {type: "button", class: known || !here ? "next main" : "next framed"},
      unseen() ? `Next: ${lower(here.also[unseen() - 1].label)}` : data.step === String(last) ? "Your answers" : known || !here ? "Next" : "Skip")
    after.addEventListener("click", next)
    const show_it = make("button", {type: "button", class: "plain"}, "Show the answer")
    show_it.addEventListener("click", () => answer(null))
    return make("div", {class: "go"}, neighbour(-1) ? before : null, neighbour(1) ? after : null, here && !known ? show_it : null)
  }

  const put = (...nodes) => body.replaceChildren(...nodes.filter((node) => node != null))
  const show_lesson = (here) => {
    const known = revealed(here.number)
    put(
      make("h1", {}, make("span", {class: "m"}, `${here.number} of ${last}  `), here.title),
      unknown ? make("p", {class: "note", role: "alert"}, `The link asks for step “${unknown}”, which is not here; lesson ${here.number} is shown.`) : null,
      make("p", {class: data.present && known ? "text spent" : "text"}, here.text),
      make("div", {class: "ask"}, make("h2", {}, here.question), here.kind === "where" ? where(here) : choices(here),
        known || here.kind !== "where" ? null : make("p", {class: "help"}, "Click, or use the arrow keys and Enter.")),
      make("p", {class: "reveal", role: "status", "aria-live": "polite"}, ...(known ? told(here) : [])),
      ...(known ? further(here) : []),
      steps())
  }

  // What came out: of the lesson as asked, or of the further case that is shown instead.
  const told = (here) => data.stage && here.also[data.stage - 1] ? [here.also[data.stage - 1].text]
    : [make("b", {}, verdict(here)), ` ${here.reveal}`, here.found && make("span", {class: "found"}, here.found)].filter(Boolean)

  // Where the same lesson goes on, or ends otherwise.
  const further = ({also}) => also.length ? [
    make("div", {class: "also", role: "group", "aria-label": "cases"}, ...["As asked", ...also.map(({label}) => label)].map((label, stage) => {
      const button = make("button", {type: "button", "aria-pressed": String(stage === data.stage)}, label)
      button.addEventListener("click", () => { look(stage); body.querySelectorAll(".also button")[stage].focus({preventScroll: true}); show_plane() })
      return button
    }))] : []

  // ---- the end, and the world
  const show_end = () => {
    const said = guesses()
    const row = ({number, title, kind, truth, answer: right, options}) => {
      const guess = said[number], open = !(number in said)
      const cells = open ? [make("td", {class: "m", colspan: 3}, "not answered")] : kind === "where"
        ? [make("td", {class: "pic"}, axis_picture({guess, truth, small: true})),
          make("td", {class: "n"}, guess == null ? make("span", {class: "m"}, "shown") : two(guess)), make("td", {class: "n"}, two(truth))]
        : [make("td", {class: "pic", colspan: 3}, guess === right ? `✓ ${options[right]}` : make("span", {}, guess == null ? null : make("s", {}, options[guess]), ` ${options[right]}`))]
      const link = make("a", {href: address(number)}, title)
      link.addEventListener("click", (event) => { event.preventDefault(); go(String(number)) })
      return make("tr", {}, make("th", {scope: "row"}, `${number} `, link), ...cells)
    }
    const answered = lessons.filter(({number}) => said[number] != null).length
    const table = make("table", {"aria-label": "your answers and the truth"},
      make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "lesson"), make("th", {scope: "col", class: "pic"}, "AUROC, 0 to 1"), make("th", {scope: "col", class: "n"}, "you"), make("th", {scope: "col", class: "n"}, "truth"))),
      make("tbody", {}, ...lessons.map(row)))
    const items = ending.checks.map(({text, link, href}) => {
      const item = make("li", {}, text)
      if (href) item.append(" ", data.alone ? make("span", {class: "m"}, `(in the app: ${link})`) : make("a", {href}, link))
      return item
    })
    const explore = make("button", {type: "button", class: "main next"}, "Explore the world")
    explore.addEventListener("click", () => go("world"))
    const afresh = Object.keys(said).length ? make("button", {type: "button", class: "plain"}, "Start afresh") : null
    afresh?.addEventListener("click", () => { data.guesses = {}; looked.clear(); keep(); go("1") })
    body.replaceChildren(
      make("h1", {}, "Your answers"),
      make("p", {class: "text"}, answered ? "Ring: your guess. Diamond: what came out." : Object.keys(said).length ? "Diamond: what came out." : "You have not answered yet: every lesson asks before it shows."),
      make("div", {class: "two"}, table, make("div", {}, make("h2", {class: "checks"}, ending.title), make("ol", {}, ...items))),
      make("div", {class: "go"}, ...steps().childNodes, explore, afresh))
  }

  const show_world = () => {
    body.replaceChildren(make("h1", {class: "small"}, world.title), make("p", {class: "text"}, data.alone ? world.alone : world.text))
  }

  let painted = ""
  const state = () => JSON.stringify([data.step, guesses(), data.present, lesson() && !revealed(lesson().number) ? 0 : data.stage]) // the stage of the lesson before is none of this one's: the focus stays
  const show = () => {
    painted = state()
    show_bar()
    box.dataset.step = data.step
    const here = lesson()
    here ? show_lesson(here) : data.step === "end" ? show_end() : show_world()
    if (data.present) body.append(make("p", {class: "help keys"}, "← back   → answer, then next   ↑ ↓ Enter guess   Esc leaves"))
    present()
  }

  // ---- in front of a class
  const present = () => {
    const large = data.present && seen()
    document.documentElement.toggleAttribute("data-present", large)
    letter(large ? Number(getComputedStyle(document.documentElement).getPropertyValue("--lv-large")) || 1 : 1)
  }
  // The letters of the figures are no CSS: each axis remembers its own size.
  const sizes = new Map()
  const letter = (large) => {
    if (large === 1 && !sizes.size) return
    for (const axis of view.model.document.all_models) {
      if (!/Axis$/.test(axis.type) || !axis.axis_label_text_font_size) continue
      if (!sizes.has(axis)) sizes.set(axis, [axis.axis_label_text_font_size, axis.major_label_text_font_size])
      const [label, tick] = sizes.get(axis).map((size) => `${Math.round(parseFloat(size) * large * 10) / 10}px`)
      if (axis.axis_label_text_font_size !== label) axis.setv({axis_label_text_font_size: label, major_label_text_font_size: tick}, {sync: false})
    }
  }
  const seen = () => box.getClientRects().length > 0
  const inside = (event) => event.composedPath().some((node) =>
    node.matches?.("input, select, textarea, [role=slider], [role=radio], [role=application]"))
  const key = (event) => {
    if (!data.present || !seen() || event.altKey || event.ctrlKey || event.metaKey) return
    if (event.key === "Escape") data.present = false
    else if (data.step === "world" && inside(event)) return // there, the arrows are the hand's
    else if (["ArrowRight", "PageDown"].includes(event.key)) lesson() && !revealed(lesson().number) ? answer(null) : next()
    else if (["ArrowLeft", "PageUp"].includes(event.key)) back()
    else return
    event.preventDefault()
  }
  document.addEventListener("keydown", key)
  const looking = new ResizeObserver(() => present()) // another page of the app may be seen by now
  looking.observe(box)

  for (const name of ["step", "guesses", "present", "stage"]) data.properties[name].change.connect(() => { if (state() !== painted) show() })
  const before = kept()
  if (!Object.keys(guesses()).length && Object.keys(before).length) data.guesses = before
  if (data.alone) {
    addEventListener("hashchange", read_hash)
    read_hash()
  }
  show()
  model.on("remove", () => {
    removeEventListener("hashchange", read_hash)
    document.removeEventListener("keydown", key)
    looking.disconnect()
    document.documentElement.removeAttribute("data-present")
  })
}
