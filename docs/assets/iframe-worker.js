// Browsers start no web workers for pages that are opened from disk (file:). The search index then runs in a hidden
// frame: `postMessage` of page and frame replaces that of the worker.
if (window.location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search index";
      const code = `
        const page = window.parent;
        window.postMessage = data => page.dispatchEvent(new CustomEvent("${this.name = `worker-${Math.random()}`}", {detail: data}));
        window.importScripts = (...urls) => urls.reduce((last, url) => last.then(() => new Promise((done, failed) => {
          const script = document.createElement("script");
          Object.assign(script, {src: url, onload: done, onerror: failed});
          document.head.appendChild(script);
        })), Promise.resolve());`;
      window.addEventListener(this.name, event => {
        const message = new MessageEvent("message", {data: event.detail});
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      this.waiting = [];
      this.frame.addEventListener("load", () => {
        this.loaded = true;
        this.waiting.splice(0).forEach(data => this.postMessage(data));
      });
      this.frame.srcdoc = `<script>${code}<\/script><script src="${new URL(url, document.baseURI)}"><\/script>`;
      document.body.appendChild(this.frame);
    }
    postMessage(data) {
      if (!this.loaded) return void this.waiting.push(data);
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data}));
    }
    terminate() { this.frame.remove(); }
  };
}
