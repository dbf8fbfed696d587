// Browsers start no worker for a page that was opened as a file. There, a hidden frame runs the worker's script,
// so that the search works without a server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(script) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const scope = frame.contentWindow
      const load = url => new Promise((done, failed) => {
        const element = scope.document.createElement("script")
        element.onload = done
        element.onerror = failed
        element.src = url
        scope.document.body.append(element)
      })
      scope.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => load(url)), Promise.resolve())
      scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.scope = scope
      this.ready = load(script)
    }

    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.scope.frameElement.remove()
    }
  }
}
