/**
 * Object storage: PUTs a file, or the parts of it that are missing, to presigned addresses.
 * XMLHttpRequest is used because fetch has no upload progress.
 */

import { isSignedOut } from "../requests.js";
import { canRetry, isDisconnected, isStale, retrying, TransferFailed } from "./failures.js";

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
 * @param {string} url @param {Blob} data
 * @param {{ contentType?: string, onProgress: (sent_bytes: number) => void,
 *   signal: AbortSignal }} options `signal` rejects with its reason
 * @returns {Promise<string | null>} the ETag; null where CORS rules hide it
 * @throws {TransferFailed}
 */
export async function put(url, data, options) {
  try {
    return await send(url, data, options);
  } catch (error) {
    if (!isDisconnected(error) || options.signal.aborted) throw error;
    // Browsers call it a network error when a file has changed on disk or its drive is gone.
    const first = data.slice(0, 1).arrayBuffer();
    await first.catch(() => Promise.reject(new TransferFailed(0, "file_unreadable")));
    throw error;
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
    const stop = (/** @type {unknown} */ reason) => {
      reject(reason);
      request.abort();
    };
    const watch = () => {
      clearTimeout(stall);
      stall = setTimeout(() => stop(new TransferFailed(0)), STALL_TIMEOUT_MS);
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
    signal.addEventListener("abort", () => stop(signal.reason), { signal: ended.signal });
    request.open("PUT", url);
    if (contentType) request.setRequestHeader("Content-Type", contentType);
    watch();
    request.send(data);
  });
}

/**
 * @param {UploadState} upload @param {number} number counts from 1, as in S3
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

/**
 * `numbers` are the parts to send, ascending; `onProgress` tells of these, and may go down in a
 * retry; `onPart` that storage has taken one; `onTrouble` what is being tried again.
 * @typedef {{ file: File, upload: UploadState, numbers: number[],
 *   sign: (number: number, signal: AbortSignal) => Promise<string>,
 *   onProgress: (sent_bytes: number) => void, onPart: (number: number, etag: string) => void,
 *   onTrouble: (trouble: Error) => void }} Sending
 */

/**
 * Sends parts, several at once, each with its own retries.
 * @param {Sending} sending @param {AbortSignal} signal rejects with its reason
 * @throws {Error} the first that can't be mended by sending that part again
 */
export async function sendParts(sending, signal) {
  const { numbers, upload } = sending;
  const stop = new AbortController();
  const send = partSender(sending, AbortSignal.any([signal, stop.signal]));
  /** @type {Map<number, Promise<void>>} */
  const active = new Map();
  const began_ms = performance.now();
  // The first part shows how fast the line is.
  let concurrency = 1;
  /** @param {number} number */
  const sendOne = async (number) => {
    try {
      await send(number);
      const took_s = (performance.now() - began_ms) / 1000;
      const isFast = sizeOf(upload, number) / took_s >= SLOW_LINE_BPS;
      if (number === numbers[0] && isFast) concurrency = PART_CONCURRENCY;
    } finally {
      active.delete(number);
    }
  };
  /** @param {number} number */
  const mustWait = (number) => {
    const [lowest = number] = active.keys();
    const ahead_bytes = (number - lowest) * upload.partSizeBytes;
    return active.size >= concurrency || (active.size > 0 && ahead_bytes >= WINDOW_BYTES);
  };
  try {
    for (const number of numbers) {
      while (mustWait(number)) await Promise.race(active.values());
      active.set(number, sendOne(number));
    }
    await Promise.all(active.values());
  } catch (error) {
    // Parts signed before the session ended still arrive.
    if (isSignedOut(error)) await Promise.allSettled(active.values());
    throw error;
  } finally {
    // After a failure, the other parts' connections would go on to their end.
    stop.abort();
  }
}

/**
 * @param {Sending} sending @param {AbortSignal} signal @returns {(number: number) => Promise<void>}
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
  // Of a stale upload nothing can be sent before its state was read.
  const isWorthIt = (/** @type {unknown} */ error) => canRetry(error) && !isStale(error);
  return (number) =>
    retrying(() => attempt(number), {
      signal,
      isWorthIt,
      onTrouble: (error) => isWorthIt(error) && onTrouble(error),
    });
}
