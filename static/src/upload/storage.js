/**
 * Object storage: PUTs a file, or the parts of it that are missing, to presigned addresses.
 * XMLHttpRequest is used because fetch has no upload progress.
 */

import { anySignal } from "../any-signal.js";
import { isSignedOut } from "../requests.js";
import { canRetry, isStale, retrying, TransferFailed } from "./retry.js";

/**
 * On a slower line, parts are sent one after the other: together they would all arrive late, and a
 * reload would lose all of them.
 */
const SLOW_LINE_BPS = 1.5e6;
/** Two files with three connections each are all that browsers open to one host (HTTP/1.1). */
const PART_CONCURRENCY = 3;
/**
 * How far ahead of the lowest part not yet in storage others may be sent. The embedded S3 server
 * keeps in memory what arrives out of order, up to 256 MiB of an upload.
 */
const WINDOW_BYTES = 192 * 2 ** 20;
/** Without a byte moving for this long a connection counts as lost. */
const STALL_TIMEOUT_MS = 60_000;

/** @typedef {import("./api.js").UploadState} UploadState */

/**
 * PUTs one Blob.
 * @param {string} url
 * @param {Blob} data
 * @param {object} options
 * @param {string} [options.contentType]
 * @param {(sent_bytes: number) => void} options.onProgress
 * @param {AbortSignal} options.signal rejects with its reason
 * @returns {Promise<string | null>} the ETag; null where CORS rules hide it
 * @throws {TransferFailed}
 */
export async function put(url, data, options) {
  try {
    return await send(url, data, options);
  } catch (error) {
    const isBroken = error instanceof TransferFailed && error.status === 0;
    if (!isBroken || options.signal.aborted || (await isReadable(data))) throw error;
    throw new TransferFailed(0, "file_unreadable");
  }
}

/** @type {typeof put} */
function send(url, data, { contentType, onProgress, signal }) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const ended = new AbortController();
    const request = new XMLHttpRequest();
    /** @type {ReturnType<typeof setTimeout>} */
    let stall;
    const watch = () => {
      clearTimeout(stall);
      stall = setTimeout(() => {
        reject(new TransferFailed(0));
        request.abort();
      }, STALL_TIMEOUT_MS);
    };
    request.upload.addEventListener("progress", ({ loaded }) => {
      watch();
      onProgress(loaded);
    });
    request.addEventListener("load", () => {
      if (request.status < 200 || request.status > 299) reject(new TransferFailed(request.status));
      else resolve(request.getResponseHeader("ETag"));
    });
    request.addEventListener("error", () => reject(new TransferFailed(0)));
    request.addEventListener("loadend", () => {
      clearTimeout(stall);
      ended.abort();
    });
    const stop = () => {
      reject(signal.reason);
      request.abort();
    };
    signal.addEventListener("abort", stop, { signal: ended.signal });
    request.open("PUT", url);
    if (contentType) request.setRequestHeader("Content-Type", contentType);
    watch();
    request.send(data);
  });
}

/**
 * Browsers call it a network error when a file has changed on disk or its drive is gone.
 * @param {Blob} data
 */
async function isReadable(data) {
  try {
    await data.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

/**
 * @param {UploadState} upload
 * @param {number} number counts from 1, as in S3
 * @returns {{ start: number, end: number }} bytes of the file, the end not included
 */
export function rangeOf({ partSizeBytes, sizeBytes }, number) {
  const start = (number - 1) * partSizeBytes;
  return { start, end: Math.min(start + partSizeBytes, sizeBytes) };
}

/** @param {UploadState} upload @param {number} number */
export function sizeOf(upload, number) {
  const { start, end } = rangeOf(upload, number);
  return end - start;
}

/** Which part is next; none while it would be too far ahead of the lowest unconfirmed one. */
export class PartQueue {
  #next = 0;

  /** @param {number[]} numbers ascending @param {number} part_bytes */
  constructor(numbers, part_bytes) {
    this.numbers = numbers;
    this.part_bytes = part_bytes;
    this.unconfirmed = new Set(numbers);
  }

  /** @returns {number | null} */
  take() {
    const number = this.numbers[this.#next];
    if (number === undefined) return null;
    // A Set keeps the order of its making: the first is the lowest.
    const [lowest = number] = this.unconfirmed;
    const isNear = (number - lowest) * this.part_bytes < WINDOW_BYTES;
    if (number !== lowest && !isNear) return null;
    this.#next += 1;
    return number;
  }

  /** @param {number} number a part that storage has taken */
  confirm(number) {
    this.unconfirmed.delete(number);
  }
}

/**
 * @typedef {object} Sending
 * @property {File} file
 * @property {UploadState} upload
 * @property {number[]} numbers of the parts to send, ascending
 * @property {(number: number, signal: AbortSignal) => Promise<string>} sign
 * @property {(sent_bytes: number) => void} onProgress of these parts; may go down in a retry
 * @property {(number: number, etag: string) => void} onPart storage has taken it
 * @property {(trouble: Error) => void} onTrouble that is being tried again
 */

/**
 * Sends parts, several at once, each with its own retries.
 * @param {Sending} sending
 * @param {AbortSignal} signal rejects with its reason
 * @returns {Promise<void>}
 * @throws {Error} the first that can't be mended by sending that part again
 */
export function sendParts(sending, signal) {
  const queue = new PartQueue(sending.numbers, sending.upload.partSizeBytes);
  const stop = new AbortController();
  const send = partSender(sending, anySignal([signal, stop.signal]));
  let active = 0;
  // The first part shows how fast the line is.
  let concurrency = 1;
  const [first = 0] = sending.numbers;
  const began_ms = performance.now();
  const isSlow = () =>
    sizeOf(sending.upload, first) / (performance.now() - began_ms) < SLOW_LINE_BPS / 1000;
  /** @type {Promise<void>} */
  const sent = new Promise((resolve, reject) => {
    /** @type {unknown} */
    let refusal = null;
    const fill = () => {
      if (queue.unconfirmed.size === 0) return resolve();
      // Parts signed before the session ended still arrive.
      if (refusal) return active === 0 && reject(refusal);
      while (active < concurrency) {
        const number = queue.take();
        if (number === null) return;
        active += 1;
        send(number).then(
          () => {
            active -= 1;
            if (number === first) concurrency = isSlow() ? 1 : PART_CONCURRENCY;
            queue.confirm(number);
            fill();
          },
          (error) => {
            active -= 1;
            if (!isSignedOut(error)) return reject(error);
            refusal = error;
            fill();
          },
        );
      }
    };
    fill();
  });
  // After a failure, the other parts' connections would go on to their end.
  return sent.finally(() => stop.abort());
}

/**
 * @param {Sending} sending
 * @param {AbortSignal} signal
 * @returns {(number: number) => Promise<void>}
 */
function partSender({ file, upload, sign, onProgress, onPart, onTrouble }, signal) {
  /** @type {Map<number, number>} bytes of each part on its way or there */
  const sent = new Map();
  let total_bytes = 0;
  /** @type {(number: number, bytes: number) => void} */
  const progress = (number, bytes) => {
    total_bytes += bytes - (sent.get(number) ?? 0);
    sent.set(number, bytes);
    onProgress(total_bytes);
  };
  /** @param {number} number */
  const attempt = async (number) => {
    progress(number, 0);
    const { start, end } = rangeOf(upload, number);
    const url = await sign(number, signal);
    const etag = await put(url, file.slice(start, end), {
      onProgress: (bytes) => progress(number, bytes),
      signal,
    });
    if (etag === null) throw new TransferFailed(200, "etag_hidden");
    onPart(number, etag);
  };
  return (number) =>
    retrying(() => attempt(number), {
      signal,
      isWorthIt: canSendAgain,
      onTrouble: (error) => canSendAgain(error) && onTrouble(error),
    });
}

/** @param {unknown} error */
function canSendAgain(error) {
  // Of a stale upload nothing can be sent before its state was read.
  return canRetry(error) && !isStale(error);
}
