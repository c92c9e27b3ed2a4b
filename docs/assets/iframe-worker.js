/* Browsers refuse workers to a page that is opened from disk. There the search runs in a hidden frame instead. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      frame.srcdoc = "<!doctype html>"
      this.window = new Promise((resolve, reject) => {
        frame.onload = () => {
          const inner = frame.contentWindow
          inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
          const script = inner.document.createElement("script")
          script.src = url
          script.onload = () => resolve(inner)
          script.onerror = () => reject(new Error(`no script at ${url}`))
          inner.document.head.append(script)
        }
      })
      document.body.append(frame)
    }

    postMessage(data) {
      this.window.then(inner => inner.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
}
