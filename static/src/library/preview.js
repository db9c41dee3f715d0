/**
 * Looking into a video without opening it: its storyboard plays on its card. A mouse moves through
 * it from left to right; with the keyboard's focus it steps on by itself, unless someone wants
 * less motion. Fingers have no hover, so nothing happens for them.
 */

// Whoever only passes over a card asks for nothing.
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
  /** @param {Preview | null} next */
  const show = (next) => {
    shown?.close();
    shown = next;
  };
  /** @param {Event} event */
  const over = (event) => {
    const card = cardOf(event);
    if (!(event instanceof PointerEvent) || event.pointerType === "touch") return;
    if (card !== shown?.card) show(card ? new Preview(card) : null);
    shown?.follow(event.clientX);
  };
  grid.addEventListener("pointerover", over, { signal });
  grid.addEventListener("pointermove", over, { signal });
  grid.addEventListener("pointerleave", () => show(null), { signal });
  grid.addEventListener("focusin", (event) => focus(event, show), { signal });
  grid.addEventListener("focusout", () => show(null), { signal });
  signal.addEventListener("abort", () => show(null));
}

/** @param {FocusEvent} event @param {(preview: Preview | null) => void} show */
function focus(event, show) {
  const card = cardOf(event);
  const byKeyboard = event.target instanceof Element && event.target.matches(":focus-visible");
  if (!card || !byKeyboard || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const preview = new Preview(card);
  show(preview);
  preview.play();
}

/** @param {Event} event @returns {HTMLElement | null} */
function cardOf(event) {
  const card = event.target instanceof Element ? event.target.closest("[data-storyboard]") : null;
  return card instanceof HTMLElement ? card : null;
}

class Preview {
  #closed = new AbortController();
  #canvas = document.createElement("canvas");
  #seek = document.createElement("span");
  /** @type {Promise<Frame[]> | null} */
  #frames = null;
  /** @type {Frame | null} */
  #wanted = null;
  #share = 0;

  /** @param {HTMLElement} card */
  constructor(card) {
    this.card = card;
    this.#canvas.width = WIDTH;
    this.#canvas.height = HEIGHT;
    this.#canvas.className = "card__preview";
    this.#seek.className = "card__seek";
    const timer = setTimeout(() => this.#open(), INTENT_MS);
    this.#closed.signal.addEventListener("abort", () => clearTimeout(timer));
  }

  /** @param {number} x of the pointer, in the window */
  follow(x) {
    const box = this.card.getBoundingClientRect();
    this.#share = Math.min(Math.max((x - box.left) / box.width, 0), 0.999);
    if (this.#frames) void this.#draw();
  }

  /** Steps through the whole video, again and again. */
  play() {
    const timer = setInterval(async () => {
      const frames = await this.#frames?.catch(() => []);
      // The first picture is looked at before there is a second.
      if (!frames?.length || !this.#canvas.isConnected) return;
      this.#share = (this.#share + 1 / Math.min(STEPS, frames.length)) % 1;
      void this.#draw();
    }, STEP_MS);
    this.#closed.signal.addEventListener("abort", () => clearInterval(timer));
  }

  close() {
    this.#closed.abort();
    this.#canvas.remove();
    this.#seek.remove();
  }

  async #open() {
    this.#frames = loadStoryboard(this.card.dataset.storyboard ?? "");
    await this.#draw();
  }

  async #draw() {
    try {
      const frames = (await this.#frames) ?? [];
      const frame = frames[Math.floor(this.#share * frames.length)];
      if (!frame || frame === this.#wanted) return this.#point();
      this.#wanted = frame;
      const image = new Image();
      image.src = frame.url;
      await image.decode();
      // By now the pointer may want another one.
      if (this.#wanted !== frame || this.#closed.signal.aborted) return;
      this.#paint(frame, image);
    } catch {
      // The poster stays; a preview is no news worth telling.
      this.#frames = null;
    }
  }

  /** @param {Frame} frame @param {HTMLImageElement} image */
  #paint(frame, image) {
    // As the poster: the whole card is covered, what stands out is cut off.
    const scale = Math.min(frame.width / WIDTH, frame.height / HEIGHT);
    const [width, height] = [WIDTH * scale, HEIGHT * scale];
    const x = frame.x + (frame.width - width) / 2;
    const y = frame.y + (frame.height - height) / 2;
    this.#canvas.getContext("2d")?.drawImage(image, x, y, width, height, 0, 0, WIDTH, HEIGHT);
    if (!this.#canvas.isConnected) {
      this.card.querySelector(".card__media")?.append(this.#canvas, this.#seek);
    }
    this.#point();
  }

  #point() {
    this.#seek.style.transform = `scaleX(${this.#share.toFixed(3)})`;
  }
}

/** @type {Map<string, Promise<Frame[]>>} */
const storyboards = new Map();

/** @param {string} url @returns {Promise<Frame[]>} its pictures, evenly spread over the video */
function loadStoryboard(url) {
  const loading = storyboards.get(url) ?? readStoryboard(url);
  storyboards.set(url, loading);
  // What failed may be tried again.
  loading.catch(() => storyboards.delete(url));
  return loading;
}

/** @param {string} url @returns {Promise<Frame[]>} */
async function readStoryboard(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const lines = (await response.text()).split(/\r?\n/);
  return lines.flatMap((line) => {
    const cue = CUE.exec(line.trim());
    if (!cue) return [];
    const [x = 0, y = 0, width = 0, height = 0] = cue.slice(2).map(Number);
    return { url: new URL(cue[1] ?? "", response.url).href, x, y, width, height };
  });
}
