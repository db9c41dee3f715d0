/**
 * Retry policy of what people wait for: growing, jittered pauses, for about two minutes of
 * consecutive failures.
 */

const BUDGET_MS = 120_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

export class Backoff {
  #failures = 0;
  #spent_ms = 0;

  /**
   * Return the pause after a failure.
   * @param {object} [failure]
   * @param {number} [failure.least_ms] pause that the server asked for
   * @param {number} [failure.cost_ms] cost of the attempt, deducted from the budget with the pause
   * @returns {number | null} null when the budget is spent
   */
  nextPause_ms({ least_ms = 0, cost_ms = 0 } = {}) {
    const longest_ms = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
    // Parts, tabs and viewers that failed together must not retry together.
    const pause_ms = least_ms + longest_ms * (0.5 + Math.random() / 2);
    this.#failures += 1;
    this.#spent_ms += pause_ms + cost_ms;
    return this.#spent_ms > BUDGET_MS ? null : pause_ms;
  }
}
