// The files of a figure: a press asks the session for one and keeps it. See cards.py.

const KINDS = ["SVG", "PDF", "PNG", "CSV"]
const TYPES = {SVG: "image/svg+xml", PDF: "application/pdf", PNG: "image/png", CSV: "text/csv"}

// One size for all figures of the window: who needs 85 mm needs it for the next figure, too.
const size = globalThis.__leakviz_size ??= {preset: "print", width: "", dpi: "", heard: new Set()}

const make = (tag, attrs = {}, ...children) => {
  const node = document.createElement(tag)
  for (const [k, v] of Object.entries(attrs)) v === false || node.setAttribute(k, v)
  node.append(...children)
  return node
}

export function render({model, view, el}) {
  const {presets} = view.model.data
  const buttons = KINDS.map((kind) => {
    const button = make("button", {type: "button"}, kind)
    button.addEventListener("click", () => {
      button.setAttribute("aria-busy", "true")
      tell("")
      clearTimeout(waiting)
      waiting = setTimeout(() => { // a page without its kernel, say
        button.removeAttribute("aria-busy")
        tell("No answer: files are made by the app, or by the notebook’s kernel.")
      }, 30_000)
      const {preset, width, dpi} = size
      model.send_msg({file: kind, preset, width, dpi})
    })
    return button
  })
  const opener = make("button", {type: "button", class: "size", "aria-expanded": "false", "aria-haspopup": "dialog"})
  const told = make("p", {role: "status", class: "told"})
  const group = make("div", {role: "group", "aria-label": "files of this figure", class: "files"}, ...buttons, opener, told)
  let panel = null, waiting = 0

  const tell = (words) => { told.textContent = words }
  const say = () => {
    const {preset, width, dpi} = size
    const own = [preset === "slide" && "slide", width && `${width} mm`, dpi && `${dpi} dpi`].filter(Boolean).join(", ")
    opener.textContent = width ? `${width} mm` : preset === "slide" ? "slide" : dpi ? `${dpi} dpi` : "size"
    opener.setAttribute("aria-label", own ? `size of the files: ${own}` : "size of the files")
  }

  const close = (back) => {
    if (!panel) return
    panel.remove()
    panel = null
    opener.setAttribute("aria-expanded", "false")
    document.removeEventListener("pointerdown", outside, true)
    if (back) opener.focus()
  }
  const outside = (event) => { if (!event.composedPath().includes(group)) close(false) }
  const changed = () => { for (const hear of size.heard) hear() }

  const open = () => {
    const radios = Object.entries(presets).map(([name, {words}]) => {
      const input = make("input", {type: "radio", name: "preset", value: name})
      input.checked = size.preset === name
      input.addEventListener("change", () => { size.preset = name; hint(); changed() })
      return make("label", {}, input, ` ${words}`)
    })
    const field = (name, label, low, high) => {
      const limits = `${low} to ${high}`
      const input = make("input", {type: "number", min: low, max: high, step: 1, inputmode: "numeric", "aria-label": `${label}, ${limits}`})
      const wrong = make("p", {class: "told", role: "alert"})
      input.value = size[name]
      input.addEventListener("change", () => {
        const number = Number(input.value)
        const refused = input.validity.badInput || input.value && !(Number.isInteger(number) && low <= number && number <= high)
        input.setAttribute("aria-invalid", String(Boolean(refused)))
        wrong.textContent = refused ? `Not taken: a whole number from ${limits}, or nothing for the preset’s.` : ""
        if (refused) return
        size[name] = input.value && String(number)
        changed()
      })
      return [make("div", {}, make("label", {}, make("span", {}, label, make("span", {class: "limits"}, ` ${limits}`)), input), wrong), input]
    }
    const [width, wide] = field("width", "width, mm", 40, 1000)
    const [dpi, dots] = field("dpi", "dpi of a PNG", 50, 1200)
    const hint = () => {
      wide.placeholder = presets[size.preset].width
      dots.placeholder = presets[size.preset].dpi
    }
    hint()
    const done = make("button", {type: "button", class: "done"}, "Done")
    done.addEventListener("click", () => {
      const refused = panel.querySelector("[aria-invalid=true]")
      refused ? refused.focus() : close(true)
    })
    panel = make("div", {class: "panel", role: "dialog", "aria-label": "size of the files"}, ...radios, width, dpi, done)
    panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return
      event.stopPropagation()
      close(true)
    })
    group.append(panel)
    const {left} = panel.getBoundingClientRect()
    if (left < 8) panel.style.right = `${left - 8}px`
    opener.setAttribute("aria-expanded", "true")
    document.addEventListener("pointerdown", outside, true)
    panel.querySelector("input:checked").focus()
  }
  opener.addEventListener("click", () => panel ? close(true) : open())

  model.on("msg:custom", ({file, name, data, wrong}) => {
    clearTimeout(waiting)
    buttons[KINDS.indexOf(file)]?.removeAttribute("aria-busy")
    if (wrong) return tell(wrong)
    const a = make("a", {href: URL.createObjectURL(new Blob([data], {type: TYPES[file]})), download: name})
    a.click()
    setTimeout(() => URL.revokeObjectURL(a.href), 60_000)
  })

  size.heard.add(say)
  say()
  el.replaceChildren(group)
  model.on("remove", () => {
    size.heard.delete(say)
    clearTimeout(waiting)
    close(false)
  })
}
