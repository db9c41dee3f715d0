/**
 * Sends the parts that storage lacks, several at once. Uppy sends the parts of one upload one
 * after the other, so it gets several uploads, called lanes here: each is a Blob put together from
 * every third missing part, which Uppy cuts at the same places again. (Such a Blob only refers to
 * the file; nothing is read before its part is sent.) A lane that fails is tried again with what
 * is left of it, while the others go on.
 */

import { anySignal } from "../any-signal.js";
import { isStale } from "./failures.js";
import { dealLanes, PartWindow, rangeOf, sizeOf } from "./parts.js";
import { Patience } from "./patience.js";
import { sendByUppy } from "./uppy-send.js";

const LANES = 3;

/**
 * @typedef {object} Load
 * @property {File} file
 * @property {import("./upload-api.js").UploadState} upload
 * @property {number[]} numbers of the parts to send, ascending
 * @property {string} stateUrl
 * @property {(number: number, signal: AbortSignal) => Promise<string>} sign
 * @property {(sent_bytes: number) => void} onProgress of these parts
 * @property {(number: number, etag: string) => void} onPart storage has taken it
 * @property {(trouble: Error) => void} onTrouble that is being tried again
 */

/**
 * @param {Load} load
 * @param {AbortSignal} signal rejects with its reason
 * @returns {Promise<void>}
 * @throws {Error} the first that can't be mended by trying again
 */
export async function sendParts(load, signal) {
  const stop = new AbortController();
  const lanes = new Lanes(load, anySignal([signal, stop.signal]));
  try {
    await lanes.run();
  } catch (error) {
    // The other lanes' connections would otherwise go on to the end of their parts.
    stop.abort(error);
    throw error;
  }
}

class Lanes {
  /** @type {Map<number, number>} bytes of each part on its way or there */
  #sent = new Map();

  /**
   * @param {Load} load
   * @param {AbortSignal} signal
   */
  constructor(load, signal) {
    this.load = load;
    this.signal = signal;
    this.window = new PartWindow(load.numbers, load.upload.partSizeBytes);
  }

  async run() {
    const lanes = dealLanes(this.load.numbers, LANES);
    await Promise.all(lanes.map((numbers) => this.#runLane(numbers)));
  }

  /** @param {number[]} numbers */
  async #runLane(numbers) {
    const patience = new Patience();
    let rest = numbers;
    while (rest.length) {
      try {
        await this.#send(rest, () => patience.succeeded());
      } catch (error) {
        if (isStale(error)) throw error;
        if (!this.signal.aborted && error instanceof Error) this.load.onTrouble(error);
        await patience.after(error, this.signal);
      }
      rest = rest.filter((number) => this.window.unconfirmed.has(number));
    }
  }

  /**
   * @param {number[]} numbers
   * @param {() => void} onSuccess after each part
   */
  #send(numbers, onSuccess) {
    const { file, upload, stateUrl, sign, onPart } = this.load;
    const slices = numbers.map((number) => {
      const { start, end } = rangeOf(upload, number);
      return file.slice(start, end);
    });
    /** @param {number} chunk */
    const numberOf = (chunk) => /** @type {number} */ (numbers[chunk - 1]);
    return sendByUppy({
      data: new Blob(slices),
      contentType: "",
      chunks: { chunk_bytes: upload.partSizeBytes, stateUrl },
      sign: async (chunk) => {
        await this.window.turn(numberOf(chunk), this.signal);
        return sign(numberOf(chunk), this.signal);
      },
      onProgress: (sent_bytes) => this.#progress(numbers, sent_bytes),
      onChunk: (chunk, etag) => {
        onSuccess();
        onPart(numberOf(chunk), etag);
        this.window.confirm(numberOf(chunk));
      },
      signal: this.signal,
    });
  }

  /**
   * Spreads a lane's bytes over its parts, which are sent one after the other.
   * @param {number[]} numbers
   * @param {number} sent_bytes
   */
  #progress(numbers, sent_bytes) {
    let left = sent_bytes;
    for (const number of numbers) {
      const of_part = Math.min(left, sizeOf(this.load.upload, number));
      this.#sent.set(number, of_part);
      left -= of_part;
      if (left <= 0) break;
    }
    let total = 0;
    for (const bytes of this.#sent.values()) total += bytes;
    this.load.onProgress(total);
  }
}
