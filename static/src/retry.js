/**
 * Retry policy of what people wait for: growing, jittered pauses, for about two minutes of
 * consecutive failures, and the pauses that servers ask for.
 */

import { canRetry, Refused } from "./requests.js";

const BUDGET_MS = 120_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
/** Largest cost of an attempt in the budget: a long attempt spends most of its time sending. */
const ATTEMPT_COST_MS = 10_000;

export class Backoff {
  #failures = 0;
  #spent_ms = 0;

  /**
   * Return the pause after a failure, at least the one that the server asked for.
   * @param {unknown} [error]
   * @param {number} [cost_ms] cost of the attempt, deducted from the budget with the pause
   * @returns {number | null} null when the budget is spent
   */
  nextPause_ms(error, cost_ms = 0) {
    const least_ms = error instanceof Refused ? error.retryAfter_s * 1000 : 0;
    const longest_ms = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
    // Parts, tabs and viewers that failed together must not retry together.
    const pause_ms = least_ms + longest_ms * (0.5 + Math.random() / 2);
    this.#failures += 1;
    this.#spent_ms += pause_ms + cost_ms;
    return this.#spent_ms > BUDGET_MS ? null : pause_ms;
  }
}

/**
 * Errors after which the budget is spent, so that an outer `retry` also stops.
 * @type {WeakSet<object>}
 */
const finalErrors = new WeakSet();

/**
 * `signal` rejects with its reason; `onError` is called before each pause, and before giving up.
 * @typedef {{ signal?: AbortSignal, shouldRetry?: (error: Error) => boolean,
 *   leastCostOf_ms?: (error: Error) => number, onError?: (error: Error) => void }} RetryOptions
 */

/**
 * Repeat an attempt with growing, jittered pauses until it succeeds.
 * @template T
 * @param {(succeeded: () => void) => Promise<T>} attempt may call `succeeded` when part of its work
 *   is done, which renews the budget
 * @param {RetryOptions} [options] @returns {Promise<T>} @throws {unknown} the last error
 */
export async function retry(attempt, options = {}) {
  const { signal, shouldRetry = canRetry, leastCostOf_ms = () => 0, onError } = options;
  let backoff = new Backoff();
  for (;;) {
    let began_at = performance.now();
    try {
      return await attempt(() => {
        backoff = new Backoff();
        began_at = performance.now();
      });
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof Error) onError?.(error);
      if (!(error instanceof Error) || finalErrors.has(error) || !shouldRetry(error)) throw error;
      const attempt_ms = Math.min(performance.now() - began_at, ATTEMPT_COST_MS);
      const cost_ms = Math.max(leastCostOf_ms(error), attempt_ms);
      const pause_ms = backoff.nextPause_ms(error, cost_ms);
      if (pause_ms === null) {
        finalErrors.add(error);
        throw error;
      }
      await sleep(pause_ms, signal);
    }
  }
}

/**
 * Wait for a time.
 * @param {number} pause_ms @param {AbortSignal} [signal] rejects with its reason
 * @returns {Promise<void>}
 */
function sleep(pause_ms, signal) {
  return new Promise((resolve, reject) => {
    setTimeout(resolve, pause_ms);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
