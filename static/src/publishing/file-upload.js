/** Upload of one file for other pages than the upload page; the only module that they import. */

import { readStored, writeStored } from "../browser-storage.js";
import { requestJson } from "../people/session.js";
import { Refused } from "../requests.js";
import { retry } from "../retry.js";
import { Api } from "./api.js";
import { describeTransferError, TRANSFER } from "./failures.js";
import { FileTransfer } from "./file-transfer.js";
import { isSameFile } from "./saved.js";
import { isRunning } from "./selectors.js";
import { statusOf } from "./texts.js";
import { newUpload, withFile, withTransferUpdate } from "./upload.js";

/** @typedef {import("./transfer.js").AnyTransfer} AnyTransfer */

export class FileUpload {
  /** Transfer of the last file, which continues after a failure. @type {AnyTransfer | null} */
  #transfer = null;
  #stop = new AbortController();
  #upload = newUpload(1);

  /**
   * @param {import("./api.js").Urls & { repackUrl?: string }} urls `publishUrl` accepts the key of
   *   the uploaded file; `repackUrl` is needed to send files of other formats
   * @param {(status: import("./texts.js").Status) => void} show
   * @param {string} [savedAs] key of this browser's storage, by which the upload continues after a
   *   reload if the same file is chosen
   */
  constructor(urls, show, savedAs = "") {
    this.api = new Api(urls);
    this.repackUrl = urls.repackUrl ?? "";
    this.show = show;
    this.savedAs = savedAs;
  }

  /** Name of the file whose upload is saved, or empty. @returns {string} */
  get unfinishedName() {
    return this.savedAs ? (readStored(this.savedAs)?.fileName ?? "") : "";
  }

  get isRunning() {
    return isRunning(this.#upload);
  }

  /**
   * Send a file to storage, and its key to the portal with these details. A file of another format
   * is repacked to MP4.
   * @param {File} file @param {string} contentType @param {Record<string, string>} [details]
   * @returns {Promise<boolean>} false if stopped
   * @throws {Error} whose message is for people
   */
  async send(file, contentType, details = {}) {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const chosen = withFile(newUpload(1), { file, id: "", saved_at: 0 });
    this.#set({ ...chosen, phase: "sending" });
    try {
      const former = this.#transfer?.file === file ? this.#transfer : null;
      const transfer = former ?? (await this.#newTransfer(chosen, file, contentType));
      this.#transfer = transfer;
      await transfer.run((update) => {
        if (signal.aborted) return;
        if (update.key !== undefined) this.#save(transfer);
        this.#set(withTransferUpdate(this.#upload, update, performance.now()));
      }, signal);
      const body = { ...details, key: transfer.key, fileName: transfer.target.name };
      const publish = () => requestJson("POST", this.api.urls.publishUrl, { body, signal });
      await retry(publish, { ...TRANSFER, signal });
    } catch (error) {
      if (signal.aborted) return false;
      const failure = /** @type {Error} */ (error);
      this.#set({ ...this.#upload, phase: "failed", failure });
      throw new Error(describeTransferError(failure).join(". "), { cause: error });
    }
    this.#save(null);
    this.#transfer = null;
    this.#set({ ...this.#upload, phase: "sent" });
    return true;
  }

  /**
   * @param {import("./upload.js").Upload} upload @param {File} file @param {string} contentType
   * @returns {Promise<AnyTransfer>}
   */
  async #newTransfer({ repackedFrom, size_bytes }, file, contentType) {
    const saved = await this.#savedOf(file);
    if (!repackedFrom) return new FileTransfer({ file, contentType, ...saved }, this.api);
    const { repackedTransfer } = await import("../repack/content.js");
    // No later visit continues this upload, so the still isn't saved.
    const keeper = { still: "", onStill() {} };
    const source = { file, size_bytes, trim: null, ...saved };
    return repackedTransfer(this.repackUrl, source, keeper, this.api);
  }

  stop() {
    this.#stop.abort();
  }

  /** Stop until the same file is sent again. */
  pause() {
    this.stop();
    this.#set({ ...this.#upload, phase: "paused" });
  }

  /** Stop, and delete the data. @returns {Promise<boolean>} false if the portal has used them already */
  async discard() {
    const key = this.#transfer?.key;
    this.stop();
    this.#save(null);
    this.#transfer = null;
    this.#set({ ...this.#upload, phase: "cancelled" });
    try {
      if (key) await this.api.remove(key);
      return true;
    } catch (error) {
      // After another error, the portal's janitor removes the data later.
      return !(error instanceof Refused && error.status === 409);
    }
  }

  /** Save an upload for later visits, or remove the saved one. @param {AnyTransfer | null} transfer */
  #save(transfer) {
    if (!this.savedAs) return;
    const { key, fingerprint, file } = transfer ?? {};
    const saved = key && { key, fingerprint, fileName: file?.name, size_bytes: file?.size };
    writeStored(this.savedAs, saved || undefined);
  }

  /** Return the key and the fingerprint of the saved upload of a file. @param {File} file */
  async #savedOf(file) {
    const saved = this.savedAs ? readStored(this.savedAs) : null;
    if (!saved || !(await isSameFile(saved, file))) return { key: "", fingerprint: "" };
    return { key: String(saved.key), fingerprint: String(saved.fingerprint) };
  }

  /** @param {import("./upload.js").Upload} upload */
  #set(upload) {
    this.#upload = upload;
    this.show(statusOf(upload));
  }
}
