// A table that its headings sort. Texts only: see listing.py.

const make = (tag, attrs = {}, ...children) => {
  const node = document.createElement(tag)
  for (const [k, v] of Object.entries(attrs)) v === false || v == null || node.setAttribute(k, v)
  node.append(...children)
  return node
}

export function render({view, el}) {
  const data = view.model.data
  let by = null, down = false // the column that sorts, and whether from large to small
  const scroll = make("div", {class: "scroll", tabindex: "0", role: "region"})
  el.replaceChildren(scroll)

  const draw = () => {
    const {caption, columns, rows} = JSON.parse(data.table)
    if (by !== null && by >= columns.length) by = null
    const order = rows.map((_, i) => i)
    if (by !== null) {
      const numbers = columns[by][1]
      order.sort((a, b) => {
        const [x, y] = [rows[a][by][1], rows[b][by][1]]
        if (x === null || y === null) return (x === null) - (y === null) // what is undefined comes last
        return (down ? -1 : 1) * (numbers ? x - y : x.localeCompare(y, undefined, {numeric: true}))
      })
    }
    const focused = el.getRootNode().activeElement?.dataset?.column
    const heads = columns.map(([name, numbers], c) => {
      const sort = by === c ? (down ? "descending" : "ascending") : "none"
      const press = make("button", {type: "button", "data-column": c}, name,
        make("span", {"aria-hidden": "true"}, by === c ? (down ? "↓" : "↑") : ""))
      press.addEventListener("click", () => {
        down = by === c ? !down : numbers
        by = c
        draw()
      })
      return make("th", {scope: "col", class: numbers ? "n" : null, "aria-sort": sort}, press)
    })
    const body = order.map((i) => make("tr", {}, ...rows[i].map(([text], c) =>
      c ? make("td", {class: columns[c][1] ? "n" : null}, text) : make("th", {scope: "row", title: text}, text))))
    const top = scroll.scrollTop
    scroll.setAttribute("aria-label", caption)
    scroll.replaceChildren(make("table", {}, make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...body)))
    scroll.scrollTop = top
    if (focused !== undefined) scroll.querySelector(`[data-column="${focused}"]`)?.focus()
  }
  data.properties.table.change.connect(() => { by = null; draw() })
  draw()
}
