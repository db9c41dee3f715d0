/**
 * A long list that draws only its visible rows, all as high as the first. The focused row stays in
 * the page, too.
 */

// Additional rows above and below the visible ones, for scrolling.
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
    const sized = new ResizeObserver(() => this.show(this.#count));
    sized.observe(box);
    signal.addEventListener("abort", () => sized.disconnect());
  }

  /** Redraw with this number of rows. @param {number} count */
  show(count) {
    this.#count = count;
    if (count) this.#height = (this.#rows.values().next().value ?? this.#add(0)).offsetHeight;
    this.#draw();
    for (const [index, row] of this.#rows) this.#fill(row, index);
  }

  /** @param {number} index @returns {HTMLElement | undefined} the row, if it is in sight */
  rowAt(index) {
    return this.#rows.get(index);
  }

  /** @param {number} index @returns {HTMLElement | undefined} the row, which is in sight then */
  reveal(index) {
    const [top, { scrollTop, clientHeight }] = [index * this.#height, this.box];
    if (top < scrollTop || top + this.#height > scrollTop + clientHeight) {
      this.box.scrollTop = top - (clientHeight - this.#height) / 2;
      this.#draw();
    }
    return this.rowAt(index);
  }

  #draw() {
    this.list.style.height = `${this.#count * this.#height}px`;
    const seen = [this.box.scrollTop, this.box.scrollTop + this.box.clientHeight];
    const [from = 0, to = 0] = seen.map((edge) => Math.floor(edge / (this.#height || 1)));
    const [first, last] = [Math.max(from - SPARE, 0), Math.min(to + SPARE, this.#count)];
    for (const [index, row] of this.#rows) {
      const isUsed = index < this.#count && row.contains(document.activeElement);
      if (isUsed || (index >= first && index < last)) continue;
      row.remove();
      this.#rows.delete(index);
    }
    for (let index = first; index < last; index += 1) if (!this.#rows.has(index)) this.#add(index);
  }

  /** Insert a row in its place, for the order of the keyboard. @param {number} index */
  #add(index) {
    const row = this.rows.create();
    const next = Math.min(...[...this.#rows.keys()].filter((it) => it > index));
    this.list.insertBefore(row, this.#rows.get(next) ?? null);
    this.#rows.set(index, row);
    this.#fill(row, index);
    return row;
  }

  /** @param {HTMLElement} row @param {number} index */
  #fill(row, index) {
    row.style.transform = `translateY(${index * this.#height}px)`;
    row.ariaSetSize = String(this.#count);
    row.ariaPosInSet = String(index + 1);
    this.rows.fill(row, index);
  }
}
