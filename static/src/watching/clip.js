/**
 * Panel that makes the addresses of a clip, by two handles on a strip of the video, which also have
 * fields for their times and buttons that set them to the player's position. The page's player shows
 * the frame at a moving handle, and plays the clip.
 */

import { BOUNDS, listenToBounds, moveBound, showBounds } from "../bounds.js";
import { closest, element } from "../dom.js";
import { formatBriefTime } from "../format.js";
import { pauseAtEnd } from "../player/clip.js";
import { Scrubber } from "../player/scrubber.js";
import { Strip } from "../strip.js";
import { parseFrame, setValue } from "./share.js";
import { playerVideo } from "./watch.js";

// Length of the clip that is offered first.
const FIRST_LENGTH_S = 30;
const SHORTEST_S = 1;
const STEPS = { step_s: 1, shiftStep_s: 0.1 };
// The last frame of a clip is shown this long before the end of the clip.
const BEFORE_END_S = 0.02;

/** @param {HTMLElement} panel @param {AbortSignal} signal */
export function startClipPanel(panel, signal) {
  const video = playerVideo();
  if (panel instanceof HTMLDetailsElement && video) new ClipPanel(panel, video, signal);
}

class ClipPanel {
  /** @type {import("../bounds.js").Part | null} */
  #clip = null;
  /** Ends the watch over the last preview. */
  #preview = new AbortController();

  /** @param {HTMLDetailsElement} panel @param {HTMLVideoElement} video @param {AbortSignal} signal */
  constructor(panel, video, signal) {
    this.panel = panel;
    this.video = video;
    this.film_s = Number(panel.dataset.clipPanel);
    this.whole = { startSeconds: 0, endSeconds: this.film_s };
    this.scrubber = new Scrubber(video, signal);
    const gestures = { seek: this.#seek.bind(this), select: this.#drag.bind(this) };
    this.strip = new Strip(panel, this.film_s, gestures, signal);
    // Keys may reach a handle before the panel is told that it was opened.
    showBounds(panel, this.whole, formatBriefTime);
    panel.hidden = false;
    panel.addEventListener("toggle", () => this.#open(), { signal });
    listenToBounds(panel, { move: this.#adjust.bind(this), ...STEPS }, signal);
    for (const bound of BOUNDS) {
      const set = () => this.#move(bound, this.scrubber.position_s);
      element(panel, `[data-clip-set=${bound}]`).addEventListener("click", set, { signal });
    }
    const play = () => this.#play(signal);
    element(panel, "[data-clip-play]").addEventListener("click", play, { signal });
    const handleClick = (/** @type {MouseEvent} */ { target }) => {
      const factor = Number(closest(target, "[data-clip-zoom]")?.dataset.clipZoom);
      if (factor) this.strip.zoom(factor, this.scrubber.position_s);
    };
    panel.addEventListener("click", handleClick, { signal });
    const follow = () => panel.open && this.strip.follow(this.scrubber.position_s);
    for (const name of ["timeupdate", "seeking"]) video.addEventListener(name, follow, { signal });
  }

  /** Offer a clip at the player's position when the panel is opened first. */
  #open() {
    const { panel, video, film_s } = this;
    if (!panel.open) return;
    panel.scrollIntoView({ block: "start" });
    if (this.#clip) return;
    const thumbnails = video.querySelector("track[label=thumbnails]");
    this.strip.load({ storyboard: thumbnails?.getAttribute("src") ?? "" });
    const startSeconds = Math.min(video.currentTime, Math.max(film_s - FIRST_LENGTH_S, 0));
    this.#clip = { startSeconds, endSeconds: film_s };
    this.#move("endSeconds", startSeconds + FIRST_LENGTH_S);
    this.#move("startSeconds", startSeconds);
    this.strip.follow(video.currentTime);
  }

  /** @param {number} to_s */
  #seek(to_s) {
    this.#preview.abort();
    this.video.pause();
    this.scrubber.seek(to_s);
  }

  /** Move a bound by its handle or its field, and show the frame there. @param {import("../bounds.js").Bound} bound @param {number} to_s */
  #adjust(bound, to_s) {
    this.#move(bound, to_s);
    const { startSeconds, endSeconds } = this.#clip ?? this.whole;
    this.#seek(bound === "startSeconds" ? startSeconds : endSeconds - BEFORE_END_S);
  }

  /** Select the clip between two times, of which the second one is the pointer's. @param {number} from_s @param {number} to_s */
  #drag(from_s, to_s) {
    this.#clip = this.whole;
    this.#move("startSeconds", Math.min(from_s, to_s));
    this.#adjust("endSeconds", Math.max(from_s, to_s));
    if (to_s < from_s) this.#seek(to_s);
  }

  /**
   * Move a bound as far as the other one allows, to a tenth of a second or the end of the film.
   * @param {import("../bounds.js").Bound} bound @param {number} to_s
   */
  #move(bound, to_s) {
    const { panel, film_s } = this;
    const moved = moveBound(this.#clip ?? this.whole, bound, to_s, SHORTEST_S, film_s);
    const at_s = moved[bound] < film_s ? Math.round(moved[bound] * 10) / 10 : film_s;
    this.#clip = { ...moved, [bound]: at_s };
    const { startSeconds, endSeconds } = this.#clip;
    showBounds(panel, this.#clip, formatBriefTime);
    this.strip.show([], this.#clip);
    /** @param {string} address */
    const clipAddress = (address) => {
      const url = new URL(address);
      if (startSeconds > 0) url.searchParams.set("start", String(startSeconds));
      if (endSeconds < film_s) url.searchParams.set("end", String(endSeconds));
      return String(url);
    };
    for (const id of ["clip-page-address", "clip-stream-address"]) setValue(id, clipAddress);
    setValue("clip-embed-code", (code) => {
      const frame = parseFrame(code);
      frame?.setAttribute("src", clipAddress(frame.src));
      return frame?.outerHTML ?? code;
    });
  }

  /** @param {AbortSignal} signal */
  #play(signal) {
    const { video } = this;
    if (!this.#clip) return;
    this.#preview.abort();
    this.#preview = new AbortController();
    const part = { start_s: this.#clip.startSeconds, end_s: this.#clip.endSeconds };
    this.scrubber.jump(part.start_s);
    const watch = () => pauseAtEnd(part, video, AbortSignal.any([signal, this.#preview.signal]));
    video.play().then(watch, () => {});
  }
}
