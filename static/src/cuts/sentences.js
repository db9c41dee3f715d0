/** Transcript of a film, whose sentences people mark to cut them. */

import { element } from "../dom.js";
import * as parts from "./parts.js";

/**
 * @typedef {import("./parts.js").Parts} Parts
 * @typedef {import("../bounds.js").Part & { row: HTMLElement, box: HTMLInputElement }} Sentence
 */

export class Sentences {
  #last = 0;
  /** @type {HTMLElement | undefined} */
  #currentRow;

  /** @param {HTMLElement} root */
  constructor(root) {
    /** @type {NodeListOf<HTMLElement>} */
    const rows = root.querySelectorAll("[data-sentence]");
    /** @type {Sentence[]} */
    this.all = [...rows].map((row) => ({
      row,
      box: /** @type {HTMLInputElement} */ (element(row, "input")),
      startSeconds: Number(row.dataset.start),
      endSeconds: Number(row.dataset.end),
    }));
  }

  /**
   * Mark the sentence that was clicked; with Shift, all from the last one.
   * @param {MouseEvent} event @returns {Sentence | undefined} the sentence, if its box was pressed
   */
  handleClick(event) {
    const { target, shiftKey } = event;
    const index = this.all.findIndex(({ row }) => target instanceof Node && row.contains(target));
    const sentence = this.all[index];
    if (!sentence) return;
    const { box } = sentence;
    if (target !== box) {
      // The click on a label presses its box, too, but not in Firefox with Shift.
      if (!shiftKey) return;
      event.preventDefault();
      box.checked = !box.checked;
    }
    const ends = [index, shiftKey ? this.#last : index];
    for (const other of this.all.slice(Math.min(...ends), Math.max(...ends) + 1)) {
      other.box.checked = box.checked;
    }
    this.#last = index;
    return sentence;
  }

  /** Return the parts of marked sentences, with the pauses between them. */
  get marked() {
    return parts.markedParts(this.all, ({ box }) => box.checked);
  }

  unmark() {
    for (const { box } of this.all) box.checked = false;
  }

  /** Cross out the sentences of removed parts. @param {Parts} removed */
  show(removed) {
    for (const { row, startSeconds, endSeconds } of this.all) {
      const isCut = parts.partAt(removed, (startSeconds + endSeconds) / 2) !== undefined;
      row.classList.toggle("sentence--cut", isCut);
    }
  }

  /** Mark the current sentence, and scroll to it unless people use the list. @param {number} at_s */
  follow(at_s) {
    const row = this.all.findLast(({ startSeconds }) => startSeconds <= at_s)?.row;
    if (row === this.#currentRow) return;
    this.#currentRow?.removeAttribute("aria-current");
    this.#currentRow = row;
    row?.setAttribute("aria-current", "true");
    const list = row?.parentElement;
    if (!row || !list || list.matches(":hover, :focus-within")) return;
    list.scrollTop = row.offsetTop - (list.clientHeight - row.offsetHeight) / 2;
  }
}
