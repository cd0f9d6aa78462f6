// What a report consists of: its sections, the author's words, and the files. Texts only: see report.py.

const make = (tag, attrs = {}, ...children) => {
  const node = document.createElement(tag)
  for (const [k, v] of Object.entries(attrs)) v === false || v == null || node.setAttribute(k, v === true ? "" : v)
  node.append(...children.filter((child) => child != null))
  return node
}

export function render({model, view, el}) {
  const data = view.model.data
  const send = (message) => model.send_msg(message)
  const list = make("ol", {class: "sections", "aria-label": "sections of the report"})
  const empty = make("p", {class: "note empty"}, "There is no section yet. Add a page below: one that you visited comes as you left it, another as it starts.")
  const offers = make("ul", {class: "offers", "aria-label": "pages that can be added"})
  const form = make("div", {class: "form"})
  const bar = make("div", {class: "bar"})
  const status = make("p", {class: "status", role: "status"})
  const alert = make("p", {class: "alert", role: "alert"})
  el.replaceChildren(make("div", {class: "two"},
    make("section", {"aria-label": "sections"}, make("h2", {}, "Sections"), empty, list, make("h2", {class: "more"}, "Add a page"), offers),
    make("section", {"aria-label": "the whole"}, make("h2", {}, "The whole"), form, bar, status, alert)))

  const button = (key, words, message, attrs = {}) => {
    const node = make("button", {type: "button", "data-key": key, ...attrs}, words)
    node.addEventListener("click", () => send(message))
    return node
  }

  // Sent when the field is left; what is being typed stays.
  const field = (tag, name, label, message, attrs = {}) => {
    const input = make(tag, {id: name, "data-key": name, ...attrs})
    input.addEventListener("change", () => send({...message, value: input.value}))
    return make("div", {class: "field"}, make("label", {for: name}, label), input)
  }
  const put = (root, name, value) => {
    const input = root.querySelector(`#${CSS.escape(name)}`)
    if (input && el.getRootNode().activeElement !== input && input.value !== value) input.value = value
  }

  form.append(
    field("input", "title", "title", {do: "title"}, {type: "text", maxlength: 300, autocomplete: "off"}),
    field("input", "author", "author, if you like", {do: "author"}, {type: "text", maxlength: 300, autocomplete: "off"}),
    field("textarea", "notes", "notes on the whole", {do: "notes"}, {rows: 4, maxlength: 20000}))
  const kinds = {html: "HTML", pdf: "PDF", json: "JSON"}
  const buttons = Object.entries(kinds).map(([kind, words]) =>
    button(kind, words, {do: "make", kind}, {class: "framed", "aria-label": `make the report as ${words}`}))
  const stop = button("stop", "Stop", {do: "stop"}, {class: "quiet"})
  bar.append(...buttons, stop)

  let drawn = ""
  const draw = (sections) => {
    const shape = JSON.stringify(sections.map(({page, title, words}) => [page, title, words]))
    if (shape !== drawn) {
      drawn = shape
      const active = el.getRootNode().activeElement
      const focused = active && list.contains(active) ? active.dataset.key : null
      const last = sections.length - 1
      list.replaceChildren(...sections.map(({title, words}, at) => make("li", {},
        make("div", {class: "line"}, make("span", {class: "name"}, `${at + 1}. ${title}`), make("span", {class: "grow"}),
          button(`up/${at}`, "up", {do: "up", at}, {class: "quiet", disabled: at === 0, "aria-label": `move section ${at + 1}, ${title}, up`}),
          button(`down/${at}`, "down", {do: "down", at}, {class: "quiet", disabled: at === last, "aria-label": `move section ${at + 1}, ${title}, down`}),
          button(`remove/${at}`, "remove", {do: "remove", at}, {class: "quiet", "aria-label": `remove section ${at + 1}, ${title}`})),
        make("p", {class: "small"}, words),
        field("textarea", `note-${at}`, "note on this section", {do: "note", at}, {rows: 2, maxlength: 20000}))))
      if (focused) {
        const [what, at] = focused.split("/")
        const to = {up: Number(at) - 1, down: Number(at) + 1}[what] ?? Number(at)
        const next = [`${what}/${to}`, what === "up" ? `down/${to}` : `up/${to}`, `remove/${Math.min(to, last)}`]
          .map((key) => list.querySelector(`[data-key="${CSS.escape(key)}"]:not(:disabled)`)).find(Boolean)
        ;(next ?? offers.querySelector("button"))?.focus()
      }
    }
    sections.forEach(({note}, at) => put(list, `note-${at}`, note))
    empty.hidden = sections.length > 0
  }

  const update = () => {
    const page = JSON.parse(data.page)
    draw(page.sections)
    const active = el.getRootNode().activeElement
    const focused = active && offers.contains(active) ? active.dataset.key : null
    offers.replaceChildren(...page.offers.map(({page: name, title, words}) => make("li", {},
      button(`add/${name}`, "Add", {do: "add", page: name}, {class: "framed", "aria-label": `add ${title}`}),
      make("span", {class: "name"}, title), make("span", {class: "small"}, words))))
    if (focused) offers.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus()
    for (const name of ["title", "author", "notes"]) put(form, name, page[name])
    for (const node of buttons) node.disabled = page.sections.length === 0 || Boolean(page.work)
    stop.hidden = !page.work
    const why = page.sections.length ? "" : "Nothing can be made yet: add a section first."
    if (page.work || !status.dataset.kept) status.textContent = page.work || why
    if (page.work) delete status.dataset.kept
    alert.textContent = page.alert
  }
  update()
  data.properties.page.change.connect(update)

  // The server makes the file, the browser keeps it.
  model.on("msg:custom", ({name, base64, type}) => {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))
    const a = make("a", {href: URL.createObjectURL(new Blob([bytes], {type})), download: name})
    a.click()
    setTimeout(() => URL.revokeObjectURL(a.href), 60_000)
    status.dataset.kept = "yes"
    status.textContent = `Saved as ${name}`
  })
}
