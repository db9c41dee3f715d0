/** When to try again: soon at first, then less and less often, and in the end not at all. */

const DELAYS_S = [1, 2, 4, 8, 15, 15, 15, 15, 15];

export class Retries {
  #count = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {(() => void) | null} */
  #retry = null;

  /** @param {AbortSignal} signal */
  constructor(signal) {
    signal.addEventListener("abort", () => this.reset());
    // Back on the network: there is nothing to wait for.
    window.addEventListener("online", () => this.#now(), { signal });
  }

  get isWaiting() {
    return this.#retry !== null;
  }

  /**
   * @param {() => void} retry
   * @returns {boolean} false when it has been tried often enough
   */
  schedule(retry) {
    clearTimeout(this.#timer);
    this.#retry = retry;
    const delay_s = DELAYS_S[this.#count];
    if (delay_s === undefined) return false;
    this.#count += 1;
    this.#timer = setTimeout(() => this.#now(), delay_s * 1000);
    return true;
  }

  reset() {
    clearTimeout(this.#timer);
    this.#retry = null;
    this.#count = 0;
  }

  #now() {
    clearTimeout(this.#timer);
    const retry = this.#retry;
    this.#retry = null;
    retry?.();
  }
}
