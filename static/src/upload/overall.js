/**
 * The progress of several uploads as one share that never goes down. When files join or leave, what
 * is shown stays, and the rest of the way is divided anew.
 */

export class Overall {
  #total_bytes = 0;
  #shown = 0;
  #from = 0;
  #fromSent_bytes = 0;

  /**
   * @param {number} sent_bytes of all
   * @param {number} total_bytes of all
   * @returns {number} from 0 to 1, and 1 only when everything is sent
   */
  update(sent_bytes, total_bytes) {
    if (total_bytes !== this.#total_bytes) this.#rebase(sent_bytes, total_bytes);
    const left_bytes = total_bytes - this.#fromSent_bytes;
    const done = left_bytes > 0 ? (sent_bytes - this.#fromSent_bytes) / left_bytes : 0;
    this.#shown = Math.max(this.#shown, this.#from + (1 - this.#from) * Math.max(0, done));
    if (total_bytes > 0 && sent_bytes >= total_bytes) this.#shown = 1;
    return this.#shown;
  }

  /**
   * @param {number} sent_bytes
   * @param {number} total_bytes
   */
  #rebase(sent_bytes, total_bytes) {
    // After all was sent, or nothing is left, a new round begins.
    const isNew = this.#shown >= 1 || total_bytes === 0;
    if (isNew) this.#shown = total_bytes > 0 ? sent_bytes / total_bytes : 0;
    this.#from = this.#shown;
    this.#fromSent_bytes = sent_bytes;
    this.#total_bytes = total_bytes;
  }
}
