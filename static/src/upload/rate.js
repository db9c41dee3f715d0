/**
 * A transfer's speed, as an average that forgets slowly, so that neither the speed nor the time
 * left jumps with each burst.
 */

const MEMORY_S = 4;

export class Rate {
  /** @type {number | null} */
  #speed_bps = null;
  #sent_bytes;
  #at_ms;

  /**
   * @param {number} sent_bytes already
   * @param {number} now_ms
   */
  constructor(sent_bytes, now_ms) {
    this.#sent_bytes = sent_bytes;
    this.#at_ms = now_ms;
  }

  /**
   * @param {number} sent_bytes altogether
   * @param {number} now_ms
   * @returns {number | null} bytes per second, once two measurements are far enough apart
   */
  update(sent_bytes, now_ms) {
    const elapsed_s = (now_ms - this.#at_ms) / 1000;
    if (elapsed_s < 0.2) return this.#speed_bps;
    const current = Math.max(0, sent_bytes - this.#sent_bytes) / elapsed_s;
    const weight = 1 - Math.exp(-elapsed_s / MEMORY_S);
    this.#speed_bps =
      this.#speed_bps === null ? current : this.#speed_bps + weight * (current - this.#speed_bps);
    this.#sent_bytes = sent_bytes;
    this.#at_ms = now_ms;
    return this.#speed_bps;
  }
}
