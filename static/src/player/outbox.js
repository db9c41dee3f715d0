/**
 * Delivery of reports: lines are kept until the portal acknowledges them, and may arrive more than
 * once. Failures are retried without a message, because playback doesn't need them.
 */

import { canRetry, Refused, send } from "../requests.js";

const SEND_EVERY_MS = 100_000;
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 300_000;
// Lines have less than 600 bytes, so that a request stays below the 64 KiB that outlive a page.
const REQUEST_LINES = 100;
const KEPT_LINES = 300;
// A page that closes sends `pagehide` and `visibilitychange`.
const FLUSH_PAUSE_MS = 1_000;
const CONTENT_TYPE = "application/cmcd";
const GONE = 410;

export class Outbox {
  /** Lines that aren't acknowledged, oldest first. @type {string[]} */
  #lines = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #isSending = false;
  /** Whether a request is due when the present one ends. */
  #isDue = false;
  #isClosed = false;
  #pause_ms = 0;
  #pausedUntil_ms = 0;
  #flushed_ms = Number.NEGATIVE_INFINITY;

  /** @param {string} url */
  constructor(url) {
    this.url = url;
  }

  /** @param {string} line */
  add(line) {
    if (!this.#isClosed) this.#lines = [...this.#lines, line].slice(-KEPT_LINES);
  }

  /** Send the lines after a delay, and then regularly. @param {number} delay_ms */
  sendIn(delay_ms) {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const wait_ms = Math.max(delay_ms, this.#pausedUntil_ms - performance.now());
    this.#timer = setTimeout(() => this.#send(), wait_ms);
  }

  /** Send the newest lines from a page that may close. They stay until they are acknowledged. */
  flush() {
    const lines = this.#lines.slice(-REQUEST_LINES);
    const now_ms = performance.now();
    if (lines.length === 0 || now_ms < this.#flushed_ms + FLUSH_PAUSE_MS) return;
    this.#flushed_ms = now_ms;
    const body = new Blob([lines.join("\n")], { type: CONTENT_TYPE });
    if (!navigator.sendBeacon?.(this.url, body)) post(this.url, lines);
  }

  /** Stop sending, and forget the lines. */
  close() {
    this.#isClosed = true;
    this.#lines = [];
    clearTimeout(this.#timer);
  }

  async #send() {
    this.#isDue = this.#isSending;
    if (this.#isSending) return;
    const lines = this.#lines.slice(0, REQUEST_LINES);
    if (lines.length === 0) return this.sendIn(SEND_EVERY_MS);
    this.#isSending = true;
    const error = await post(this.url, lines);
    this.#isSending = false;
    const { status = 0, retryAfter_s = 0 } = error instanceof Refused ? error : {};
    if (status === GONE) return this.close();
    if (canRetry(error)) {
      const doubled_ms = Math.max(this.#pause_ms * 2, FIRST_PAUSE_MS);
      this.#pause_ms = Math.min(doubled_ms, LONGEST_PAUSE_MS);
      const pause_ms = Math.max(this.#pause_ms, retryAfter_s * 1000);
      this.#pausedUntil_ms = performance.now() + pause_ms;
      return this.sendIn(pause_ms);
    }
    this.#pause_ms = 0;
    this.#lines = this.#lines.filter((line) => !lines.includes(line));
    this.sendIn(this.#isDue ? 0 : SEND_EVERY_MS);
  }
}

/**
 * Send lines once, and return the error of the request.
 * @param {string} url @param {string[]} lines @returns {Promise<unknown>} null without one
 */
function post(url, lines) {
  const options = { body: lines.join("\n"), contentType: CONTENT_TYPE, keepalive: true };
  return send("POST", url, () => null, options).catch((error) => error);
}
