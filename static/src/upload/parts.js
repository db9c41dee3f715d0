/** Which part is which: pure figures, no requests. Parts count from 1, as in S3. */

/** @typedef {import("./upload-api.js").UploadState} UploadState */

/**
 * How far ahead of the lowest part not yet in storage others may be sent. The embedded S3 server
 * keeps in memory what arrives out of order, up to 256 MiB of an upload.
 */
const WINDOW_BYTES = 192 * 2 ** 20;

/**
 * @param {UploadState} upload
 * @param {number} number
 * @returns {{ start: number, end: number }} bytes of the file, the end not included
 */
export function rangeOf({ partSizeBytes, sizeBytes }, number) {
  const start = (number - 1) * partSizeBytes;
  return { start, end: Math.min(start + partSizeBytes, sizeBytes) };
}

/**
 * @param {UploadState} upload
 * @param {number} number
 */
export function sizeOf(upload, number) {
  const { start, end } = rangeOf(upload, number);
  return end - start;
}

/**
 * What storage lacks, or has otherwise than it was sent.
 * @param {UploadState} upload with the parts that storage lists
 * @param {ReadonlyMap<number, string>} etags what storage answered to the parts sent from here;
 *   of parts from a former page the size has to do
 * @returns {number[]} ascending
 */
export function partsToSend(upload, etags) {
  const stored = new Map(upload.parts.map((part) => [part.partNumber, part]));
  const numbers = Array.from({ length: upload.partCount }, (_, index) => index + 1);
  return numbers.filter((number) => {
    const part = stored.get(number);
    const etag = etags.get(number);
    if (!part || part.sizeBytes !== sizeOf(upload, number)) return true;
    return etag !== undefined && bare(etag) !== bare(part.etag);
  });
}

/**
 * Deals the parts out like cards, so that all lanes stay close together.
 * @param {number[]} numbers
 * @param {number} count
 * @returns {number[][]}
 */
export function dealLanes(numbers, count) {
  const lanes = Array.from({ length: Math.min(count, numbers.length) }, (_, lane) =>
    numbers.filter((_number, index) => index % count === lane),
  );
  return lanes;
}

/** Holds back parts that are too far ahead of the lowest one that storage has not confirmed. */
export class PartWindow {
  /** @type {{ number: number, open: () => void }[]} */
  #waiting = [];

  /**
   * @param {number[]} numbers all that is to be sent, ascending
   * @param {number} part_bytes
   */
  constructor(numbers, part_bytes) {
    this.unconfirmed = new Set(numbers);
    this.part_bytes = part_bytes;
  }

  /**
   * @param {number} number
   * @param {AbortSignal} signal rejects with its reason
   * @returns {Promise<void>} when this part may be sent
   */
  turn(number, signal) {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#isOpenTo(number)) return resolve();
      this.#waiting.push({ number, open: resolve });
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }

  /** @param {number} number a part that storage has taken */
  confirm(number) {
    this.unconfirmed.delete(number);
    const open = this.#waiting.filter((waiter) => this.#isOpenTo(waiter.number));
    this.#waiting = this.#waiting.filter((waiter) => !open.includes(waiter));
    for (const waiter of open) waiter.open();
  }

  /** @param {number} number */
  #isOpenTo(number) {
    // A Set keeps the order of its making: the first is the lowest.
    const [lowest = number] = this.unconfirmed;
    return number === lowest || (number - lowest) * this.part_bytes < WINDOW_BYTES;
  }
}

/** @param {string} etag */
function bare(etag) {
  return etag.replaceAll('"', "");
}
