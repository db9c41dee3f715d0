/** Plays the stream without hls.js where hls.js can't: iPhones before iOS 17.1. */
import { isGone } from "./troubles.js";

/** @type {Record<number, import("./troubles.js").Trouble>} */
const TROUBLES = { 2: "network", 3: "decode" }; // by the code of MediaError

/** @param {HTMLVideoElement} video */
export function isNative(video) {
  const hasMediaSource = "MediaSource" in window || "ManagedMediaSource" in window;
  return !hasMediaSource && video.canPlayType("application/vnd.apple.mpegurl") !== "";
}

/** Interface of HlsStream; the browser chooses qualities and recovers by itself. */
export class NativeStream extends EventTarget {
  /** Unknown in the browser's own player. @type {number | undefined} */
  framesPerSecond;

  /**
   * @param {HTMLVideoElement} video @param {unknown} _lists @param {AbortSignal} signal
   */
  constructor(video, _lists, signal) {
    super();
    this.video = video;
    this.source = video.dataset.src ?? "";
    video.addEventListener("error", () => this.#explain(signal), { signal });
  }

  /** @param {number | null} at_s where to start */
  open(at_s) {
    const { video } = this;
    const start = () => (video.currentTime = at_s ?? 0);
    video.addEventListener("loadedmetadata", start, { once: true });
    // Segments come from storage, which is another origin.
    video.crossOrigin = "anonymous";
    video.src = this.source;
  }

  close() {
    this.video.removeAttribute("src");
    this.video.load();
  }

  /** @param {string} source @returns {boolean} false: the browser reads a playlist once */
  adoptQualities(source) {
    this.source = source;
    return false;
  }

  /** @param {AbortSignal} signal */
  async #explain(signal) {
    const code = this.video.error?.code ?? 0;
    const detail = (await isGone(this.source, signal)) ? "gone" : (TROUBLES[code] ?? "unsupported");
    this.dispatchEvent(new CustomEvent("trouble", { detail }));
  }
}
