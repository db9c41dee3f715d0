/** Which failures of an upload are worth another try, and what each costs. */

import { Backoff } from "../backoff.js";
import { NoAnswer, Refused } from "../requests.js";

// Of the policy's budget.
/** A long attempt is mostly sending, on a slow line for minutes; only this much is failure. */
const ATTEMPT_COST_MS = 10_000;
/** So that three answers in a row that won't change are the end. */
const LASTING_COST_MS = 50_000;

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
      if (error instanceof Error) onTrouble?.(error);
      if (!(error instanceof Error) || final.has(error) || !isWorthIt(error)) throw error;
      const pause_ms = backoff.pause_ms({
        asked_ms: askedPause_ms(error),
        cost_ms: isLasting(error)
          ? LASTING_COST_MS
          : Math.min(performance.now() - began_at, ATTEMPT_COST_MS),
      });
      if (pause_ms === null) {
        final.add(error);
        throw error;
      }
      await sleep(pause_ms, signal);
    }
  }
}

/** @param {Error} error */
function askedPause_ms(error) {
  return error instanceof Refused ? (error.retryAfter_s ?? 0) * 1000 : 0;
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
