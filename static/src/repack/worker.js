/**
 * Worker of the upload page that repacks one file, or shows what it contains. The first message names
 * the file and how; after that, each message asks for one part. A part is a buffer that is handed over. As a Blob it would stay
 * in the browser's memory until scripts are cleaned up, which small objects don't cause.
 */

import { readPreview } from "../trim/thumbnails.js";
import { NotRepacked, repack } from "./repack.js";
import { makeStill } from "./still.js";

/** Time between two messages about progress. */
const REPORT_MS = 500;

/**
 * `still` is that of an earlier visit in JSON, or empty; `name` is a title for a new one.
 * @typedef {{ file: File, part_bytes: number, still: string, name: string,
 *   trim: import("./repack.js").Trim | null }} Work
 */
/**
 * Messages to the page: progress as a share of the source; a new still; a part; the end; a failure,
 * whose code is "file_unreadable" if the file has changed.
 * @typedef {import("./repack.js").FailureCode | "file_unreadable"} Code
 * @typedef {{ share: number } | { still: string } | { part: ArrayBuffer, share: number } | { isEnd: true }
 *   | { failure: Code, detail: string }} Message
 */

let wantedParts = 0;
/** Buffers of parts that the page has copied. @type {ArrayBuffer[]} */
const returned = [];
let wake = () => {};

/** @param {Message} message @param {ArrayBuffer[]} [handedOver] */
const tell = (message, handedOver = []) => postMessage(message, { transfer: handedOver });

/** Collects what is written into parts of the same size. */
class Parts {
  #filled_bytes = 0;
  share = 0;

  /** @param {number} part_bytes */
  constructor(part_bytes) {
    this.buffer = new Uint8Array(part_bytes);
  }

  /** Take data, and wait while no part is wanted. @param {Uint8Array} data */
  async write(data) {
    for (let at = 0; at < data.length; ) {
      const taken = data.subarray(at, at + this.buffer.length - this.#filled_bytes);
      this.buffer.set(taken, this.#filled_bytes);
      this.#filled_bytes += taken.length;
      at += taken.length;
      if (this.#filled_bytes === this.buffer.length) await this.#send();
    }
  }

  /** Send the last part. */
  async end() {
    if (this.#filled_bytes) await this.#send();
  }

  async #send() {
    while (!wantedParts) {
      await new Promise((resolve) => {
        wake = () => resolve(undefined);
      });
    }
    wantedParts -= 1;
    const { buffer } = this;
    const isFull = this.#filled_bytes === buffer.length;
    const part = isFull ? buffer.buffer : buffer.slice(0, this.#filled_bytes).buffer;
    this.#filled_bytes = 0;
    this.buffer = new Uint8Array(returned.pop() ?? new ArrayBuffer(buffer.length));
    tell({ part, share: this.share }, [part]);
  }
}

/** @param {Work} work */
async function run({ file, part_bytes, still, name, trim }) {
  const parts = new Parts(part_bytes);
  let told_ms = 0;
  const report = (/** @type {number} */ share) => {
    parts.share = share;
    const now_ms = performance.now();
    if (now_ms - told_ms < REPORT_MS) return;
    told_ms = now_ms;
    tell({ share });
  };
  try {
    const makeOneStill = async (/** @type {import("mediabunny").MetadataTags} */ tags) => {
      if (still) return JSON.parse(still);
      const made = await makeStill(tags, name);
      if (made) tell({ still: JSON.stringify(made) });
      return made;
    };
    const write = (/** @type {Uint8Array} */ data) => parts.write(data);
    await repack(file, { write, report, makeStill: makeOneStill }, trim);
    await parts.end();
    tell({ isEnd: true });
  } catch (error) {
    const failure = error instanceof NotRepacked ? error.code : "file_unreadable";
    const cause = error instanceof NotRepacked ? (error.cause ?? error) : error;
    tell({ failure, detail: String(cause) });
  }
}

globalThis.addEventListener("message", ({ data }) => {
  if (data instanceof ArrayBuffer) returned.push(data);
  else if (data === "next") {
    wantedParts += 1;
    wake();
  } else if (data.preview) {
    const failed = () => ({ duration_s: 0 });
    readPreview(data.preview)
      .catch(failed)
      .then((preview) => postMessage(preview));
  } else run(data);
});
