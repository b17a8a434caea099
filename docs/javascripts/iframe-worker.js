"use strict";
// Browsers start no worker from a page on disk. There a hidden frame does the work of the search's worker:
// the same script, and the same messages to and fro.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      const answered = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((resolve) => frame.addEventListener("load", () => resolve(frame.contentWindow)));
      frame.srcdoc = `<script>self.postMessage = (data) => frameElement.answered(data);</` + `script><script src="${url}"></` + `script>`;
      frame.answered = answered;
      document.body.append(frame);
    }
    async postMessage(data) {
      const inner = await this.ready;
      inner.dispatchEvent(new inner.MessageEvent("message", { data }));
    }
    terminate() {}
  };
}
