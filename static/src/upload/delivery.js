/**
 * Brings one file into storage, however often it is interrupted. Each round asks where the upload
 * stands, in storage's own words, and does the next thing; so a round may be broken off anywhere,
 * and the same rounds resume, repair and confirm.
 */

import { Refused } from "../api.js";
import { isStale, TransferFailed } from "./failures.js";
import { sendParts } from "./lanes.js";
import { partsToSend, sizeOf } from "./parts.js";
import { Patience } from "./patience.js";
import { sendByUppy } from "./uppy-send.js";

/** A file up to this size is one PUT: fewer requests, and little to send again. */
const SINGLE_PUT_LIMIT_BYTES = 64 * 2 ** 20;
/** So often may storage lack something after it has taken everything. */
const MAX_DISAPPOINTMENTS = 5;

/** @typedef {import("./upload-api.js").UploadState} UploadState */
/**
 * @typedef {object} Events
 * @property {(key: string) => void} onKey the file's key in storage is this from now on
 * @property {(state: "sending" | "confirming") => void} onState
 * @property {(sent_bytes: number) => void} onProgress may go down, when something is sent again
 * @property {(trouble: Error | null) => void} onTrouble that is being tried again, or has passed
 */

export class Delivery {
  /** @type {Map<number, string>} what storage answered to each part sent from here */
  #etags = new Map();
  #isAllSent = false;
  #disappointments = 0;

  /**
   * @param {File} file
   * @param {string} contentType
   * @param {object} options
   * @param {import("./upload-api.js").UploadApi} options.api
   * @param {string} options.key of an upload to continue, or empty
   * @param {Events} options.events
   */
  constructor(file, contentType, { api, key, events }) {
    this.file = file;
    this.contentType = contentType;
    this.api = api;
    this.key = key;
    this.events = events;
  }

  /**
   * @param {AbortSignal} signal rejects with its reason; may be run again afterwards
   * @returns {Promise<void>} when storage has confirmed that it has the whole file
   */
  async run(signal) {
    const patience = new Patience();
    this.#disappointments = 0;
    while (true) {
      try {
        if (await this.#round(signal, () => patience.succeeded())) return;
        this.events.onTrouble(null);
      } catch (error) {
        const isTrouble = error instanceof Error && !signal.aborted && !isStale(error);
        if (isTrouble) this.events.onTrouble(error);
        await patience.after(error, signal);
      }
    }
  }

  /**
   * @param {AbortSignal} signal
   * @param {() => void} onSuccess bytes have arrived
   * @returns {Promise<boolean>} whether storage has it all
   */
  async #round(signal, onSuccess) {
    this.events.onState(this.#isAllSent ? "confirming" : "sending");
    const upload = this.key ? await this.#read(signal) : null;
    if (upload?.state === "stored" && upload.sizeBytes === this.file.size) return true;
    if (this.#isAllSent) this.#countDisappointment(upload);
    if (this.file.size <= SINGLE_PUT_LIMIT_BYTES) {
      await this.#sendWhole(upload, signal);
      onSuccess();
      return false;
    }
    return this.#advance(upload, signal, onSuccess);
  }

  /** @param {AbortSignal} signal */
  async #read(signal) {
    try {
      return await this.api.read(this.key, signal);
    } catch (error) {
      if (!(error instanceof Refused && error.code === "upload_not_issued")) throw error;
      // Issued by a portal that has forgotten it since: its database was restored, say.
      this.#setKey("");
      return null;
    }
  }

  /**
   * @param {UploadState | null} upload
   * @param {AbortSignal} signal
   */
  async #sendWhole(upload, signal) {
    // An address signed earlier may have expired, and an object of another size may be there.
    if (upload?.state === "stored") await this.api.remove(this.key);
    this.#isAllSent = false;
    const { key, uploadUrl } = await this.api.presign(this.file, this.contentType, signal);
    this.#setKey(key);
    await sendByUppy({
      data: this.file,
      contentType: this.contentType,
      chunks: null,
      sign: async () => uploadUrl,
      onProgress: this.events.onProgress,
      onChunk: () => {},
      signal,
    });
    this.#isAllSent = true;
  }

  /**
   * @param {UploadState | null} upload
   * @param {AbortSignal} signal
   * @param {() => void} onSuccess
   */
  async #advance(upload, signal, onSuccess) {
    if (!this.key) this.#setKey((await this.api.presign(this.file, this.contentType, signal)).key);
    const begun =
      upload?.state === "uploading" ? upload : await this.api.begin(this.key, this.file.size);
    signal.throwIfAborted();
    const numbers = partsToSend(begun, this.#etags);
    if (begun.state === "stored" || !numbers.length) return this.#complete(signal);
    await this.#sendParts(begun, numbers, signal, onSuccess);
    return false;
  }

  /** @param {AbortSignal} signal */
  async #complete(signal) {
    this.#isAllSent = true;
    this.events.onState("confirming");
    const { state, sizeBytes } = await this.api.complete(this.key, signal);
    if (state === "stored" && sizeBytes === this.file.size) return true;
    throw new TransferFailed(200, "incomplete");
  }

  /**
   * @param {UploadState} upload
   * @param {number[]} numbers
   * @param {AbortSignal} signal
   * @param {() => void} onSuccess
   */
  async #sendParts(upload, numbers, signal, onSuccess) {
    const { key, api, events } = this;
    const stored_bytes = numbers.reduce(
      (bytes, number) => bytes - sizeOf(upload, number),
      this.file.size,
    );
    this.#isAllSent = false;
    events.onState("sending");
    events.onProgress(stored_bytes);
    for (const number of numbers) this.#etags.delete(number);
    const load = {
      file: this.file,
      upload,
      numbers,
      stateUrl: api.stateUrl(key),
      sign: api.signPart.bind(api, key),
      /** @param {number} sent_bytes */
      onProgress: (sent_bytes) => events.onProgress(stored_bytes + sent_bytes),
      /** @type {(number: number, etag: string) => void} */
      onPart: (number, etag) => {
        this.#etags.set(number, etag);
        events.onTrouble(null);
        onSuccess();
      },
      onTrouble: events.onTrouble,
    };
    await sendParts(load, signal);
    this.#isAllSent = true;
  }

  /** @param {UploadState | null} upload as storage has it after everything was sent */
  #countDisappointment(upload) {
    if (upload?.state === "uploading" && !partsToSend(upload, this.#etags).length) return;
    this.#isAllSent = false;
    this.#disappointments += 1;
    if (this.#disappointments > MAX_DISAPPOINTMENTS) throw new TransferFailed(200, "incomplete");
  }

  /** @param {string} key */
  #setKey(key) {
    this.key = key;
    this.#etags.clear();
    this.events.onKey(key);
  }
}
