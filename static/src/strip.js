/**
 * Strip of a film: a ruler, thumbnails, the waveform of the sound, and marks for parts of it. It can
 * be zoomed, and scrolls with the playhead. A press on the ruler moves the playhead; a drag over the
 * pictures selects a part, and a click on them moves the playhead.
 */

import { element, setText } from "./dom.js";
import { formatBriefTime, formatExactTime } from "./format.js";
import { fetchStoryboard } from "./library/preview.js";
import { gettext } from "./messages.js";
import { canRetry, Refused, send } from "./requests.js";
import { retry } from "./retry.js";

/**
 * @typedef {import("./bounds.js").Part} Part
 * @typedef {{ seek: (at_s: number) => void, click?: (at_s: number) => void,
 *   select: (from_s: number, to_s: number) => void }} Gestures
 */

const WIDEST_PX = 60_000;
// A pointer that has moved less has clicked.
const DRAG_PX = 4;
// Steps of the ruler, and their least width.
const STEPS_S = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];
const STEP_PX = 72;
// Peaks that are drawn of a waveform, and its height in the units of its drawing.
const PEAKS = 3000;
const HEIGHT = 512;
const TIMEOUT_MS = 10_000;
const TRYING = gettext("The pictures or the sound of the strip can’t be loaded. Trying again…");
const FAILED = gettext(
  "The pictures or the sound of the strip couldn’t be loaded. Reload the page to try again.",
);

export class Strip {
  #zoom = 1;
  /** @type {Awaited<ReturnType<typeof fetchStoryboard>>} */
  #frames = [];

  /**
   * @param {HTMLElement} root with the scrolling container
   * @param {number} film_s @param {Gestures} gestures @param {AbortSignal} signal
   */
  constructor(root, film_s, gestures, signal) {
    this.root = root;
    this.box = element(root, "[data-strip]");
    this.film_s = film_s;
    this.gestures = gestures;
    this.signal = signal;
    this.canvas = element(root, "[data-strip-film]");
    this.ruler = element(root, "[data-strip-ruler]");
    this.playhead = /** @type {HTMLInputElement} */ (element(root, "[data-playhead]"));
    const moveByKey = () => gestures.seek(Number(this.playhead.value));
    this.playhead.addEventListener("input", moveByKey, { signal });
    this.canvas.addEventListener("pointerdown", (event) => this.#press(event), { signal });
    const sizeObserver = new ResizeObserver(() => this.#draw());
    sizeObserver.observe(this.canvas);
    signal.addEventListener("abort", () => sizeObserver.disconnect());
  }

  /** Follow a pressed pointer until it is released. @param {PointerEvent} press */
  #press(press) {
    const isHandle = press.target instanceof HTMLInputElement;
    if (isHandle || !press.isPrimary || press.button !== 0) return;
    const { canvas, gestures, film_s } = this;
    const timeAt_s = (/** @type {PointerEvent} */ { clientX }) => {
      const { left, width } = canvas.getBoundingClientRect();
      return Math.min(Math.max((clientX - left) / width, 0), 1) * film_s;
    };
    const from_s = timeAt_s(press);
    const isOnRuler = press.target instanceof Node && this.ruler.contains(press.target);
    let isDrag = isOnRuler;
    const move = (/** @type {PointerEvent} */ event) => {
      isDrag ||= Math.abs(event.clientX - press.clientX) >= DRAG_PX;
      if (isOnRuler) gestures.seek(timeAt_s(event));
      else if (isDrag) gestures.select(from_s, timeAt_s(event));
    };
    const released = new AbortController();
    const options = { signal: AbortSignal.any([this.signal, released.signal]) };
    const release = () => {
      released.abort();
      if (isDrag) return;
      gestures.seek(from_s);
      gestures.click?.(from_s);
    };
    // The press would select text, and move the focus to the page.
    press.preventDefault();
    this.playhead.focus({ preventScroll: true, focusVisible: false });
    canvas.setPointerCapture(press.pointerId);
    canvas.addEventListener("pointermove", move, options);
    canvas.addEventListener("pointerup", release, options);
    // Scrolling by touch is no drag.
    canvas.addEventListener("pointercancel", () => released.abort(), options);
    if (isOnRuler) move(press);
  }

  /** Draw the pictures and the sound, if the portal has them. @param {DOMStringMap} addresses */
  async load({ storyboard, waveform }) {
    const results = await Promise.allSettled([
      storyboard && this.#loadThumbnails(storyboard),
      waveform && this.#loadWaveform(waveform),
    ]);
    if (this.signal.aborted) return;
    const isComplete = results.every(({ status }) => status === "fulfilled");
    this.#showFault(isComplete ? "" : FAILED);
  }

  /** @param {string} storyboard */
  async #loadThumbnails(storyboard) {
    this.#frames = await this.#repeat(() => fetchStoryboard(storyboard));
    this.#draw();
    const sprites = [...new Set(this.#frames.map(({ url }) => url))];
    await Promise.all(sprites.map((url) => this.#repeat(() => loadImage(url))));
    // Backgrounds that failed aren't fetched again by themselves.
    this.#drawThumbnails();
  }

  /** Show frames that the page has itself. @param {Awaited<ReturnType<typeof fetchStoryboard>>} frames */
  showFrames(frames) {
    this.#frames = frames;
    this.#drawThumbnails();
  }

  /** @param {string} waveform */
  async #loadWaveform(waveform) {
    this.#drawWaveform(await this.#repeat(() => fetchPeaks(waveform)));
  }

  /**
   * Repeat a load while storage doesn't answer, and say so.
   * @template T @param {() => Promise<T>} load @returns {Promise<T>}
   */
  #repeat(load) {
    return retry(load, {
      signal: this.signal,
      // Images fail without a status.
      shouldRetry: (error) => !(error instanceof Refused) || canRetry(error),
      onError: () => this.#showFault(TRYING),
    });
  }

  /** @param {string} text */
  #showFault(text) {
    setText(this.root, "[data-strip-fault]", text);
  }

  /** @param {readonly Part[]} removed @param {Part | null} selection */
  show(removed, selection) {
    const marks = removed.map((part) => this.#createMark("strip__removed", part));
    if (selection) marks.push(this.#createMark("strip__selection", selection));
    element(this.box, "[data-strip-marks]").replaceChildren(...marks);
  }

  /** Move the playhead, and scroll to it. @param {number} at_s @param {string} [words] for the time */
  follow(at_s, words = formatExactTime(at_s)) {
    this.playhead.value = String(at_s);
    this.playhead.ariaValueText = words;
    this.#reveal(at_s);
  }

  /** Scroll to a time, if it isn't visible. @param {number} at_s @param {boolean} [isCentred] */
  #reveal(at_s, isCentred = false) {
    const x = (at_s / this.film_s) * this.canvas.clientWidth;
    const { scrollLeft, clientWidth } = this.box;
    const isVisible = x >= scrollLeft && x <= scrollLeft + clientWidth;
    if (isCentred || !isVisible) this.box.scrollLeft = x - clientWidth / 2;
  }

  /** Zoom around a time. @param {number} factor 2 or 0.5 @param {number} at_s */
  zoom(factor, at_s) {
    const widest = Math.max(WIDEST_PX / this.box.clientWidth, 1);
    this.#zoom = Math.min(Math.max(this.#zoom * factor, 1), widest);
    this.canvas.style.width = `${this.#zoom * 100}%`;
    this.canvas.toggleAttribute("data-zoomed", this.#zoom > 1);
    this.#reveal(at_s, true);
  }

  /** Draw what depends on the width of the strip. */
  #draw() {
    const least_s = (STEP_PX / this.canvas.clientWidth) * this.film_s;
    const step_s = STEPS_S.find((step) => step >= least_s) ?? Math.ceil(least_s / 3600) * 3600;
    const steps = Array.from({ length: Math.ceil(this.film_s / step_s) }, (_, index) => {
      const startSeconds = index * step_s;
      return this.#createMark("", { startSeconds, endSeconds: startSeconds + step_s });
    });
    for (const [index, step] of steps.entries()) step.textContent = formatBriefTime(index * step_s);
    this.ruler.replaceChildren(...steps);
    this.#drawThumbnails();
  }

  #drawThumbnails() {
    const row = element(this.box, "[data-strip-thumbnails]");
    const frames = this.#frames;
    const { clientWidth, clientHeight } = row;
    const scale = clientHeight / (frames[0]?.height ?? 1);
    const width = (frames[0]?.width ?? Infinity) * scale;
    const cells = Array.from({ length: Math.ceil(clientWidth / width) }, (_, index) => {
      const share = Math.min(((index + 0.5) * width) / clientWidth, 0.999);
      const frame = frames[Math.floor(share * frames.length)];
      const cell = document.createElement("span");
      if (frame) {
        cell.style.cssText = `left: ${index * width}px; width: ${frame.width}px; height: ${frame.height}px; scale: ${scale}`;
        cell.style.background = `url("${frame.url}") -${frame.x}px -${frame.y}px`;
      }
      return cell;
    });
    row.replaceChildren(...cells);
  }

  /** @param {Uint8Array} peaks of equal parts of the film */
  #drawWaveform(peaks) {
    const size = Math.ceil(peaks.length / PEAKS);
    const bars = Array.from({ length: Math.ceil(peaks.length / size) || 0 }, (_, index) => {
      const peak = Math.max(...peaks.subarray(index * size, (index + 1) * size));
      return `M${index} ${(HEIGHT - 2 * peak) / 2}v${2 * peak + 1}`;
    });
    const drawing = this.box.querySelector("[data-strip-waveform]");
    drawing?.setAttribute("viewBox", `0 0 ${bars.length} ${HEIGHT}`);
    drawing?.querySelector("path")?.setAttribute("d", bars.join(""));
  }

  /** @param {string} name @param {Part} part */
  #createMark(name, { startSeconds, endSeconds }) {
    const mark = document.createElement("span");
    mark.className = name;
    mark.style.left = `${(startSeconds / this.film_s) * 100}%`;
    mark.style.width = `${((endSeconds - startSeconds) / this.film_s) * 100}%`;
    return mark;
  }
}

/** Return the peaks of a waveform; films of former versions have none. @param {string} url */
async function fetchPeaks(url) {
  const read = (/** @type {Response} */ response) => response.arrayBuffer();
  return new Uint8Array(await send("GET", url, read, { timeout_ms: TIMEOUT_MS }));
}

/** Load an image into the browser's cache. @param {string} url */
function loadImage(url) {
  const image = new Image();
  image.src = url;
  return image.decode();
}
