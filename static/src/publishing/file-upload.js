/** Upload of one file for other pages than the upload page; the only module that they import. */

import { requestJson } from "../people/session.js";
import { Refused } from "../requests.js";
import { retry } from "../retry.js";
import { Api } from "./api.js";
import { describeTransferError, TRANSFER } from "./failures.js";
import { isRunning } from "./selectors.js";
import { statusOf } from "./texts.js";
import { Transfer } from "./transfer.js";
import { newUpload, withFile, withTransferUpdate } from "./upload.js";

export class FileUpload {
  /** Transfer of the last file, which continues after a failure. @type {Transfer | null} */
  #transfer = null;
  #stop = new AbortController();
  #upload = newUpload(1);

  /**
   * @param {import("./api.js").Urls} urls `publishUrl` accepts the key of the uploaded file
   * @param {(status: import("./texts.js").Status) => void} show
   */
  constructor(urls, show) {
    this.api = new Api(urls);
    this.show = show;
  }

  get isRunning() {
    return isRunning(this.#upload);
  }

  /**
   * Send a file to storage, and its key to the portal.
   * @param {File} file @param {string} contentType @returns {Promise<boolean>} false if stopped
   * @throws {Error} whose message is for people
   */
  async send(file, contentType) {
    if (this.#transfer?.file !== file) {
      this.#transfer = new Transfer({ file, contentType, key: "", fingerprint: "" }, this.api);
    }
    const transfer = this.#transfer;
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const chosen = withFile(newUpload(1), { file, id: "", saved_at: 0 });
    this.#set({ ...chosen, phase: "sending" });
    try {
      await transfer.run((update) => {
        if (!signal.aborted) this.#set(withTransferUpdate(this.#upload, update, performance.now()));
      }, signal);
      const body = { key: transfer.key, fileName: file.name };
      const publish = () => requestJson("POST", this.api.urls.publishUrl, { body, signal });
      await retry(publish, { ...TRANSFER, signal });
    } catch (error) {
      if (signal.aborted) return false;
      const failure = /** @type {Error} */ (error);
      this.#set({ ...this.#upload, phase: "failed", failure });
      throw new Error(describeTransferError(failure).join(". "), { cause: error });
    }
    this.#set({ ...this.#upload, phase: "sent" });
    return true;
  }

  stop() {
    this.#stop.abort();
  }

  /** Stop, and delete the data. @returns {Promise<boolean>} false if the portal has used them already */
  async discard() {
    const key = this.#transfer?.key;
    this.stop();
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

  /** @param {import("./upload.js").Upload} upload */
  #set(upload) {
    this.#upload = upload;
    this.show(statusOf(upload));
  }
}
