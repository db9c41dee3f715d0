/** Content of an upload that a worker repacks while it is sent. */

import { FINDINGS } from "../preflight/findings.js";
import { ContentFailed, TransferFailed } from "../publishing/failures.js";
import { GrowingTransfer } from "../publishing/growing-transfer.js";

/** Time without progress after which the worker is stopped. */
const STALL_TIMEOUT_MS = 60_000;

/** @typedef {import("./worker.js").Message} Message */
/** @typedef {{ still: string, onStill: (still: string) => void }} StillKeeper */

export class RepackedContent {
  /** Bytes that were made until the latest part, and the share of the source that they are made of. */
  #made_bytes = 0;
  #share = 0;

  /**
   * @param {string} url of the worker
   * @param {{ file: File, size_bytes: number, trim: import("./repack.js").Trim | null }} source whose
   *   size is that of the part to be kept
   * @param {StillKeeper} keeper has the still of an earlier visit, and takes a new one
   */
  constructor(url, { file, size_bytes, trim }, keeper) {
    this.url = url;
    this.file = file;
    this.size_bytes = size_bytes;
    this.trim = trim;
    this.keeper = keeper;
    this.name = mp4NameOf(file.name);
  }

  /**
   * Return the bytes of the source from which the first `sent_bytes` of the repacked film were made,
   * by estimate.
   * @param {number} sent_bytes
   */
  sourceBytesOf(sent_bytes) {
    const made_bytes = Math.max(this.#made_bytes, sent_bytes, 1);
    return Math.round((sent_bytes / made_bytes) * this.#share * this.size_bytes);
  }

  /**
   * Yield the film in parts, from its beginning and always with the same bytes.
   * @param {number} part_bytes @param {AbortSignal} signal @returns {AsyncGenerator<Blob, void>}
   */
  async *parts(part_bytes, signal) {
    let made_bytes = 0;
    const worker = new Worker(this.url, { type: "module", name: "repack" });
    const messages = messagesOf(worker, signal);
    try {
      const { file, keeper, trim } = this;
      const name = file.name.replace(/\.[^.]+$/, "").replace(/[_\s]+/g, " ");
      worker.postMessage({ file, part_bytes, still: keeper.still, name, trim });
      for (;;) {
        worker.postMessage("next");
        const next = await this.#nextPart(messages);
        if (!next) return;
        const buffer = next.part;
        made_bytes += buffer.byteLength;
        // Until then, the estimate of an earlier attempt holds.
        this.#made_bytes = made_bytes;
        this.#share = next.share;
        const part = new Blob([buffer]);
        // The worker fills it again. Blobs are freed when the browser cleans up, which it does in time
        // if scripts allocate as much, even if they never use it.
        if (buffer.byteLength === part_bytes) worker.postMessage(buffer, [buffer]);
        new ArrayBuffer(part_bytes);
        yield part;
      }
    } finally {
      worker.terminate();
    }
  }

  /**
   * @param {AsyncIterator<Message, never>} messages
   * @returns {Promise<{ part: ArrayBuffer, share: number } | null>} null at the end
   */
  async #nextPart(messages) {
    for (;;) {
      const { value: message } = await messages.next();
      if ("failure" in message) throw errorOf(message.failure, message.detail);
      if ("isEnd" in message) return null;
      if ("still" in message) {
        this.keeper.still = message.still;
        this.keeper.onStill(message.still);
      }
      if ("part" in message) return message;
    }
  }
}

/**
 * Return the transfer of a file that is repacked.
 * @param {string} url of the worker
 * @param {{ file: File, size_bytes: number, trim: import("./repack.js").Trim | null, key: string,
 *   fingerprint: string }} upload as for `RepackedContent`, and as for any transfer
 * @param {StillKeeper} keeper @param {import("../publishing/api.js").Api} api
 */
export function repackedTransfer(url, upload, keeper, api) {
  return new GrowingTransfer({ ...upload, content: new RepackedContent(url, upload, keeper) }, api);
}

/** Return the name of a file as MP4. @param {string} fileName */
export const mp4NameOf = (fileName) => `${fileName.replace(/\.[^.]+$/, "")}.mp4`;

/** @param {string} code @param {string} detail for the console */
function errorOf(code, detail) {
  console.info("The file couldn’t be repacked.", code, detail);
  if (code === "file_unreadable") return new TransferFailed(0, code);
  const [, title, text] = FINDINGS[code] ?? ["", code, ""];
  return new ContentFailed(title, text);
}

/**
 * Yield the messages of a worker. A worker that ends, or is silent while it is waited for, fails.
 * @param {Worker} worker @param {AbortSignal} signal @returns {AsyncGenerator<Message, never>}
 */
async function* messagesOf(worker, signal) {
  /** @type {Message[]} */
  const waiting = [];
  let wake = () => {};
  const take = (/** @type {Message} */ message) => {
    waiting.push(message);
    wake();
  };
  worker.addEventListener("message", ({ data }) => take(data));
  worker.addEventListener("error", ({ message }) => {
    take({ failure: "unreadable", detail: message });
  });
  for (;;) {
    signal.throwIfAborted();
    const message = waiting.shift();
    if (message) yield message;
    else {
      const hasCome = await waitFor((resolve) => {
        wake = resolve;
      }, signal);
      if (!hasCome) throw errorOf("stalled", "");
    }
  }
}

/**
 * Wait until `register`’s function is called.
 * @param {(resolve: () => void) => void} register @param {AbortSignal} signal rejects with its reason
 * @returns {Promise<boolean>} false after the time limit
 */
function waitFor(register, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(false), STALL_TIMEOUT_MS);
    const stop = new AbortController();
    register(() => {
      clearTimeout(timer);
      stop.abort();
      resolve(true);
    });
    const end = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener("abort", end, { signal: stop.signal });
  });
}
