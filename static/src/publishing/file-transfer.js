/**
 * Transfer of one file to storage, across any number of interruptions. Each round reads the
 * upload's state from storage and takes the next step. A round may be interrupted anywhere, and the
 * same rounds resume, repair and confirm the upload.
 */

import { Refused } from "../requests.js";
import { retry } from "../retry.js";
import { isStale, TRANSFER, TransferFailed } from "./failures.js";
import { PartSender, reportSilence } from "./part-sender.js";
import { fingerprintOf } from "./saved.js";
import { isSentWhole } from "./selectors.js";
import { put, rangeOf, sizeOf } from "./storage.js";

/** Number of repairs if storage lacks parts after it accepted all of them. */
const MAX_REPAIRS = 5;

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./api.js").UploadState} UploadState */
/** @typedef {import("./transfer.js").TransferUpdate} TransferUpdate */

export class FileTransfer {
  /** ETags of the parts that this transfer has sent. @type {Map<number, string>} */
  #etags = new Map();
  #isAllSent = false;
  #repairs = 0;
  #signal = new AbortController().signal;
  /** @type {(update: TransferUpdate) => void} */
  #report = () => {};
  /** Called when data has arrived. */
  #succeeded = () => {};

  /**
   * @param {{ file: File, contentType: string, key: string, fingerprint: string }} source `key` is
   *   that of an upload to continue, or empty
   * @param {Api} api
   */
  constructor({ file, contentType, key, fingerprint }, api) {
    this.file = file;
    this.contentType = contentType;
    this.fingerprint = fingerprint;
    this.key = key;
    this.api = api;
  }

  /**
   * Transfer the file until storage has confirmed the whole of it. May run again after an abort.
   * @param {(update: TransferUpdate) => void} report
   * @param {AbortSignal} signal rejects with its reason @returns {Promise<void>}
   */
  async run(report, signal) {
    const reporting = reportSilence(report);
    this.#report = reporting.report;
    this.#signal = signal;
    this.#repairs = 0;
    try {
      this.fingerprint ||= await fingerprintOf(this.file).catch(() => {
        throw new TransferFailed(0, "file_unreadable");
      });
      this.#report({ fingerprint: this.fingerprint });
      const rounds = async (/** @type {() => void} */ succeeded) => {
        this.#succeeded = succeeded;
        while (!(await this.#round())) this.#report({ trouble: null });
      };
      await retry(rounds, {
        ...TRANSFER,
        signal,
        onError: (trouble) => isStale(trouble) || this.#report({ trouble }),
      });
    } finally {
      reporting.stop();
    }
  }

  /**
   * Take the next step, and return whether storage has the whole file.
   * @returns {Promise<boolean>}
   */
  async #round() {
    this.#report({ phase: this.#isAllSent ? "confirming" : "sending" });
    const upload = this.key ? await this.#read() : null;
    if (this.#isWhole(upload)) return true;
    if (this.#isAllSent) this.#countRepair(upload);
    if (!isSentWhole({ size_bytes: this.file.size })) return this.#advance(upload);
    await this.#sendWhole(upload);
    return false;
  }

  /** @param {UploadState | null} upload */
  #isWhole(upload) {
    return upload?.state === "stored" && upload.sizeBytes === this.file.size;
  }

  async #read() {
    try {
      return await this.api.read(this.key, this.#signal);
    } catch (error) {
      if (!(error instanceof Refused && error.code === "upload_not_issued")) throw error;
      // The portal no longer knows the upload, for example because its database was restored.
      this.#setKey("");
      return null;
    }
  }

  async #presign() {
    const issued = await this.api.presign(this.file, this.contentType, this.#signal);
    this.#setKey(issued.key);
    return issued.uploadUrl;
  }

  /** @param {UploadState | null} upload */
  async #sendWhole(upload) {
    // A new URL is needed, because the earlier one may have expired. An object of another size is
    // removed first.
    if (upload?.state === "stored") await this.api.remove(this.key);
    this.#isAllSent = false;
    await put(await this.#presign(), this.file, {
      contentType: this.contentType,
      onProgress: (sent_bytes) => this.#report({ sent_bytes }),
      signal: this.#signal,
    });
    this.#isAllSent = true;
    this.#succeeded();
  }

  /** @param {UploadState | null} upload */
  async #advance(upload) {
    if (!this.key) await this.#presign();
    const started =
      upload?.state === "uploading" ? upload : await this.api.begin(this.key, this.file.size);
    this.#signal.throwIfAborted();
    const numbers = partsToSend(started, this.#etags);
    if (started.state !== "stored" && numbers.length) {
      await this.#sendParts(started, numbers);
      return false;
    }
    this.#isAllSent = true;
    this.#report({ phase: "confirming" });
    if (this.#isWhole(await this.api.complete(this.key, this.#signal))) return true;
    throw new TransferFailed(200, "incomplete");
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
      report: this.#report,
      succeeded: this.#succeeded,
      onStored: (number, etag) => {
        if (etag === null) throw new TransferFailed(200, "etag_hidden");
        this.#etags.set(number, etag);
      },
    });
    await sender.send(() => parts, upload.partSizeBytes, this.#signal);
    this.#isAllSent = true;
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

  /** @param {string} key */
  #setKey(key) {
    this.key = key;
    this.#etags.clear();
    this.#report({ key });
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
