/**
 * Panel that chooses a part of a film that is a file in the browser, by two handles on a strip of
 * pictures, and fields for their times. A video shows the frame at a moving handle.
 */

import { listenToBounds, moveBound, showBounds } from "../bounds.js";
import { element, setText } from "../dom.js";
import { formatExactTime } from "../format.js";
import { gettext } from "../messages.js";
import { Strip } from "../strip.js";

/** @typedef {import("../bounds.js").Part} Part */
/** @typedef {import("../bounds.js").Bound} Bound */
/** @typedef {import("./thumbnails.js").Preview} Preview */

/** Frames of the shortest part, unless it has another length. */
const SHORTEST_FRAMES = 2;
const LONG_STEP_S = 1;

/** Read length and pictures in a worker. @param {string} url @param {File} file @param {AbortSignal} signal */
function readPreview(url, file, signal) {
  const worker = new Worker(url, { type: "module", name: "preview" });
  /** @type {Promise<Preview>} */
  const preview = new Promise((resolve, reject) => {
    worker.addEventListener("message", ({ data }) => resolve(data));
    worker.addEventListener("error", reject);
    signal.addEventListener("abort", () => reject(signal.reason));
    worker.postMessage({ preview: file });
  });
  return preview.finally(() => worker.terminate());
}

/**
 * `part` is the part that was chosen before, null for the whole film; `move` is called with another
 * one, and with the length of the film; `shortest_s` is the length of the shortest part.
 * @typedef {{ url: string, file: File, part: Part | null, shortest_s?: number,
 *   move: (part: Part, film_s: number) => void }} Film with the address of the worker that reads it
 */

export class TrimPanel {
  /** @type {Preview | null} */
  #preview = null;

  /** @param {HTMLElement} root @param {Film} film @param {AbortSignal} signal */
  constructor(root, film, signal) {
    this.root = root;
    this.film = film;
    this.video = /** @type {HTMLVideoElement} */ (element(root, "video"));
    /** @type {Part} */
    this.part = { startSeconds: 0, endSeconds: 0 };
    root.ariaBusy = "true";
    setText(root, "[data-strip-fault]", gettext("Reading the film…"));
    this.#open(signal);
  }

  /** @param {AbortSignal} signal */
  async #open(signal) {
    const { root, video } = this;
    const { url, file, part } = this.film;
    const preview = await readPreview(url, file, signal).catch(() => null);
    if (signal.aborted) return;
    root.ariaBusy = "false";
    const isReadable = preview !== null && preview.duration_s > 0;
    const fault = isReadable ? "" : gettext("This file can’t be trimmed here.");
    setText(root, "[data-strip-fault]", fault);
    if (!isReadable) return;
    this.#preview = preview;
    const { duration_s, frame_s, sprite, width, height, count } = preview;
    const { shortest_s = SHORTEST_FRAMES * frame_s } = this.film;
    for (const input of root.querySelectorAll("input[type=range]")) {
      input.setAttribute("max", String(duration_s));
    }
    const gestures = {
      seek: (/** @type {number} */ at_s) => this.#show(at_s),
      select: (/** @type {number} */ from_s, /** @type {number} */ to_s) => {
        const startSeconds = Math.min(from_s, to_s, Math.max(duration_s - shortest_s, 0));
        const part = { startSeconds, endSeconds: startSeconds };
        const end_s = Math.max(from_s, to_s);
        this.#set(moveBound(part, "endSeconds", end_s, shortest_s, duration_s));
      },
    };
    this.strip = new Strip(root, duration_s, gestures, signal);
    const frames = Array.from({ length: count }, (_, index) => {
      return { url: sprite, x: index * width, y: 0, width, height };
    });
    this.strip.showFrames(frames);
    const move = (/** @type {Bound} */ bound, /** @type {number} */ to_s) => {
      this.#set(moveBound(this.part, bound, to_s, shortest_s, duration_s), bound);
    };
    listenToBounds(root, { move, step_s: frame_s, shiftStep_s: LONG_STEP_S }, signal);
    const follow = () => !video.paused && this.strip?.follow(video.currentTime);
    video.addEventListener("timeupdate", follow, { signal });
    if (!video.src) this.#openVideo(signal);
    signal.addEventListener("abort", () => {
      showBounds(root, null, formatExactTime);
      delete root.dataset.ready;
    });
    this.show(part);
    root.dataset.ready = "";
  }

  /** Let the video show the film, if its page doesn't. @param {AbortSignal} signal */
  #openVideo(signal) {
    const { video } = this;
    const address = URL.createObjectURL(this.film.file);
    video.src = address;
    video.addEventListener("error", () => video.toggleAttribute("hidden", true), { signal });
    signal.addEventListener("abort", () => {
      video.removeAttribute("src");
      video.load();
      URL.revokeObjectURL(address);
    });
  }

  /** Show the part that is chosen. @param {Part | null} part null for the whole film */
  show(part) {
    if (!this.#preview || !this.strip) return;
    const { duration_s } = this.#preview;
    this.part = part ?? { startSeconds: 0, endSeconds: duration_s };
    const { startSeconds, endSeconds } = this.part;
    showBounds(this.root, this.part, formatExactTime);
    const removed = [
      { startSeconds: 0, endSeconds: startSeconds },
      { startSeconds: endSeconds, endSeconds: duration_s },
    ];
    const longer = removed.filter((other) => other.endSeconds > other.startSeconds);
    this.strip.show(longer, null);
  }

  /** @param {Part} part @param {Bound} [bound] that was moved */
  #set(part, bound = "startSeconds") {
    this.show(part);
    this.#show(part[bound]);
    this.film.move(part, this.#preview?.duration_s ?? 0);
  }

  /** Show the frame at a time. @param {number} at_s */
  #show(at_s) {
    this.video.currentTime = at_s;
    this.strip?.follow(at_s);
  }
}
