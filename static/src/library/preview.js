/**
 * Preview of a video on its card by its storyboard. The mouse scrubs through it from left to right;
 * with keyboard focus it plays, unless reduced motion is preferred. Touch shows none.
 */

// The pointer has to rest on a card this long before anything is fetched.
const INTENT_MS = 120;
const STEP_MS = 800;
const STEPS = 12;
const WIDTH = 640;
const HEIGHT = 360;
const TIMEOUT_MS = 10_000;
/** A line of a storyboard, which is WebVTT whose cues name parts of sprites. */
const CUE = /^(\S+)#xywh=(\d+),(\d+),(\d+),(\d+)$/;

/** @typedef {{ url: string, x: number, y: number, width: number, height: number }} Frame */

/** @param {HTMLElement} grid @param {AbortSignal} signal */
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
  const over = (event) => {
    if (event.pointerType === "touch") return;
    show(cardOf(event));
    shown?.follow(event.clientX);
  };
  /** @param {FocusEvent} event */
  const focused = (event) => {
    const byKeyboard = event.target instanceof Element && event.target.matches(":focus-visible");
    if (!byKeyboard || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    show(cardOf(event));
    shown?.play();
  };
  const end = () => show(null);
  grid.addEventListener("pointerover", over, { signal });
  grid.addEventListener("pointermove", over, { signal });
  grid.addEventListener("pointerleave", end, { signal });
  grid.addEventListener("focusin", focused, { signal });
  grid.addEventListener("focusout", end, { signal });
  signal.addEventListener("abort", end);
}

/** @param {Event} event @returns {HTMLElement | null} */
function cardOf(event) {
  const card = event.target instanceof Element ? event.target.closest("[data-storyboard]") : null;
  return card instanceof HTMLElement ? card : null;
}

class Preview {
  #canvas = document.createElement("canvas");
  #seek = document.createElement("span");
  /** @type {Frame[]} */
  #frames = [];
  /** @type {Frame | undefined} */
  #wanted;
  #share = 0;
  #isClosed = false;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #steps;

  /** @param {HTMLElement} card */
  constructor(card) {
    this.card = card;
    this.#canvas.width = WIDTH;
    this.#canvas.height = HEIGHT;
    this.#canvas.className = "card__preview";
    this.#seek.className = "card__seek";
    setTimeout(() => this.#open(), INTENT_MS);
  }

  /** @param {number} x of the pointer, in the window */
  follow(x) {
    const box = this.card.getBoundingClientRect();
    this.#share = Math.min(Math.max((x - box.left) / box.width, 0), 0.999);
    this.#draw();
  }

  /** Steps through the whole video in a loop. */
  play() {
    this.#steps = setInterval(() => {
      // The first picture must be visible before the loop starts.
      if (!this.#canvas.isConnected) return;
      this.#share = (this.#share + 1 / Math.min(STEPS, this.#frames.length)) % 1;
      this.#draw();
    }, STEP_MS);
  }

  close() {
    this.#isClosed = true;
    clearInterval(this.#steps);
    this.#canvas.remove();
    this.#seek.remove();
  }

  async #open() {
    if (this.#isClosed) return;
    // On failure the poster stays.
    this.#frames = await storyboard(this.card.dataset.storyboard ?? "").catch(() => []);
    this.#draw();
  }

  async #draw() {
    this.#seek.style.transform = `scaleX(${this.#share.toFixed(3)})`;
    const frame = this.#frames[Math.floor(this.#share * this.#frames.length)];
    if (!frame || frame === this.#wanted) return;
    this.#wanted = frame;
    const image = new Image();
    image.src = frame.url;
    await image.decode().catch(() => {});
    // The pointer may have left the card.
    if (image.naturalWidth && this.#wanted === frame && !this.#isClosed) this.#paint(frame, image);
  }

  /** @param {Frame} frame @param {HTMLImageElement} image */
  #paint(frame, image) {
    // Like `object-fit: cover`.
    const scale = Math.min(frame.width / WIDTH, frame.height / HEIGHT);
    const [width, height] = [WIDTH * scale, HEIGHT * scale];
    const x = frame.x + (frame.width - width) / 2;
    const y = frame.y + (frame.height - height) / 2;
    this.#canvas.getContext("2d")?.drawImage(image, x, y, width, height, 0, 0, WIDTH, HEIGHT);
    if (!this.#canvas.isConnected) {
      this.card.querySelector(".card__media")?.append(this.#canvas, this.#seek);
    }
  }
}

/** Storyboards by URL. @type {Map<string, Frame[]>} */
const storyboards = new Map();

/** @param {string} url @returns {Promise<Frame[]>} its pictures, evenly spread over the video */
async function storyboard(url) {
  const known = storyboards.get(url);
  if (known) return known;
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const lines = (await response.text()).split(/\r?\n/);
  const frames = lines.flatMap((line) => {
    const cue = CUE.exec(line.trim());
    if (!cue) return [];
    const [x = 0, y = 0, width = 0, height = 0] = cue.slice(2).map(Number);
    return { url: new URL(cue[1] ?? "", response.url).href, x, y, width, height };
  });
  storyboards.set(url, frames);
  return frames;
}
