/** When a stream that broke off is loaded again: after a pause, or as soon as there is a network. */
import { Backoff } from "../backoff.js";

export class Reconnection {
  #backoff = new Backoff();
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
    const pause_ms = this.#backoff.pause_ms();
    if (pause_ms === null) return false;
    this.#timer = setTimeout(() => this.#now(), pause_ms);
    return true;
  }

  reset() {
    clearTimeout(this.#timer);
    this.#retry = null;
    this.#backoff = new Backoff();
  }

  #now() {
    clearTimeout(this.#timer);
    const retry = this.#retry;
    this.#retry = null;
    retry?.();
  }
}
