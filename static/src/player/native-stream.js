/** Plays HLS by the browser's own means, where Media Source Extensions are missing. */
import { lookFor } from "./troubles.js";

const HLS_TYPE = "application/vnd.apple.mpegurl";

/** The same interface as HlsStream; the browser chooses qualities and recovers by itself. */
export class NativeStream extends EventTarget {
  /** The browser doesn't tell. @type {number | undefined} */
  framesPerSecond;
  #opened = new AbortController();

  /** @param {HTMLVideoElement} video @param {string} source */
  constructor(video, source) {
    super();
    this.video = video;
    this.source = source;
  }

  /** @param {number | null} at_s */
  open(at_s) {
    const { video } = this;
    if (!video.canPlayType(HLS_TYPE)) return this.#fail("unsupported");
    this.#opened = new AbortController();
    const { signal } = this.#opened;
    video.addEventListener("error", () => this.#explain(signal), { signal });
    const start = () => {
      if (at_s !== null) video.currentTime = at_s;
      this.dispatchEvent(new Event("recovered"));
    };
    video.addEventListener("loadedmetadata", start, { signal, once: true });
    // Segments come from storage, which is another origin; Chromium plays those only by CORS.
    video.crossOrigin = "anonymous";
    video.src = this.source;
  }

  close() {
    this.#opened.abort();
    this.video.removeAttribute("src");
    this.video.load();
  }

  /** @returns {boolean} whether the stream has to be opened anew for them, which it has */
  adoptQualities() {
    return false;
  }

  /** @param {AbortSignal} signal */
  async #explain(signal) {
    const code = this.video.error?.code;
    const found = await lookFor(this.source, signal);
    if (signal.aborted) return;
    if (found === "gone") this.#fail("gone");
    else if (found === "unreachable" || code === MediaError.MEDIA_ERR_NETWORK)
      this.#fail("network");
    else this.#fail(code === MediaError.MEDIA_ERR_DECODE ? "decode" : "unsupported");
  }

  /** @param {import("./troubles.js").Trouble} trouble */
  #fail(trouble) {
    this.dispatchEvent(new CustomEvent("trouble", { detail: trouble }));
  }
}
