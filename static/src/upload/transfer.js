/**
 * Sends one file to a signed address, and nothing else: no retries, no words for people.
 * XMLHttpRequest, because fetch reports no upload progress.
 */

/** Without a byte moving for this long the connection counts as lost. */
const STALL_LIMIT_MS = 60_000;

/** The file did not arrive. `status` is the storage's answer, or 0 when there was none. */
export class TransferFailed extends Error {
  /** @param {number} status */
  constructor(status) {
    super(`transfer failed with status ${status}`);
    this.status = status;
  }
}

/**
 * @param {object} transfer
 * @param {string} transfer.url signed for PUT with exactly this content type
 * @param {File} transfer.file
 * @param {string} transfer.contentType
 * @param {(sent_bytes: number) => void} transfer.onProgress
 * @param {AbortSignal} transfer.signal rejects with its reason
 * @returns {Promise<void>}
 */
export function putFile({ url, file, contentType, onProgress, signal }) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = new XMLHttpRequest();
    const stall = new Watchdog(() => request.abort());
    const abort = () => request.abort();
    const fail = () => reject(signal.aborted ? signal.reason : new TransferFailed(request.status));
    signal.addEventListener("abort", abort);

    request.upload.addEventListener("progress", (event) => {
      stall.reset();
      onProgress(event.loaded);
    });
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) resolve();
      else fail();
    });
    request.addEventListener("error", fail);
    request.addEventListener("abort", fail);
    request.addEventListener("loadend", () => {
      stall.stop();
      signal.removeEventListener("abort", abort);
    });

    request.open("PUT", url);
    request.setRequestHeader("Content-Type", contentType);
    request.send(file);
  });
}

class Watchdog {
  /** @param {() => void} onStall */
  constructor(onStall) {
    this.onStall = onStall;
    this.timer = setTimeout(onStall, STALL_LIMIT_MS);
  }

  reset() {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.onStall, STALL_LIMIT_MS);
  }

  stop() {
    clearTimeout(this.timer);
  }
}
