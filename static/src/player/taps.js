/**
 * Tapping twice in the left or right third of the picture goes 10 s back or on, and each further
 * tap 10 s more. A single tap shows and hides the controls, which is media-chrome's; of two it
 * undoes with the second what it did with the first, and hears of no further ones. Only fingers
 * tap: a mouse that clicks twice has its own meaning.
 */
import { leapWords } from "./sign.js";

const STEP_S = 10;
// Taps that are further apart than this are single ones.
const PAUSE_MS = 350;
// A finger that stays longer or goes further doesn't tap.
const PRESS_MS = 400;
const DRIFT_PX = 20;

/** @typedef {-1 | 0 | 1} Side */
/** @typedef {import("./sign.js").ShowSign} ShowSign */

/**
 * @param {HTMLElement} controller
 * @param {HTMLVideoElement} video
 * @param {ShowSign} showSign
 * @param {AbortSignal} signal
 */
export function listenToTaps(controller, video, showSign, signal) {
  const taps = new Taps(controller, video, showSign);
  const options = { capture: true, signal };
  // Above the controller, which would act on a tap before.
  const frame = controller.parentElement ?? controller;
  frame.addEventListener("pointerdown", (event) => taps.down(event), options);
  frame.addEventListener("pointerup", (event) => taps.up(event), options);
}

class Taps {
  /** @type {PointerEvent | null} */
  #pressed = null;
  #count = 0;
  #last_ms = Number.NEGATIVE_INFINITY;
  /** @type {Side} */
  #side = 0;

  /**
   * @param {HTMLElement} controller
   * @param {HTMLVideoElement} video
   * @param {ShowSign} showSign
   */
  constructor(controller, video, showSign) {
    this.controller = controller;
    this.video = video;
    this.showSign = showSign;
  }

  /** @param {PointerEvent} event */
  down(event) {
    this.#pressed = event.pointerType === "touch" && event.isPrimary ? event : null;
  }

  /** @param {PointerEvent} event */
  up(event) {
    const isTap = this.#isTap(event);
    this.#pressed = null;
    if (!isTap) return;
    const side = this.#sideOf(event.clientX);
    const isNext = side === this.#side && event.timeStamp - this.#last_ms < PAUSE_MS;
    this.#count = isNext ? this.#count + 1 : 1;
    this.#side = side;
    this.#last_ms = event.timeStamp;
    if (side === 0 || this.#count < 2) return;
    if (this.#count > 2) event.stopPropagation();
    this.#leap(side);
  }

  /** @param {PointerEvent} event */
  #isTap(event) {
    const from = this.#pressed;
    // The picture alone; buttons on it have their own use for a tap.
    if (!from || (event.target !== this.video && event.target !== this.controller)) return false;
    const drift_px = Math.hypot(event.clientX - from.clientX, event.clientY - from.clientY);
    return event.timeStamp - from.timeStamp < PRESS_MS && drift_px < DRIFT_PX;
  }

  /**
   * @param {number} x
   * @returns {Side}
   */
  #sideOf(x) {
    const { left, width } = this.controller.getBoundingClientRect();
    const share = (x - left) / width;
    if (share < 1 / 3) return -1;
    return share > 2 / 3 ? 1 : 0;
  }

  /** @param {-1 | 1} side */
  #leap(side) {
    const { video } = this;
    if (!Number.isFinite(video.duration)) return;
    const to_s = video.currentTime + side * STEP_S;
    video.currentTime = Math.min(Math.max(to_s, 0), video.duration);
    this.showSign(leapWords(side * (this.#count - 1) * STEP_S));
  }
}
