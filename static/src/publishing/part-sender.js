/** Sending of parts to storage, with retries and progress, for files and for growing content. */

import { retry } from "../retry.js";
import { canRetryTransfer, isStale, TRANSFER } from "./failures.js";
import { put, sendParts } from "./storage.js";

/** @typedef {import("./storage.js").Part} Part */
/** @typedef {import("./transfer.js").Report} Report */
/**
 * `stored_bytes` is the size of the parts that storage has already. `onStored` gets the ETag of a
 * part, null where CORS rules hide it. `isGrowing` says that the upload's size is unknown.
 * @typedef {{ stored_bytes: number, report: Report, succeeded: () => void, isGrowing?: boolean,
 *   onStored?: (number: number, etag: string | null) => void }} SenderOptions
 */

export class PartSender {
  #sent_bytes;
  /** Sent bytes of each part; a retry restarts at 0. @type {Map<number, number>} */
  #partBytes = new Map();

  /** @param {import("./api.js").Api} api @param {string} key @param {SenderOptions} options */
  constructor(api, key, options) {
    this.api = api;
    this.key = key;
    this.options = options;
    this.stored_bytes = options.stored_bytes;
    this.#sent_bytes = options.stored_bytes;
  }

  /**
   * Send parts until storage has all of them.
   * @param {(signal: AbortSignal) => AsyncIterable<Part> | Iterable<Part>} parts as of `sendParts`
   * @param {number} partSizeBytes @param {AbortSignal} signal rejects with its reason
   */
  async send(parts, partSizeBytes, signal) {
    this.options.report({ phase: "sending", stored_bytes: this.stored_bytes });
    // If the state is stale, the next round has to read it before sending more.
    const shouldRetry = (/** @type {unknown} */ error) =>
      canRetryTransfer(error) && !isStale(error);
    const onError = (/** @type {Error} */ trouble) =>
      shouldRetry(trouble) && this.options.report({ trouble });
    /** @type {(part: Part, signal: AbortSignal) => Promise<void>} */
    const send = (part, partSignal) =>
      retry(() => this.#attempt(part, partSignal), {
        ...TRANSFER,
        signal: partSignal,
        shouldRetry,
        onError,
      });
    await sendParts(parts, partSizeBytes, send, signal);
  }

  /** Count a part that storage has already. @param {Part} part */
  skip({ data }) {
    this.stored_bytes += data.size;
    this.#sent_bytes += data.size;
    const { stored_bytes } = this;
    this.options.report({ stored_bytes, sent_bytes: this.#sent_bytes });
  }

  /** @param {Part} part @param {AbortSignal} signal */
  async #attempt({ number, data }, signal) {
    const { report, succeeded, isGrowing, onStored } = this.options;
    this.#reportProgress(number, 0);
    const url = await this.api.signPart(this.key, number, signal, isGrowing ? data.size : 0);
    const onProgress = (/** @type {number} */ bytes) => this.#reportProgress(number, bytes);
    const etag = await put(url, data, { onProgress, signal });
    onStored?.(number, etag);
    this.stored_bytes += data.size;
    report({ trouble: null, stored_bytes: this.stored_bytes, sent_bytes: this.#sent_bytes });
    succeeded();
  }

  /** @param {number} number @param {number} bytes */
  #reportProgress(number, bytes) {
    this.#sent_bytes += bytes - (this.#partBytes.get(number) ?? 0);
    this.#partBytes.set(number, bytes);
    this.options.report({ sent_bytes: this.#sent_bytes });
  }
}
