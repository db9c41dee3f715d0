/** Which failures are worth another try, and how long trying goes on. */

import { NoAnswer, Refused } from "./api.js";

/** About two minutes of failures in a row. */
const BUDGET_MS = 120_000;
/** A long attempt is mostly sending, on a slow line for minutes; only this much is failure. */
const ATTEMPT_COST_MS = 10_000;
/** So that three answers in a row that won't change are the end. */
const LASTING_COST_MS = 50_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/** @typedef {"" | "file_unreadable" | "etag_hidden" | "incomplete"} FailureCode */

/**
 * The file did not arrive. `status` is storage's answer, or 0 when there was none.
 * `code` is empty, or
 * - `file_unreadable`: the file was moved, changed or removed since it was chosen;
 * - `etag_hidden`: storage's CORS rules do not expose the ETag of its answers;
 * - `incomplete`: storage accepted everything, and still does not have it.
 */
export class TransferFailed extends Error {
  /** @param {number} status @param {FailureCode} [code] */
  constructor(status, code = "") {
    super(`transfer failed with status ${status}${code && ` (${code})`}`);
    this.status = status;
    this.code = code;
  }
}

/** Refusals that mean that the upload is in another state than this page believes. */
const STALE_CODES = new Set([
  "upload_not_started",
  "upload_not_issued",
  "upload_gone",
  "parts_missing",
]);

/** Answers about this moment, not about the request. */
const PASSING_STATUSES = new Set([408, 425, 429]);

/** Whether reading the upload's state is what to do next. @param {unknown} error */
export function isStale(error) {
  if (error instanceof Refused) return STALE_CODES.has(error.code);
  return error instanceof TransferFailed && error.status === 404;
}

/** @param {number} status */
export function isPassing(status) {
  return status >= 500 || PASSING_STATUSES.has(status);
}

/** @param {unknown} error */
export function canRetry(error) {
  if (error instanceof NoAnswer || isStale(error)) return true;
  if (error instanceof Refused) return isPassing(error.status);
  // A new signature cures an expired one, and S3 answers some broken connections with 400.
  return error instanceof TransferFailed && error.code === "";
}

/**
 * Whether the same request would get the same answer, unless its signature had expired.
 * @param {unknown} error
 */
function isLasting(error) {
  if (!(error instanceof TransferFailed) || error.status === 0 || isStale(error)) return false;
  return !isPassing(error.status);
}

/**
 * Errors whose budget is spent: retrying one level up must not start all over.
 * @type {WeakSet<object>}
 */
const final = new WeakSet();

/** @typedef {{ spent_ms: number, failures: number, started_at: number }} Budget */

/**
 * Repeats an attempt with growing, jittered pauses until it succeeds.
 * @template T
 * @param {(succeeded: () => void) => Promise<T>} attempt may call `succeeded` when part of its work
 *   is done, which renews the budget
 * @param {object} [options]
 * @param {AbortSignal} [options.signal] rejects with its reason
 * @param {(error: unknown) => boolean} [options.isWorthIt]
 * @param {(error: Error) => void} [options.onTrouble] before each pause, and before giving up
 * @returns {Promise<T>}
 * @throws {unknown} the last error, once trying again is no use
 */
export async function retrying(attempt, options = {}) {
  const { signal, isWorthIt = canRetry, onTrouble } = options;
  let budget = newBudget();
  for (;;) {
    try {
      return await attempt(() => {
        budget = newBudget();
      });
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof Error) onTrouble?.(error);
      if (!(error instanceof Error) || final.has(error) || !isWorthIt(error)) throw error;
      await spend(budget, error, signal);
    }
  }
}

/** @returns {Budget} */
function newBudget() {
  return { spent_ms: 0, failures: 0, started_at: performance.now() };
}

/**
 * Pauses before the next attempt.
 * @param {Budget} budget
 * @param {Error} error of the last attempt
 * @param {AbortSignal} [signal]
 */
async function spend(budget, error, signal) {
  const pause_ms = pauseAfter(error, budget.failures);
  const tried_ms = Math.min(performance.now() - budget.started_at, ATTEMPT_COST_MS);
  budget.spent_ms += pause_ms + (isLasting(error) ? LASTING_COST_MS : tried_ms);
  if (budget.spent_ms > BUDGET_MS) {
    final.add(error);
    throw error;
  }
  budget.failures += 1;
  await sleep(pause_ms, signal);
  budget.started_at = performance.now();
}

/** @param {Error} error @param {number} failures before it */
function pauseAfter(error, failures) {
  const longest_ms = Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS);
  // Parts and tabs that failed together must not come back together.
  const pause_ms = longest_ms * (0.5 + Math.random() / 2);
  const asked_s = error instanceof Refused ? (error.retryAfter_s ?? 0) : 0;
  return Math.max(pause_ms, asked_s * 1000 + (asked_s ? pause_ms : 0));
}

/**
 * @param {number} pause_ms
 * @param {AbortSignal} [signal] rejects with its reason
 * @returns {Promise<void>}
 */
function sleep(pause_ms, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, pause_ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
