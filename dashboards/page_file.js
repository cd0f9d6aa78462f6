// Opens a saved page: unpacks Bokeh, Panel and the document, and shows it. See page_file.py.

(async () => {
  const unpack = (id) => {
    const text = atob(document.getElementById(id).textContent)
    const bytes = new Uint8Array(text.length)
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i)
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text()
  }
  try {
    const [library, page] = await Promise.all([unpack("library"), unpack("document")])
    // The browser loads modules itself: nothing is fetched, for each is a piece of this file.
    globalThis.importShim = Object.assign((url) => import(url), {addImportMap() {}})
    const script = document.createElement("script")
    script.textContent = library
    document.head.append(script)
    const {id, json, roots} = JSON.parse(page)
    await Bokeh.embed.embed_items({[id]: json}, [{docid: id, roots, root_ids: Object.keys(roots)}])
  } catch (error) {
    document.getElementById("page").textContent =
      `This browser cannot show the page: ${error.message}. It needs to be no older than 2023.`
    throw error
  }
})()
