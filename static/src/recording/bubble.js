/**
 * Frame around the camera's bubble in the preview, by which it is moved and resized: by pointer, by
 * the arrow keys, and by + and -.
 */

/** Step of a key, as a share of the picture. */
const STEP = 0.02;
const SMALLEST = 0.08;
const LARGEST = 0.6;
/** @type {Record<string, [x: number, y: number, size: number]>} */
const MOVES = {
  ArrowLeft: [-STEP, 0, 0],
  ArrowRight: [STEP, 0, 0],
  ArrowUp: [0, -STEP, 0],
  ArrowDown: [0, STEP, 0],
  "+": [0, 0, STEP],
  "-": [0, 0, -STEP],
};

/** @typedef {import("./composition.js").Bubble} Bubble */

export class BubbleFrame {
  /** @type {Bubble} */
  bubble = { x: 0.88, y: 0.82, size: 0.28, isHidden: false };

  /**
   * @param {HTMLElement} frame within `picture` @param {HTMLElement} picture
   * @param {(bubble: Bubble) => void} onChange @param {AbortSignal} signal
   */
  constructor(frame, picture, onChange, signal) {
    this.frame = frame;
    this.picture = picture;
    this.onChange = onChange;
    frame.addEventListener("keydown", (event) => this.#handleKey(event), { signal });
    frame.addEventListener("pointerdown", (event) => this.#drag(event), { signal });
    this.set({});
  }

  /** Change the bubble, within the picture. @param {Partial<Bubble>} changed */
  set(changed) {
    const { x, y, size, isHidden } = { ...this.bubble, ...changed };
    const allowed = within(size, SMALLEST, LARGEST);
    const { width, height } = this.picture.getBoundingClientRect();
    const radius = { x: (allowed * height) / width / 2 || 0, y: allowed / 2 };
    this.bubble = {
      x: within(x, radius.x, 1 - radius.x),
      y: within(y, radius.y, 1 - radius.y),
      size: allowed,
      isHidden,
    };
    this.frame.style.left = `${this.bubble.x * 100}%`;
    this.frame.style.top = `${this.bubble.y * 100}%`;
    this.frame.style.height = `${allowed * 100}%`;
    this.frame.classList.toggle("bubble--hidden", isHidden);
    this.onChange(this.bubble);
  }

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    const move = MOVES[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const [x, y, size] = move;
    const { bubble } = this;
    this.set({ x: bubble.x + x, y: bubble.y + y, size: bubble.size + size });
  }

  /** Move the bubble with the pointer, or resize it at its handle. @param {PointerEvent} event */
  #drag(event) {
    event.preventDefault();
    this.frame.focus();
    this.frame.setPointerCapture(event.pointerId);
    const { width, height } = this.picture.getBoundingClientRect();
    const { bubble: before } = this;
    const isResize = event.target !== this.frame;
    const ended = new AbortController();
    const { signal } = ended;
    /** @param {PointerEvent} now */
    const move = (now) => {
      const x = (now.clientX - event.clientX) / width;
      const y = (now.clientY - event.clientY) / height;
      if (isResize) this.set({ size: before.size + 2 * y });
      else this.set({ x: before.x + x, y: before.y + y });
    };
    this.frame.addEventListener("pointermove", move, { signal });
    for (const end of ["pointerup", "pointercancel"]) {
      this.frame.addEventListener(end, () => ended.abort(), { signal });
    }
  }
}

/** Return the nearest value in a range. @param {number} value @param {number} least @param {number} most */
function within(value, least, most) {
  return Math.min(Math.max(value, least), most);
}
