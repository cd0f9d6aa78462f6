// What was found in a file, what is asked about it, and what is on the shelf. Texts only: see predictions.py.

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
  const intro = slot("intro")
  const alert = slot("alert", "div", {role: "alert"})
  const retry = slot("retry")
  const form = make("div", {class: "form"})
  const questions = slot("questions")
  const act = slot("act")
  const rest = slot("rest")
  const heading = make("h2", {}, "How the rest is read")
  form.append(questions, act, heading, rest)
  const found = slot("found")
  const two = make("div", {class: "two"}, form, found)
  const table = slot("table")
  const shelf = slot("shelf")
  el.replaceChildren(alert, retry, shelf, intro, two, table)

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
      const next = named(focused) ?? named(focused.split("/")[0] + "/") ?? place.querySelector("[tabindex], input, select, button")
      next?.focus()
    }
  }

  // A few answers stand side by side, many are a menu.
  const question = ({role, label, text, options, value, said}) => {
    const many = options.length > 8
    const rows = many ? [choose(role, [["", "choose"], ...options.filter(([option]) => option)], value, {"aria-label": label})] : options.map(([option, words], i) => {
      const id = `${role}-${i}`
      const input = make("input", {type: "radio", name: role, id, value: option, checked: option === value, "data-key": `${role}/${i || ""}`})
      input.addEventListener("change", () => send({do: "answer", role, value: option}))
      return make("div", {class: "option"}, input, make("label", {for: id}, words))
    })
    return make("fieldset", {class: value === "" ? "open" : "answered"},
      make("legend", {}, make("span", {class: "role"}, label), " ", text),
      make("div", {class: "options"}, ...rows),
      said ? button(`${role}/back`, "take this answer back", {do: "answer", role, value: ""}, {class: "quiet"}) : null)
  }

  const choose = (role, options, value, attrs) => {
    const select = make("select", {"data-key": `${role}/`, ...attrs},
      ...options.map(([option, words]) => make("option", {value: option, selected: option === value}, words)))
    select.addEventListener("change", () => send({do: "answer", role, value: select.value}))
    return select
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

  const cells = (tag, ...texts) => make("tr", {}, ...texts.map((text) => make(tag, {scope: tag === "th" && "col", class: tag === "th" && "m"}, text)))
  const draw_intro = () => [
    make("div", {}, make("h2", {}, "What a file looks like"),
      make("table", {"aria-label": "an example of a file"}, make("thead", {}, cells("th", "risk", "died")),
        make("tbody", {}, cells("td", "0.031", "no"), cells("td", "0.874", "yes"), cells("td", "0.112", "no"))),
      make("p", {class: "small"}, "The names are yours, and other columns do no harm. Out-of-fold or held-out predictions, please: those of the training rows look leaky.")),
    make("div", {}, make("h2", {}, "What happens with it"),
      make("ol", {},
        make("li", {}, "Every row is read. A missing value, a third label or a percentage is named with its row, and no number is made up for it."),
        make("li", {}, "You answer what the file leaves open: which column, which label is the event, which scale."),
        make("li", {}, "You read a verdict: leaky, not shown, or undetermined, with what it rests on. Then its purity and its calibration.")),
      make("p", {class: "small"}, "No test on predictions and outcomes can see a smooth leak below the ceiling, and an outcome that is nearly certain beforehand fires honestly."),
      make("p", {class: "small"}, "From a terminal: ", make("code", {}, "leakviz check preds.csv"), ", or open the app with a file: ", make("code", {}, "panel serve app.py --args preds.csv"))),
  ]

  const draw_found = ({facts, decided}) => [
    make("h2", {}, "What was found, on every row"),
    make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    decided.length ? make("ul", {"aria-label": "what was decided"}, ...decided.map((words) => make("li", {}, words))) : null,
  ].filter(Boolean)

  const draw_table = ({header, rows, columns, more, n}) => {
    const role = (use) => use ? make("span", {class: "use"}, `used as ${use}`) : null
    const head = make("tr", {}, ...header.map(([name, use]) => make("th", {scope: "col"}, name, role(use))))
    const body = rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {class: cell === "" ? "gone" : null}, cell === "" ? "missing" : cell))))
    const wide = (label, node) => make("div", {class: "wide", role: "region", tabindex: "0", "aria-label": label}, node)
    return make("div", {class: "tables"},
      make("div", {}, make("h2", {}, "First rows"), wide("first rows", make("table", {class: "rows"}, make("thead", {}, head), make("tbody", {}, ...body)))),
      make("div", {}, make("h2", {}, "Columns"),
        wide("columns", make("table", {class: "columns"}, make("tbody", {}, ...columns.map(([name, facts, use]) =>
          make("tr", {}, make("th", {scope: "row"}, name, role(use)), make("td", {class: "m"}, facts)))))),
        more ? make("p", {class: "small"}, more) : null))
  }

  const draw_shelf = (vectors) => make("section", {"aria-label": "your shelf"},
    make("h2", {tabindex: "-1"}, "On your shelf"),
    make("ul", {class: "shelf"}, ...vectors.map(({name, title, size, verdict, explain, source, links}) =>
      make("li", {},
        make("div", {class: "line"}, make("span", {class: "name"}, title), make("span", {class: "verdict"}, verdict),
          make("span", {class: "m"}, size), make("span", {class: "grow"}),
          ...links.map(([words, href]) => make("a", {href, "data-key": `${name}${words}`, "aria-label": `${words} of ${title}`}, words)),
          button(`${name} remove`, "remove", {do: "remove", name}, {class: "quiet", "aria-label": `remove ${title}`})),
        make("details", {}, make("summary", {"data-key": `${name} why`}, "why, and what cannot be seen"), make("p", {class: "small"}, explain), make("p", {class: "small"}, source))))))

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
    fill(intro, page.intro || null, draw_intro)
    two.hidden = !file
    fields(questions, file?.questions ?? [], question)
    fields(rest, file?.rest ?? [], menu)
    heading.hidden = !file?.rest.length
    heading.textContent = file?.questions.length ? "How the rest is read" : "How it is read"
    fill(act, file ? {ready: file.ready, words: file.words, used: file.used} : null, ({ready, words, used}) => [
      used ? null : button("use", "Use these predictions", {do: "use"}, {class: "primary", disabled: !ready}),
      button("close", "Put the file away", {do: "close"}, {class: "framed"}),
      make("p", {class: "small", role: "status"}, words),
    ])
    fill(found, file ? {facts: file.facts, decided: file.decided} : null, draw_found)
    fill(table, file?.table, draw_table)
    fill(shelf, page.shelf.length ? page.shelf : null, draw_shelf)
    const now = file?.used ?? false
    if (now && !used) document.querySelector("main")?.scrollIntoView({block: "nearest"}), globalThis.scrollTo?.({top: 0})
    used = now
  }
  data.properties.page.change.connect(update)
  update()
}
