/**
 * A long list of which only the rows in sight are in the page. All rows are as high as the first. The
 * row that has the focus stays where it is, out of sight, too.
 */

// Rows above and below what is seen, so that scrolling finds them there.
const SPARE = 6;

/** @typedef {{ create: () => HTMLElement, fill: (row: HTMLElement, index: number) => void }} Rows */

export class VirtualList {
  #count = 0;
  #height = 0;
  /** @type {Map<number, HTMLElement>} */
  #rows = new Map();

  /**
   * @param {HTMLElement} box scrolls @param {HTMLElement} list is as high as all rows
   * @param {Rows} rows @param {AbortSignal} signal
   */
  constructor(box, list, rows, signal) {
    this.box = box;
    this.list = list;
    this.rows = rows;
    box.addEventListener("scroll", () => this.#draw(), { signal, passive: true });
    const sized = new ResizeObserver(() => this.#measure());
    sized.observe(box);
    signal.addEventListener("abort", () => sized.disconnect());
  }

  /** Draws so many rows anew. @param {number} count */
  show(count) {
    this.#count = count;
    if (!this.#height) this.#measure();
    else this.#draw(true);
  }

  /** @param {number} index @returns {HTMLElement | undefined} the row, once it is in sight */
  reveal(index) {
    const top = index * this.#height;
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop || top + this.#height > scrollTop + clientHeight) {
      this.box.scrollTop = top - (clientHeight - this.#height) / 2;
      this.#draw();
    }
    return this.#rows.get(index);
  }

  /** @param {number} index @returns {HTMLElement | undefined} */
  rowAt(index) {
    return this.#rows.get(index);
  }

  #measure() {
    if (!this.#count) return this.#draw(true);
    const probe = this.#rows.values().next().value ?? this.#row(0);
    this.#height = probe.getBoundingClientRect().height;
    this.#draw(true);
  }

  #draw(isNew = false) {
    this.list.style.height = `${this.#count * this.#height}px`;
    const { scrollTop, clientHeight } = this.box;
    const first = Math.max(Math.floor(scrollTop / (this.#height || 1)) - SPARE, 0);
    const last = Math.min(
      first + Math.ceil(clientHeight / (this.#height || 1)) + 2 * SPARE,
      this.#count,
    );
    for (const [index, row] of this.#rows) {
      const isSeen = index >= first && index < last;
      if (isSeen || (index < this.#count && row.contains(document.activeElement))) continue;
      row.remove();
      this.#rows.delete(index);
    }
    for (let index = first; index < last; index += 1) {
      const row = this.#rows.get(index);
      if (!row) this.#row(index);
    }
    for (const [index, row] of this.#rows) {
      row.style.transform = `translateY(${index * this.#height}px)`;
      if (isNew) this.rows.fill(row, index);
    }
  }

  /** @param {number} index */
  #row(index) {
    const row = this.rows.create();
    row.setAttribute("aria-setsize", String(this.#count));
    row.setAttribute("aria-posinset", String(index + 1));
    this.#rows.set(index, row);
    const after = [...this.#rows.keys()].filter((it) => it > index).sort((a, b) => a - b)[0];
    this.list.insertBefore(row, after === undefined ? null : (this.#rows.get(after) ?? null));
    this.rows.fill(row, index);
    return row;
  }
}
