// The frame around the pages: navigation, theme, link. See shell.py.

const root = document.documentElement

// Marks in a colour of the page follow the theme; Bokeh's axes read it from CSS and need a repaint.
function paint(repaint = false) {
  const style = getComputedStyle(root)
  for (const doc of globalThis.Bokeh?.documents ?? []) {
    for (const model of doc.all_models) {
      for (const tag of model.tags ?? []) {
        if (typeof tag !== "string" || !tag.startsWith("theme:")) continue
        const [, color, property] = tag.split(":")
        model.setv({[property]: style.getPropertyValue(`--lv-${color}`).trim()}, {sync: false})
      }
      if (repaint && (model.type === "Figure" || model.type === "Plot")) model.change.emit()
    }
  }
}

// What is built later, when the first figures are seen or another page is chosen, is painted too.
function paint_what_comes(doc) {
  let frame = 0
  const grown = (event) => event.events ? event.events.some(grown) : event.attr === "children"
  const look = (event) => {
    if (!grown(event)) return
    cancelAnimationFrame(frame)
    frame = requestAnimationFrame(() => paint())
  }
  doc.on_change(look)
  return () => doc.remove_on_change(look)
}

const make = (tag, attrs = {}, ...children) => {
  const node = document.createElement(tag)
  for (const [k, v] of Object.entries(attrs)) v === false || node.setAttribute(k, v)
  node.append(...children)
  return node
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch { // no permission, or not a secure context
    const area = make("textarea", {"aria-hidden": "true", style: "position: fixed; opacity: 0"}, text)
    document.body.append(area)
    area.select()
    const done = document.execCommand("copy")
    area.remove()
    return done
  }
}

export function render({model, view, el}) {
  const data = view.model.data
  const nav = make("nav", {"aria-label": "pages"})
  const theme = make("button", {type: "button", class: "theme"})
  const link = make("button", {type: "button"}, "Copy link")
  const save = make("button", {type: "button", "aria-label": "save this page as one file", title: "save this page as one file"}, "Save")
  const told = make("span", {class: "told", role: "status"})
  const mark = data.saved ? make("span", {class: "wordmark"}, "leakviz") : make("a", {class: "wordmark", href: "?"}, "leakviz")
  const header = make("header", {class: data.saved && "saved"}, mark, nav,
    make("span", {class: "space"}), make("span", {class: "data"}, data.subject), told, theme, ...(data.saved ? [] : [link, save]))
  el.replaceChildren(header)

  const pages = () => {
    nav.replaceChildren(...data.pages.map(([name, title]) => {
      const here = name === data.page
      if (data.saved) return make("span", {}, title)
      const a = make("a", {href: `?page=${name}`, class: here ? "on" : "", "aria-current": here && "page"}, title)
      a.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return
        event.preventDefault()
        if (name !== data.page) data.wanted = `?page=${name}`
      })
      return a
    }))
    header.querySelector(".data").textContent = data.subject
    save.hidden = !data.saves.includes(data.page)
    requestAnimationFrame(() => { // where the pages do not fit side by side, the present one is seen
      const here = nav.querySelector(".on")
      if (here) nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2
    })
  }
  pages()
  for (const p of ["page", "pages", "subject"]) data.properties[p].change.connect(pages)

  // The address says what is seen: replaced when the hand lets go, pushed when the page changes.
  const address = () => {
    const {query, push} = JSON.parse(data.address)
    const url = location.pathname + (query ? `?${query}` : "")
    if (url === location.pathname + location.search) return
    push ? history.pushState(null, "", url) : history.replaceState(null, "", url)
  }
  data.properties.address.change.connect(address)
  if (JSON.parse(data.address).query) address() // the link asked for what there is not
  const back = () => { data.wanted = location.search + " " } // a blank more: asked again, it is a change
  addEventListener("popstate", back)

  // A link on a page to another page, in a state: it stays in this session.
  const follow = (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return
    const a = event.composedPath().find((node) => node.matches?.('a[href^="?page="]'))
    if (!a || a.target) return
    event.preventDefault()
    if (data.saved) tell("That page is in the app, not in this file")
    else data.wanted = a.getAttribute("href")
  }
  document.addEventListener("click", follow)

  const tell = (words) => {
    told.textContent = words
    clearTimeout(telling)
    telling = setTimeout(() => { told.textContent = "" }, 2500)
  }
  let telling = 0

  const dark = () => root.dataset.theme === "dark"
  const show = () => {
    theme.textContent = dark() ? "Light" : "Dark"
    theme.setAttribute("aria-label", dark() ? "switch to the light theme" : "switch to the dark theme")
  }
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark"
    try { localStorage.setItem("leakviz-theme", root.dataset.theme) } catch {}
    show()
    paint(true)
  })
  show()
  link.addEventListener("click", async () => {
    tell(await copy(location.href) ? "Link copied" : location.href)
  })

  // The server makes the file, the browser keeps it.
  save.addEventListener("click", () => {
    save.disabled = true
    clearTimeout(telling)
    told.textContent = "Saving …"
    model.send_msg({save: data.page})
  })
  model.on("msg:custom", ({name, text}) => {
    save.disabled = false
    if (text === undefined) return tell("This page could not be saved")
    const a = make("a", {href: URL.createObjectURL(new Blob([text], {type: "text/html"})), download: name})
    a.click()
    setTimeout(() => URL.revokeObjectURL(a.href), 60_000)
    tell(`Saved as ${name}`)
  })

  const stop = paint_what_comes(view.model.document)
  paint()
  model.on("remove", () => {
    removeEventListener("popstate", back)
    document.removeEventListener("click", follow)
    stop()
  })
}
