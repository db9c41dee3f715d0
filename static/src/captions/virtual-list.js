/**
 * Long list that draws only its visible rows, all as high as the first. The focused row also stays
 * in the page.
 */

// Additional rows above and below the visible ones, so that scrolling shows no gaps.
const MARGIN_ROWS = 6;

/**
 * @typedef {{ create: () => HTMLElement, fill: (row: HTMLElement, index: number) => void }} Rows
 */

export class VirtualList {
  #count = 0;
  #height = 0;
  /** @type {Map<number, HTMLElement>} */
  #rows = new Map();

  /**
   * @param {HTMLElement} box scrolling container @param {HTMLElement} list as high as all rows
   * @param {Rows} rows @param {AbortSignal} signal
   */
  constructor(box, list, rows, signal) {
    this.box = box;
    this.list = list;
    this.rows = rows;
    box.addEventListener("scroll", () => this.#draw(), { signal, passive: true });
    const sizeObserver = new ResizeObserver(() => this.show(this.#count));
    sizeObserver.observe(box);
    signal.addEventListener("abort", () => sizeObserver.disconnect());
  }

  /** Redraw with this number of rows. @param {number} count */
  show(count) {
    this.#count = count;
    if (count) this.#height = (this.#rows.values().next().value ?? this.#insertRow(0)).offsetHeight;
    this.#draw();
    for (const [index, row] of this.#rows) this.#fill(row, index);
  }

  /** Return a row, if it is drawn. @param {number} index @returns {HTMLElement | undefined} */
  rowAt(index) {
    return this.#rows.get(index);
  }

  /** Scroll to a row, and return it. @param {number} index @returns {HTMLElement | undefined} */
  reveal(index) {
    const top = index * this.#height;
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop || top + this.#height > scrollTop + clientHeight) {
      this.box.scrollTop = top - (clientHeight - this.#height) / 2;
      this.#draw();
    }
    return this.rowAt(index);
  }

  #draw() {
    this.list.style.height = `${this.#count * this.#height}px`;
    const { scrollTop, clientHeight } = this.box;
    const rowHeight = this.#height || 1;
    const first = Math.max(Math.floor(scrollTop / rowHeight) - MARGIN_ROWS, 0);
    const lastVisible = Math.floor((scrollTop + clientHeight) / rowHeight);
    const last = Math.min(lastVisible + MARGIN_ROWS, this.#count);
    for (const [index, row] of this.#rows) {
      const isUsed = index < this.#count && row.contains(document.activeElement);
      if (isUsed || (index >= first && index < last)) continue;
      row.remove();
      this.#rows.delete(index);
    }
    for (let index = first; index < last; index += 1) {
      if (!this.#rows.has(index)) this.#insertRow(index);
    }
  }

  /** Insert a row at its place in the order of the keyboard. @param {number} index */
  #insertRow(index) {
    const row = this.rows.create();
    const next = Math.min(...[...this.#rows.keys()].filter((other) => other > index));
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
