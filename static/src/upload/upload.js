/** One file on its way to storage: asks for an address, sends the file, remembers the key. */

import { postJson } from "../api.js";
import { putFile } from "./transfer.js";

/** @typedef {"sending" | "sent" | "failed"} UploadState */

export class Upload {
  /** @type {UploadState} */
  state = "sending";
  key = "";
  #controller = new AbortController();

  /**
   * @param {File} file
   * @param {string} contentType
   * @param {string} presignUrl
   */
  constructor(file, contentType, presignUrl) {
    this.file = file;
    this.contentType = contentType;
    this.presignUrl = presignUrl;
  }

  /**
   * Sends the file, from the start. A retry asks for a new address, since the old may have expired.
   * @param {(sent_bytes: number) => void} onProgress
   * @throws {import("../api.js").Refused | import("../api.js").NoAnswer
   *   | import("./transfer.js").TransferFailed}
   */
  async send(onProgress) {
    const { signal } = this.#controller;
    const { file, contentType } = this;
    this.state = "sending";
    try {
      const request = { fileName: file.name, contentType };
      const { uploadUrl, key } = await postJson(this.presignUrl, request, signal);
      await putFile({ url: uploadUrl, file, contentType, onProgress, signal });
      this.key = key;
      this.state = "sent";
    } catch (error) {
      this.state = "failed";
      throw error;
    }
  }

  cancel() {
    this.#controller.abort();
  }

  get cancelled() {
    return this.#controller.signal.aborted;
  }
}
