/** Stream played by the browser itself, if hls.js can't play it: iPhones before iOS 17.1. */
import { isGone } from "./troubles.js";

/** @type {Record<number, import("./troubles.js").Trouble>} */
const TROUBLES = { 2: "network", 3: "decode" }; // by the code of MediaError

/** Return whether the browser plays HLS itself and hls.js can't. @param {HTMLVideoElement} video */
export function isNative(video) {
  const hasMediaSource = "MediaSource" in window || "ManagedMediaSource" in window;
  return !hasMediaSource && video.canPlayType("application/vnd.apple.mpegurl") !== "";
}

/**
 * Stream with the interface of HlsStream. The browser chooses qualities, and recovers from errors.
 */
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
    video.addEventListener("error", () => this.#reportTrouble(signal), { signal });
  }

  /** Start playback again. @param {number | null} at_s position; null for the start */
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

  /**
   * Set the source for the next `open`.
   * @param {string} source
   * @returns {boolean} always false, because the browser reads a playlist once
   */
  adoptQualities(source) {
    this.source = source;
    return false;
  }

  /** @param {AbortSignal} signal */
  async #reportTrouble(signal) {
    const code = this.video.error?.code ?? 0;
    const detail = (await isGone(this.source, signal)) ? "gone" : (TROUBLES[code] ?? "unsupported");
    this.dispatchEvent(new CustomEvent("trouble", { detail }));
  }
}
