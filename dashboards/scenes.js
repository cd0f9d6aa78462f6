// Shows what was recorded of each step, in a file without a server. See scenes.py.

const LONG = 420 // ms, from one end of a dimension to the other: as mechanism.js does

export function render({view, model}) {
  const {player, blobs, scenes, start} = JSON.parse(view.model.data.recording)
  const doc = view.model.document, data = doc.get_model_by_id(player)
  const buffers = blobs.map((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer)
  const plain = (map) => Object.fromEntries(map instanceof Map ? map : Object.entries(map))
  const table_of = (live) => globalThis.__leakviz_live?.tables.find((t) => t.data === live)
  let step = data.step, turn = 0

  const key = () => `${data.step} ${Number(!/^\d+$/.test(data.step) || data.step in plain(data.guesses))} ${data.stage}`
  let shown = start // the player may be elsewhere already: at what the address says, or with the answers of the visit
  const held = new Map() // model and attribute -> the number of the table that it holds
  const hold = (id, attributes) => Object.entries(attributes).filter(([name, value]) => {
    const blob = value?.blob
    if (blob === undefined) return true
    const same = held.get(`${id} ${name}`) === blob
    held.set(`${id} ${name}`, blob)
    return !same
  })
  for (const [id, attributes] of Object.entries(scenes[shown] ?? {})) hold(id, attributes)

  // Where only the stop differs, the eye follows it.
  const walk = (live, state) => {
    const table = table_of(live), from = {...table?.state}, mine = ++turn, begun = performance.now()
    const dims = table ? Object.keys(state).filter((dim) => table.values[dim].length > 8 && from[dim] !== state[dim]) : []
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches
    if (!dims.length || still) { live.setv({state}); return }
    table.move({...state, ...Object.fromEntries(dims.map((dim) => [dim, from[dim]]))})
    const frame = () => {
      if (mine !== turn) return
      const way = Math.min(1, (performance.now() - begun) / LONG)
      table.move(Object.fromEntries(dims.map((dim) => [dim, Math.round(from[dim] + (state[dim] - from[dim]) * way)])))
      way < 1 ? requestAnimationFrame(frame) : live.setv({state})
    }
    frame()
  }

  const show = () => {
    if (data.step !== step) {
      step = data.step
      if (data.stage) data.stage = 0 // which shows it
    }
    if (key() === shown || !scenes[key()]) return
    shown = key()
    turn += 1
    for (const [id, attributes] of Object.entries(scenes[shown])) {
      const shows = doc.get_model_by_id(id)
      if (!shows) continue
      const changes = {}
      for (const [name, value] of hold(id, attributes)) {
        const next = value?.blob === undefined ? value : buffers[value.blob]
        if (shows[name] !== next) changes[name] = next
      }
      const {state, ...others} = changes
      if (state && !("table" in others)) {
        shows.setv(others)
        walk(shows, state)
      } else shows.setv(changes)
    }
  }
  for (const name of ["step", "guesses", "stage"]) data.properties[name].change.connect(show)
  show()
}
