// A file on its way to the session that asked for it: piece by piece, each one acknowledged. See upload.py.

const PIECE = 1 << 20 // bytes
const AHEAD = 6 // pieces under way at a time

const make = (tag, attrs = {}, ...children) => {
  const node = document.createElement(tag)
  for (const [k, v] of Object.entries(attrs)) v === false || v == null || node.setAttribute(k, v)
  node.append(...children)
  return node
}

export function render({model, view, el}) {
  const data = view.model.data
  let sending = null // {id, file, at}
  let number = 0

  const input = make("input", {type: "file", id: "file", "aria-describedby": "hint"})
  const label = make("label", {for: "file", class: "choose"}, data.label)
  const hint = make("p", {id: "hint", class: "hint"}, data.hint)
  const rest = make("div", {class: "rest"}, input, label, hint)
  const words = make("p", {class: "words", role: "status"})
  const bar = make("div", {class: "bar", role: "progressbar", "aria-label": "progress", "aria-valuemin": 0, "aria-valuemax": 100}, make("span"))
  const cancel = make("button", {type: "button", class: "framed"}, "Cancel")
  const work = make("div", {class: "work", hidden: ""}, words, cancel, bar)
  const strip = make("div", {class: "strip"}, rest, work)
  el.replaceChildren(strip)

  const send = (message) => model.send_msg(message)

  const take = (files) => {
    if (files.length !== 1) {
      if (files.length) send({do: "refuse", words: `${files.length} files were dropped, and none was taken. Drop one file.`})
      return
    }
    const [file] = files
    if (sending) {
      send({do: "refuse", words: `“${file.name}” was not taken: “${sending.file.name}” is still on its way. Cancel it first, or wait.`})
      return
    }
    sending = {id: `${Date.now()}-${++number}`, file, at: 0}
    send({do: "start", id: sending.id, name: file.name, size: file.size})
    if (!file.size) sending = null // there is nothing to send
  }

  const step = async (mine, upto) => {
    while (sending === mine && mine.at < mine.file.size && mine.at < upto) {
      const at = mine.at
      mine.at = Math.min(at + PIECE, mine.file.size)
      let piece
      try {
        piece = await mine.file.slice(at, mine.at).arrayBuffer()
      } catch { // a folder, or a file that changed or went away
        if (sending !== mine) return
        sending = null
        send({do: "fail", id: mine.id})
        return
      }
      if (sending === mine) send({do: "piece", id: mine.id, at, data: piece})
    }
    if (sending === mine && mine.at >= mine.file.size) sending = null
  }

  // The session says how much it has taken, or that it does not want the file.
  let chain = Promise.resolve()
  const follow = () => {
    const {id, taken} = JSON.parse(data.taken)
    const mine = sending
    if (mine && id === mine.id) chain = chain.then(() => step(mine, taken + AHEAD * PIECE))
  }
  model.on("msg:custom", ({refused}) => {
    if (sending?.id === refused) sending = null
  })

  const show = () => {
    const {text, done} = JSON.parse(data.working)
    const busy = text !== ""
    const had = el.getRootNode().activeElement
    rest.hidden = busy
    work.hidden = !busy
    if (busy && had === input) cancel.focus()
    if (!busy && had === cancel) input.focus()
    if (words.textContent !== text) words.textContent = text
    bar.classList.toggle("unknown", done === null)
    bar.firstChild.style.width = done === null ? "" : `${(100 * done).toFixed(1)}%`
    done === null ? bar.removeAttribute("aria-valuenow") : bar.setAttribute("aria-valuenow", Math.round(100 * done))
    if (!busy) input.value = "" // the same file may be chosen again
  }

  input.addEventListener("change", () => take([...input.files]))
  cancel.addEventListener("click", () => {
    sending = null
    send({do: "cancel"})
  })

  // The whole page takes a drop: a file that misses would else be opened in place of the app.
  const seen = () => strip.getClientRects().length > 0
  const carries = (event) => seen() && [...(event.dataTransfer?.types ?? [])].includes("Files")
  const over = (event) => {
    if (!carries(event)) return
    event.preventDefault()
    event.dataTransfer.dropEffect = "copy"
    strip.classList.add("over")
  }
  const leave = (event) => {
    if (event.relatedTarget === null) strip.classList.remove("over")
  }
  const drop = (event) => {
    if (!carries(event)) return
    event.preventDefault()
    strip.classList.remove("over")
    take([...event.dataTransfer.files])
  }
  const heard = {dragenter: over, dragover: over, dragleave: leave, drop}
  for (const [name, listen] of Object.entries(heard)) document.addEventListener(name, listen)

  data.properties.taken.change.connect(follow)
  data.properties.working.change.connect(show)
  show()
  model.on("remove", () => {
    sending = null
    for (const [name, listen] of Object.entries(heard)) document.removeEventListener(name, listen)
  })
}
