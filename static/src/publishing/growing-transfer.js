/**
 * Transfer of content that is produced while it is sent, such as a recording, across any number of
 * interruptions. Each round sends the parts that storage lacks, and then completes the upload with
 * its size.
 */

import { Refused } from "../requests.js";
import { retry } from "../retry.js";
import { isStale, TRANSFER, TransferFailed } from "./failures.js";
import { PartSender, reportSilence } from "./part-sender.js";

/** Content is sent as MP4. */
const CONTENT_TYPE = "video/mp4";

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./api.js").UploadState} UploadState */
/** @typedef {import("./part-sender.js").Report} Report */
/**
 * Content whose size is unknown until its end; `name` is the name of an MP4 file. Each iteration
 * starts at the first part and yields the same bytes: blobs of `part_bytes`, the last one shorter.
 * @typedef {{ name: string,
 *   parts: (part_bytes: number, signal: AbortSignal) => AsyncIterable<Blob> }} Content
 */

/**
 * Transfer of one upload of unknown size. A new one with the key of an earlier transfer continues it:
 * parts that storage has already aren't sent again.
 */
export class GrowingTransfer {
  #signal = new AbortController().signal;
  /** @type {Report} */
  #report = () => {};
  /** Called when data has arrived. */
  #succeeded = () => {};

  /**
   * @param {{ content: Content, key: string }} source `key` is that of an upload to continue, or
   *   empty
   * @param {Api} api
   */
  constructor({ content, key }, api) {
    this.content = content;
    this.key = key;
    this.api = api;
  }

  /**
   * Transfer the content until storage has confirmed the whole of it. After an abort or an error, it
   * may run again, and sends what storage lacks.
   * @param {Report} report @param {AbortSignal} signal rejects with its reason
   * @returns {Promise<void>}
   */
  async run(report, signal) {
    const reporting = reportSilence(report);
    this.#report = reporting.report;
    this.#signal = signal;
    try {
      const attempt = async (/** @type {() => void} */ succeeded) => {
        this.#succeeded = succeeded;
        await this.#round();
      };
      await retry(attempt, {
        ...TRANSFER,
        signal,
        onError: (trouble) => isStale(trouble) || this.#report({ trouble }),
      });
    } finally {
      reporting.stop();
    }
  }

  /** Send the parts that storage lacks, and complete the upload. */
  async #round() {
    this.#report({ phase: "sending" });
    const known = this.key ? await this.#read() : null;
    if (known?.state === "stored") return;
    if (!this.key) await this.#presign();
    // An upload whose completion failed has a size already.
    const upload = known?.state === "uploading" ? known : await this.api.begin(this.key, null);
    this.#signal.throwIfAborted();
    const size_bytes = await this.#sendParts(upload);
    this.#report({ phase: "confirming" });
    const { state } = await this.api.complete(this.key, this.#signal, size_bytes);
    if (state !== "stored") throw new TransferFailed(200, "incomplete");
  }

  async #read() {
    try {
      return await this.api.read(this.key, this.#signal);
    } catch (error) {
      if (!(error instanceof Refused && error.code === "upload_not_issued")) throw error;
      // The portal no longer knows the upload, for example because its database was restored.
      this.key = "";
      return null;
    }
  }

  async #presign() {
    const { key } = await this.api.presign(this.content, CONTENT_TYPE, this.#signal);
    this.key = key;
    this.#report({ key });
  }

  /**
   * Send the parts that storage lacks, and return the size of the content.
   * @param {UploadState} upload
   */
  async #sendParts({ partSizeBytes, isGrowing, parts: stored }) {
    const storedSizes = new Map(stored.map((part) => [part.partNumber, part.sizeBytes]));
    const sender = new PartSender(this.api, this.key, {
      stored_bytes: 0,
      isGrowing,
      report: this.#report,
      succeeded: this.#succeeded,
    });
    const { content } = this;
    let size_bytes = 0;
    /** @param {AbortSignal} signal */
    async function* missingParts(signal) {
      let number = 0;
      for await (const data of content.parts(partSizeBytes, signal)) {
        number += 1;
        size_bytes += data.size;
        const part = { number, data };
        if (storedSizes.get(number) === data.size) sender.skip(part);
        else yield part;
      }
    }
    await sender.send(missingParts, partSizeBytes, this.#signal);
    return size_bytes;
  }
}
