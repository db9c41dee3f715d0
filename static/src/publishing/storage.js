/**
 * Client of object storage: PUTs a file or its missing parts to presigned URLs, by XMLHttpRequest
 * because fetch reports no upload progress.
 */

import { isSignedOut } from "../requests.js";
import { isDisconnected, TransferFailed } from "./failures.js";

/**
 * Rate below which parts are sent one after the other. In parallel they would all finish late, and
 * a reload would lose all of them.
 */
const SLOW_LINE_BPS = 1.5e6;
/** Browsers open six connections to one host (HTTP/1.1): two files with three each. */
const PART_CONCURRENCY = 3;
/**
 * Maximum distance of a part from the lowest missing one. The embedded S3 server keeps parts that
 * arrive out of order in memory, up to 256 MiB of an upload.
 */
const WINDOW_BYTES = 192 * 2 ** 20;
/** Time without progress after which a connection counts as lost. */
const STALL_TIMEOUT_MS = 60_000;

/** @typedef {import("./api.js").UploadState} UploadState */

/**
 * PUT one Blob.
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
    // Browsers report a network error if a file has changed on disk or its drive is gone.
    const firstByte = data.slice(0, 1).arrayBuffer();
    await firstByte.catch(() => Promise.reject(new TransferFailed(0, "file_unreadable")));
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
    let stallTimer;
    const stop = (/** @type {unknown} */ reason) => {
      reject(reason);
      request.abort();
    };
    const restartStallTimer = () => {
      clearTimeout(stallTimer);
      stallTimer = setTimeout(() => stop(new TransferFailed(0)), STALL_TIMEOUT_MS);
    };
    request.upload.addEventListener("progress", ({ loaded }) => {
      restartStallTimer();
      onProgress(loaded);
    });
    request.addEventListener("load", () => {
      if (request.status < 200 || request.status > 299) reject(new TransferFailed(request.status));
      else resolve(request.getResponseHeader("ETag"));
    });
    request.addEventListener("error", () => reject(new TransferFailed(0)));
    request.addEventListener("loadend", () => {
      clearTimeout(stallTimer);
      ended.abort();
    });
    signal.addEventListener("abort", () => stop(signal.reason), { signal: ended.signal });
    request.open("PUT", url);
    if (contentType) request.setRequestHeader("Content-Type", contentType);
    restartStallTimer();
    request.send(data);
  });
}

/**
 * Return the range of a part in the file, without its end.
 * @param {UploadState} upload @param {number} number from 1, as in S3
 * @returns {{ start: number, end: number }}
 */
export function rangeOf({ partSizeBytes, sizeBytes }, number) {
  const start = (number - 1) * partSizeBytes;
  return { start, end: Math.min(start + partSizeBytes, sizeBytes) };
}

/** Return the size of a part in bytes. @param {UploadState} upload @param {number} number */
export function sizeOf(upload, number) {
  const { start, end } = rangeOf(upload, number);
  return end - start;
}

/**
 * Part of a file; `number` counts from 1, as in S3.
 * @typedef {{ number: number, data: Blob }} Part
 */

/**
 * Send parts, several at the same time.
 * @param {(signal: AbortSignal) => AsyncIterable<Part> | Iterable<Part>} parts returns the parts in
 *   ascending order; its signal is aborted by the first error of `send`
 * @param {number} partSizeBytes size of each part but the last
 * @param {(part: Part, signal: AbortSignal) => Promise<void>} send
 * @param {AbortSignal} signal stops all; its reason is thrown
 * @throws {Error} the first error that `send` throws
 */
export async function sendParts(parts, partSizeBytes, send, signal) {
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  const failed = new AbortController();
  /** @type {Map<number, Promise<void>>} */
  const active = new Map();
  // The first part measures the rate of the line.
  let concurrency = 1;
  let isMeasured = false;
  /** @param {Part} part */
  const sendOne = async (part) => {
    const start_ms = performance.now();
    try {
      await send(part, ended);
      const elapsed_s = (performance.now() - start_ms) / 1000;
      if (!isMeasured && part.data.size / elapsed_s >= SLOW_LINE_BPS)
        concurrency = PART_CONCURRENCY;
      isMeasured = true;
    } catch (error) {
      failed.abort(error);
      throw error;
    } finally {
      active.delete(part.number);
    }
  };
  /** @param {number} number */
  const mustWait = (number) => {
    const [lowest = number] = active.keys();
    const ahead_bytes = (number - lowest) * partSizeBytes;
    return active.size >= concurrency || (active.size > 0 && ahead_bytes >= WINDOW_BYTES);
  };
  try {
    for await (const part of parts(AbortSignal.any([signal, failed.signal]))) {
      while (mustWait(part.number)) await Promise.race(active.values());
      failed.signal.throwIfAborted();
      const sending = sendOne(part);
      // The error is that of `failed`, also while the next part is awaited.
      sending.catch(() => {});
      active.set(part.number, sending);
    }
    await Promise.all(active.values());
    failed.signal.throwIfAborted();
  } catch (error) {
    // Parts that were signed before the session ended can still be sent.
    if (isSignedOut(error)) await Promise.allSettled(active.values());
    throw error;
  } finally {
    // Stops the other parts after a failure.
    stop.abort();
  }
}
