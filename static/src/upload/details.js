/** A row's details over time: prefilled, typed, kept with the upload, and whether they'd be lost. */

import { saveDetails } from "./saved.js";

const SAVE_AFTER_MS = 300;

export class Details {
  #prefilledTitle = "";
  #clean;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * @param {import("./fields.js").Fields} fields
   * @param {() => string} uploadId what they are kept with; empty for nothing
   */
  constructor(fields, uploadId) {
    this.fields = fields;
    this.uploadId = uploadId;
    this.#clean = this.#typed();
  }

  /** Whether something was typed that nobody else would put back. */
  get isTyped() {
    return this.#typed() !== this.#clean;
  }

  /** @param {string} fileName for a title, unless there is another already */
  prefill(fileName) {
    if (this.fields.read().title !== this.#prefilledTitle) return;
    const isTyped = this.isTyped;
    this.#prefilledTitle = titleOf(fileName);
    this.fields.write({ title: this.#prefilledTitle });
    this.fields.clear("/title");
    if (!isTyped) this.#clean = this.#typed();
  }

  /** @param {import("./fields.js").Details} details of another visit */
  restore(details) {
    this.fields.write(details);
    this.#clean = this.#typed();
  }

  /** Back to empty fields. */
  reset() {
    this.fields.form.reset();
    this.fields.clear();
    this.#prefilledTitle = "";
    this.#clean = this.#typed();
  }

  saveSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.save(), SAVE_AFTER_MS);
  }

  save() {
    clearTimeout(this.#timer);
    const id = this.uploadId();
    if (id) saveDetails(id, this.fields.read());
  }

  stop() {
    clearTimeout(this.#timer);
  }

  #typed() {
    return JSON.stringify(this.fields.read());
  }
}

/** @param {string} fileName */
function titleOf(fileName) {
  return fileName
    .replace(/\.[^.]+$/, "")
    .replace(/[_\s]+/g, " ")
    .trim();
}
