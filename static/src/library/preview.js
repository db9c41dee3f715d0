/**
 * Preview of a video on its card, from its storyboard. The mouse scrubs through it from left to
 * right; keyboard focus plays it, unless reduced motion is preferred. There is none for touch.
 */

import { closest } from "../dom.js";
import { send } from "../requests.js";

// The pointer has to rest on a card this long before anything is fetched.
const INTENT_MS = 120;
const STEP_MS = 800;
const STEPS = 12;
const WIDTH = 640;
const HEIGHT = 360;
const TIMEOUT_MS = 10_000;
/** Line of a storyboard: a WebVTT file whose cues name parts of sprites. */
const CUE = /^(\S+)#xywh=(\d+),(\d+),(\d+),(\d+)$/;

/** @typedef {{ url: string, x: number, y: number, width: number, height: number }} Frame */

/** Show previews on the cards of a grid. @param {HTMLElement} grid @param {AbortSignal} signal */
export function startPreviews(grid, signal) {
  /** @type {Preview | null} */
  let shown = null;
  /** @param {HTMLElement | null} card */
  const show = (card) => {
    if (card === (shown?.card ?? null)) return;
    shown?.close();
    shown = card && new Preview(card);
  };
  /** @param {PointerEvent} event */
  const handlePointer = (event) => {
    if (event.pointerType === "touch") return;
    show(cardOf(event));
    shown?.follow(event.clientX);
  };
  /** @param {FocusEvent} event */
  const handleFocus = (event) => {
    const byKeyboard = event.target instanceof Element && event.target.matches(":focus-visible");
    if (!byKeyboard || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    show(cardOf(event));
    shown?.play();
  };
  const closePreview = () => show(null);
  grid.addEventListener("pointerover", handlePointer, { signal });
  grid.addEventListener("pointermove", handlePointer, { signal });
  grid.addEventListener("pointerleave", closePreview, { signal });
  grid.addEventListener("focusin", handleFocus, { signal });
  grid.addEventListener("focusout", closePreview, { signal });
  signal.addEventListener("abort", closePreview);
}

/** @param {Event} event */
function cardOf({ target }) {
  return closest(target, "[data-storyboard]");
}

class Preview {
  #canvas = document.createElement("canvas");
  #progressLine = document.createElement("span");
  /** @type {Frame[]} */
  #frames = [];
  /** @type {Frame | undefined} */
  #nextFrame;
  #position = 0;
  #isClosed = false;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #steps;

  /** @param {HTMLElement} card */
  constructor(card) {
    this.card = card;
    this.#canvas.width = WIDTH;
    this.#canvas.height = HEIGHT;
    this.#canvas.className = "card__preview";
    this.#progressLine.className = "card__seek";
    setTimeout(() => this.#open(), INTENT_MS);
  }

  /** @param {number} x of the pointer, in the window */
  follow(x) {
    const box = this.card.getBoundingClientRect();
    this.#position = Math.min(Math.max((x - box.left) / box.width, 0), 0.999);
    this.#draw();
  }

  /** Step through the whole video in a loop. */
  play() {
    this.#steps = setInterval(() => {
      // The first picture must be visible before the loop starts.
      if (!this.#canvas.isConnected) return;
      this.#position = (this.#position + 1 / Math.min(STEPS, this.#frames.length)) % 1;
      this.#draw();
    }, STEP_MS);
  }

  close() {
    this.#isClosed = true;
    clearInterval(this.#steps);
    this.#canvas.remove();
    this.#progressLine.remove();
  }

  async #open() {
    if (this.#isClosed) return;
    // On failure the poster stays.
    this.#frames = await fetchStoryboard(this.card.dataset.storyboard ?? "").catch(() => []);
    this.#draw();
  }

  async #draw() {
    this.#progressLine.style.transform = `scaleX(${this.#position.toFixed(3)})`;
    const frame = this.#frames[Math.floor(this.#position * this.#frames.length)];
    if (!frame || frame === this.#nextFrame) return;
    this.#nextFrame = frame;
    const image = new Image();
    image.src = frame.url;
    await image.decode().catch(() => {});
    // The pointer may have left the card.
    if (image.naturalWidth && this.#nextFrame === frame && !this.#isClosed)
      this.#paint(frame, image);
  }

  /** @param {Frame} frame @param {HTMLImageElement} image */
  #paint(frame, image) {
    // Like `object-fit: cover`.
    const scale = Math.min(frame.width / WIDTH, frame.height / HEIGHT);
    const width = WIDTH * scale;
    const height = HEIGHT * scale;
    const x = frame.x + (frame.width - width) / 2;
    const y = frame.y + (frame.height - height) / 2;
    this.#canvas.getContext("2d")?.drawImage(image, x, y, width, height, 0, 0, WIDTH, HEIGHT);
    if (!this.#canvas.isConnected) {
      this.card.querySelector(".card__media")?.append(this.#canvas, this.#progressLine);
    }
  }
}

/** Storyboards by URL. @type {Map<string, Frame[]>} */
const storyboards = new Map();

/**
 * Return the pictures of a storyboard, which are evenly spread over the video.
 * @param {string} url @returns {Promise<Frame[]>} @throws {Refused | NoResponse}
 */
export async function fetchStoryboard(url) {
  const cached = storyboards.get(url);
  if (cached) return cached;
  const read = async (/** @type {Response} */ response) => ({
    lines: (await response.text()).split(/\r?\n/),
    address: response.url,
  });
  const { lines, address } = await send("GET", url, read, { timeout_ms: TIMEOUT_MS });
  const frames = lines.flatMap((line) => {
    const cue = CUE.exec(line.trim());
    if (!cue) return [];
    const [x = 0, y = 0, width = 0, height = 0] = cue.slice(2).map(Number);
    return { url: new URL(cue[1] ?? "", address).href, x, y, width, height };
  });
  storyboards.set(url, frames);
  return frames;
}
