// What was found in a file, what is asked about it, and what is on the shelf. Texts only: see sheet.py.

const make = (tag, attrs = {}, ...children) => {
  const node = document.createElement(tag)
  for (const [k, v] of Object.entries(attrs)) v === false || v == null || node.setAttribute(k, v === true ? "" : v)
  node.append(...children.filter((child) => child != null))
  return node
}

export function render({model, view, el}) {
  const data = view.model.data
  const send = (message) => model.send_msg(message)
  const shown = new Map() // a slot of the page, what is in it as JSON
  const slot = (name, tag = "div", attrs = {}) => make(tag, {"data-slot": name, ...attrs})
  const alert = slot("alert", "div", {role: "alert"})
  const retry = slot("retry")
  const shelf = slot("shelf")
  const intro = slot("intro")
  const questions = slot("questions")
  const act = slot("act")
  const heading = make("h2", {}, "How the rest is read")
  const rest = slot("rest")
  const found = slot("found")
  const things = slot("things")
  const two = make("div", {class: "two"}, make("div", {}, questions, act, heading, rest), make("div", {}, found, things))
  const preview = slot("preview")
  el.replaceChildren(alert, retry, shelf, intro, two, preview)

  const button = (key, words, message, attrs = {}) => {
    const node = make("button", {type: "button", "data-key": key, ...attrs}, words)
    node.addEventListener("click", () => send(message))
    return node
  }

  // Only what changed is made anew, and the focus stays where it was.
  const fill = (place, value, draw) => {
    const text = JSON.stringify(value ?? null)
    if (shown.get(place) === text) return
    shown.set(place, text)
    const active = el.getRootNode().activeElement
    const focused = active && place.contains(active) ? active.dataset.key : null
    place.replaceChildren(...(value == null ? [] : [draw(value)].flat().filter(Boolean)))
    if (focused) {
      const named = (key) => place.querySelector(`[data-key="${CSS.escape(key)}"]:not(:disabled)`)
      const next = named(focused) ?? place.querySelector(`[data-key^="${CSS.escape(focused.split("/")[0])}/"]`) ?? place.querySelector("[tabindex], input, select, button")
      next?.focus()
    }
  }

  const choose = (role, options, value, attrs) => {
    const select = make("select", {"data-key": `${role}/`, ...attrs},
      ...options.map(([option, words]) => make("option", {value: option, selected: option === value}, words)))
    select.addEventListener("change", () => send({do: "answer", role, value: select.value}))
    return select
  }

  // A few answers stand side by side, many are a menu.
  const question = ({role, label, text, options, value, said}) => {
    const rows = options.length > 8
      ? [choose(role, [["", "choose"], ...options.filter(([option]) => option)], value, {"aria-label": label})]
      : options.map(([option, words], i) => {
        const id = `${role}-${i}`
        const input = make("input", {type: "radio", name: role, id, value: option, checked: option === value, "data-key": `${role}/${i}`})
        input.addEventListener("change", () => send({do: "answer", role, value: option}))
        return make("div", {class: "option"}, input, make("label", {for: id}, words))
      })
    return make("fieldset", {class: value === "" ? "open" : "answered"},
      make("legend", {}, make("span", {class: "role"}, label), " ", text),
      make("div", {class: "options"}, ...rows),
      said ? button(`${role}/back`, "take this answer back", {do: "answer", role, value: ""}, {class: "quiet"}) : null)
  }

  // Of several answers all may be given, but one at least.
  const ticks = ({role, label, text, options, ticked, said}) => {
    const inputs = options.map(([option], i) => make("input", {type: "checkbox", id: `${role}-${i}`, value: option, checked: ticked.includes(option), "data-key": `${role}/${i}`}))
    for (const input of inputs) input.addEventListener("change", () => {
      const chosen = inputs.filter((one) => one.checked).map((one) => one.value)
      if (chosen.length) send({do: "answer", role, value: JSON.stringify(chosen)})
      else input.checked = true
    })
    return make("div", {class: "row many"},
      make("fieldset", {"aria-describedby": `${role}-help`}, make("legend", {}, label),
        make("div", {class: "ticks"}, ...options.map(([, words], i) => make("div", {class: "option"}, inputs[i], make("label", {for: `${role}-${i}`}, words))))),
      make("p", {class: "small", id: `${role}-help`}, text),
      said ? button(`${role}/back`, "take all", {do: "answer", role, value: ""}, {class: "quiet"}) : null)
  }

  const menu = ({role, label, text, options, value}) => {
    const id = `${role}-menu`
    return make("div", {class: "row"}, make("label", {for: id}, label),
      choose(role, options, value, {id, "aria-describedby": `${role}-help`}), make("p", {class: "small", id: `${role}-help`}, text))
  }

  const draw_retry = ({role, label, text, options}) => {
    const id = "retry"
    const input = options.length
      ? make("select", {id, "data-key": "retry"}, ...options.map(([value, words]) => make("option", {value}, words)))
      : make("input", {id, type: "text", "data-key": "retry", maxlength: 200, autocomplete: "off"})
    const go = make("button", {type: "submit", class: "framed", "data-key": "again"}, "Read again")
    const node = make("form", {class: "again"}, make("label", {for: id}, label), input, go, make("p", {class: "small"}, text))
    node.addEventListener("submit", (event) => {
      event.preventDefault()
      send({do: "retry", role, value: input.value})
    })
    return node
  }

  const cells = (tag, texts) => make("tr", {}, ...texts.map((text) => make(tag, {scope: tag === "th" && "col"}, text)))
  const draw_intro = (blocks) => blocks.map(({heading, table, steps, code, notes, button: press}) =>
    make("div", {class: "block"}, make("h2", {}, heading),
      table ? make("table", {"aria-label": table.label}, make("thead", {}, cells("th", table.header)), make("tbody", {}, ...table.rows.map((row) => cells("td", row)))) : null,
      steps ? make("ol", {}, ...steps.map((words) => make("li", {}, words))) : null,
      code ? make("pre", {tabindex: "0", "aria-label": heading}, make("code", {}, code)) : null,
      ...(notes ?? []).map((words) => make("p", {class: "small"}, words)),
      press ? button("press", press.words, {do: press.do}, {class: "framed"}) : null))

  const draw_found = ({facts, decided}) => [
    make("h2", {}, "What was found"),
    make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    decided.length ? make("ul", {"aria-label": "what was decided"}, ...decided.map((words) => make("li", {}, words))) : null,
  ]

  const use_of = (use) => use ? make("span", {class: "use"}, `used as ${use}`) : null
  const wide = (label, table) => make("div", {class: "wide", role: "region", tabindex: "0", "aria-label": label}, table)

  const draw_things = ({heading, rows, more}) => [
    make("h2", {}, heading),
    wide(heading, make("table", {class: "things"}, make("tbody", {}, ...rows.map(([name, facts, use]) =>
      make("tr", {}, make("th", {scope: "row"}, name, use_of(use)), make("td", {class: "m"}, facts)))))),
    more ? make("p", {class: "small"}, more) : null,
  ]

  const draw_preview = ({header, rows}) => [
    make("h2", {}, "First rows"),
    wide("first rows", make("table", {},
      make("thead", {}, make("tr", {}, ...header.map(([name, use]) => make("th", {scope: "col"}, name, use_of(use))))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {class: cell === "" && "gone"}, cell === "" ? "missing" : cell))))))),
  ]

  const draw_shelf = (entries) => make("section", {"aria-label": "your shelf"},
    make("h2", {tabindex: "-1"}, "On your shelf"),
    make("ul", {class: "shelf"}, ...entries.map(({name, title, verdict, size, explain, source, links, acts}) =>
      make("li", {},
        make("div", {class: "line"}, make("span", {class: "name"}, title), make("span", {class: "verdict"}, verdict),
          make("span", {class: "m"}, size), make("span", {class: "grow"}),
          ...links.map(([words, href]) => make("a", {href, "data-key": `${name}${words}`, "aria-label": `${words} of ${title}`}, words)),
          ...acts.map(([act, words]) => button(`${name} ${act}`, words, {do: act, name}, {class: "quiet", "aria-label": `${words} ${title}`}))),
        make("details", {}, make("summary", {"data-key": `${name} why`}, "why, and what cannot be seen"),
          ...explain.map((words) => make("p", {class: "small"}, words)), make("p", {class: "small"}, source))))))

  // An answer in the making must not lose its focus when another field changes.
  const fields = (place, list, draw) => {
    const roles = list.map((field) => field.role)
    const kept = new Map([...place.querySelectorAll(":scope > [data-role]")].map((node) => [node.dataset.role, node]))
    for (const [role, node] of kept) if (!roles.includes(role)) node.remove()
    list.forEach((field, i) => {
      const node = kept.get(field.role) ?? make("div", {"data-role": field.role})
      if (place.children[i] !== node) place.insertBefore(node, place.children[i] ?? null)
      fill(node, field, draw)
    })
  }

  let used = false
  const update = () => {
    const page = JSON.parse(data.page)
    const {file} = page
    fill(alert, page.alert, (list) => list.map((words) => make("p", {class: "alert"}, words)))
    fill(retry, page.retry, draw_retry)
    fill(intro, page.intro.length ? page.intro : null, draw_intro)
    two.hidden = !file
    fields(questions, file?.questions ?? [], question)
    fields(rest, file?.rest ?? [], (field) => field.ticked ? ticks(field) : menu(field))
    heading.hidden = !file?.rest.length
    heading.textContent = file?.questions.length ? "How the rest is read" : "How it is read"
    fill(act, file ? {ready: file.ready, verb: file.verb, words: file.words} : null, ({ready, verb, words}) => [
      verb ? button("use", verb, {do: "use"}, {class: "primary", disabled: !ready}) : null,
      button("close", "Put the file away", {do: "close"}, {class: "framed"}),
      make("p", {class: "small", role: "status"}, words),
    ])
    fill(found, file ? {facts: file.facts, decided: file.decided} : null, draw_found)
    fill(things, file?.things, draw_things)
    fill(preview, file?.preview, draw_preview)
    fill(shelf, page.shelf.length ? page.shelf : null, draw_shelf)
    const now = file?.used ?? false
    if (now && !used) globalThis.scrollTo?.({top: 0}) // where the answer stands
    used = now
  }
  data.properties.page.change.connect(update)
  update()
}
