/**
 * Transfer of one file to storage, whole or in parts. The same rounds resume, repair and confirm the
 * upload.
 */

import { TransferFailed } from "./failures.js";
import { PartSender } from "./part-sender.js";
import { isSentWhole } from "./selectors.js";
import { put, rangeOf, sizeOf } from "./storage.js";
import { Transfer } from "./transfer.js";

/** Number of repairs if storage lacks parts after it accepted all of them. */
const MAX_REPAIRS = 5;

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./api.js").UploadState} UploadState */

/** @extends {Transfer<File>} */
export class FileTransfer extends Transfer {
  /** ETags of the parts that this transfer has sent. @type {Map<number, string>} */
  #etags = new Map();
  #isAllSent = false;
  #repairs = 0;

  /**
   * @param {{ file: File, contentType: string, key: string, fingerprint: string }} source
   * @param {Api} api
   */
  constructor({ contentType, ...source }, api) {
    const { name, size: size_bytes } = source.file;
    super(source, { name, contentType, size_bytes }, api);
  }

  /** @override @param {import("./transfer.js").Report} report @param {AbortSignal} signal */
  async run(report, signal) {
    this.#repairs = 0;
    await super.run(report, signal);
  }

  /** @override */
  get phase() {
    return this.#isAllSent ? "confirming" : "sending";
  }

  /** @override @param {UploadState | null} upload */
  async advance(upload) {
    if (this.#isAllSent) this.#countRepair(upload);
    if (isSentWhole({ size_bytes: this.file.size })) return this.#sendWhole(upload);
    const begun = await this.begin(upload);
    const numbers = partsToSend(begun, this.#etags);
    if (begun.state !== "stored" && numbers.length) return this.#sendParts(begun, numbers);
    this.#isAllSent = true;
    return this.complete();
  }

  /** Send the file by one PUT. @param {UploadState | null} upload */
  async #sendWhole(upload) {
    // A new URL is needed, because the earlier one may have expired. An object of another size is
    // removed first.
    if (upload?.state === "stored") await this.api.remove(this.key);
    this.#isAllSent = false;
    await put(await this.presign(), this.file, {
      contentType: this.target.contentType,
      onProgress: (sent_bytes) => this.report({ sent_bytes }),
      signal: this.signal,
    });
    this.#isAllSent = true;
    this.succeeded();
    return false;
  }

  /** @param {UploadState} upload @param {number[]} numbers */
  async #sendParts(upload, numbers) {
    const missing_bytes = numbers.reduce((sum, number) => sum + sizeOf(upload, number), 0);
    this.#isAllSent = false;
    for (const number of numbers) this.#etags.delete(number);
    const parts = numbers.map((number) => {
      const { start, end } = rangeOf(upload, number);
      return { number, data: this.file.slice(start, end) };
    });
    const sender = new PartSender(this.api, this.key, {
      stored_bytes: this.file.size - missing_bytes,
      report: this.report,
      succeeded: this.succeeded,
      onStored: (number, etag) => {
        if (etag === null) throw new TransferFailed(200, "etag_hidden");
        this.#etags.set(number, etag);
      },
    });
    await sender.send(() => parts, upload.partSizeBytes, this.signal);
    this.#isAllSent = true;
    return false;
  }

  /**
   * Count a repair if storage lacks parts after all were sent.
   * @param {UploadState | null} upload
   */
  #countRepair(upload) {
    if (upload?.state === "uploading" && !partsToSend(upload, this.#etags).length) return;
    this.#isAllSent = false;
    this.#repairs += 1;
    if (this.#repairs > MAX_REPAIRS) throw new TransferFailed(200, "incomplete");
  }

  /** @override @param {string} key */
  setKey(key) {
    this.#etags.clear();
    super.setKey(key);
  }
}

/**
 * Return the parts that storage lacks, or has with another ETag or size.
 * @param {UploadState} upload with the parts that storage lists
 * @param {ReadonlyMap<number, string>} knownEtags ETags of the parts that this page has sent; parts
 *   of earlier pages are compared by size alone
 * @returns {number[]} ascending
 */
export function partsToSend(upload, knownEtags) {
  const unquoted = (/** @type {string} */ etag) => etag.replaceAll('"', "");
  const stored = new Map(upload.parts.map((part) => [part.partNumber, part]));
  const numbers = Array.from({ length: upload.partCount }, (_, index) => index + 1);
  return numbers.filter((number) => {
    const part = stored.get(number);
    const etag = knownEtags.get(number);
    if (!part || part.sizeBytes !== sizeOf(upload, number)) return true;
    return etag !== undefined && unquoted(etag) !== unquoted(part.etag);
  });
}
