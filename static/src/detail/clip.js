/**
 * Panel that makes the addresses of a clip, by two handles on a line, which also have fields for
 * their times and buttons that set them to the player's position. The page's player plays the clip.
 */

import { BOUNDS, listenToBounds, moveBound, showBounds } from "../bounds.js";
import { element } from "../dom.js";
import { formatBriefTime } from "../format.js";
import { pauseAtEnd } from "../player/clip.js";
import { parseFrame, setValue } from "./share.js";
import { playerVideo } from "./watch.js";

// Length of the clip that is offered first.
const FIRST_LENGTH_S = 30;
const SHORTEST_S = 1;
const STEPS = { step_s: 1, shiftStep_s: 0.1 };

/** @param {HTMLElement} panel @param {AbortSignal} signal */
export function startClipPanel(panel, signal) {
  if (panel instanceof HTMLDetailsElement) new ClipPanel(panel, signal);
}

class ClipPanel {
  /** @type {import("../bounds.js").Part | null} */
  #clip = null;
  /** Ends the watch over the last preview. */
  #preview = new AbortController();

  /** @param {HTMLDetailsElement} panel @param {AbortSignal} signal */
  constructor(panel, signal) {
    this.panel = panel;
    this.film_s = Number(panel.dataset.clipPanel);
    this.whole = { startSeconds: 0, endSeconds: this.film_s };
    // Keys may reach a handle before the panel is told that it was opened.
    showBounds(panel, this.whole, formatBriefTime);
    panel.hidden = false;
    panel.addEventListener("toggle", () => this.#open(), { signal });
    const move = this.#move.bind(this);
    listenToBounds(panel, { move, ...STEPS }, signal);
    for (const bound of BOUNDS) {
      const set = () => move(bound, playerPosition_s());
      element(panel, `[data-clip-set=${bound}]`).addEventListener("click", set, { signal });
    }
    const play = () => this.#play(signal);
    element(panel, "[data-clip-play]").addEventListener("click", play, { signal });
  }

  /** Offer a clip at the player's position when the panel is opened first. */
  #open() {
    if (!this.panel.open) return;
    this.panel.scrollIntoView({ block: "nearest" });
    if (this.#clip) return;
    const startSeconds = Math.min(playerPosition_s(), Math.max(this.film_s - FIRST_LENGTH_S, 0));
    this.#clip = { startSeconds, endSeconds: this.film_s };
    this.#move("endSeconds", startSeconds + FIRST_LENGTH_S);
    this.#move("startSeconds", startSeconds);
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
    const { style } = element(panel, ".clip__bar");
    style.setProperty("--from", `${(100 * startSeconds) / film_s}%`);
    style.setProperty("--to", `${(100 * endSeconds) / film_s}%`);
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
    const video = playerVideo();
    if (!video || !this.#clip) return;
    this.#preview.abort();
    this.#preview = new AbortController();
    const part = { start_s: this.#clip.startSeconds, end_s: this.#clip.endSeconds };
    video.currentTime = part.start_s;
    video.scrollIntoView({ block: "nearest" });
    const watch = () => pauseAtEnd(part, video, AbortSignal.any([signal, this.#preview.signal]));
    video.play().then(watch, () => {});
  }
}

function playerPosition_s() {
  return playerVideo()?.currentTime ?? 0;
}
