/** How long failing goes on before it counts as failed, and the pauses in between. */

import { Refused } from "../api.js";
import { canRetry, isDefinite } from "./failures.js";

/** About two minutes of failures. */
const BUDGET_MS = 120_000;
/** Long tries are mostly sending, on a slow line even for minutes; only this much is failure. */
const TRY_COST_MS = 10_000;
/** So that three definite answers in a row are the end. */
const DEFINITE_COST_MS = 50_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/**
 * Errors that have used up someone's patience: whoever catches them must not start all over.
 * @type {WeakSet<object>}
 */
const final = new WeakSet();

export class Patience {
  #spent_ms = 0;
  #failures = 0;
  #tried_at = performance.now();

  /** Something got through: all is forgiven. */
  succeeded() {
    this.#spent_ms = 0;
    this.#failures = 0;
    this.#tried_at = performance.now();
  }

  /**
   * Waits until the next try is due.
   * @param {unknown} error of the last try
   * @param {AbortSignal} signal rejects with its reason
   * @throws {unknown} the error, when it is final or patience is at its end
   */
  async after(error, signal) {
    signal.throwIfAborted();
    if (!(error instanceof Error) || final.has(error) || !canRetry(error)) throw error;
    const pause_ms = this.#pause_ms(error);
    const tried_ms = Math.min(performance.now() - this.#tried_at, TRY_COST_MS);
    this.#spent_ms += pause_ms + (isDefinite(error) ? DEFINITE_COST_MS : tried_ms);
    if (this.#spent_ms > BUDGET_MS) {
      final.add(error);
      throw error;
    }
    this.#failures += 1;
    await sleep(pause_ms, signal);
    this.#tried_at = performance.now();
  }

  /** @param {unknown} error */
  #pause_ms(error) {
    const longest_ms = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
    // Not all parts and tabs at once.
    const pause_ms = longest_ms * (0.5 + Math.random() / 2);
    const asked_s = error instanceof Refused ? (error.retryAfter_s ?? 0) : 0;
    return Math.max(pause_ms, asked_s * 1000);
  }
}

/**
 * @param {number} pause_ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function sleep(pause_ms, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, pause_ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
