/**
 * Transfer of content to storage, across any number of interruptions. This is the base of
 * `file-transfer.js` and `growing-transfer.js`, which know what to send next.
 */

import { Refused } from "../requests.js";
import { retry } from "../retry.js";
import { isStale, TRANSFER, TransferFailed } from "./failures.js";
import { fingerprintOf } from "./saved.js";
import { isRepacked } from "./selectors.js";

/** Time without progress after which the page names the cause. */
const SILENCE_MS = 4_000;

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./api.js").UploadState} UploadState */
/**
 * Progress of a transfer. `stored_bytes` counts complete parts in storage; `sent_bytes` also counts
 * sent bytes that may not have arrived.
 * @typedef {{ key?: string, fingerprint?: string, phase?: "sending" | "confirming" | "sent",
 *   stored_bytes?: number, sent_bytes?: number, trouble?: Error | null,
 *   isSilent?: boolean }} TransferUpdate
 */
/** @typedef {(update: TransferUpdate) => void} Report */
/** @typedef {Transfer<File | null>} AnyTransfer */
/**
 * Name and content type of what is sent, and its size, null if it is unknown.
 * @typedef {{ name: string, contentType: string, size_bytes: number | null }} Target
 */

/**
 * Transfer of one upload. It advances in rounds: each reads the upload's state and takes the next
 * step. A round may be interrupted anywhere.
 * @abstract @template {File | null} ChosenFile
 */
export class Transfer {
  /** Signal of the present run. */
  signal = new AbortController().signal;
  /** Report of the present run. @type {Report} */
  report = () => {};
  /** Called when data has arrived. */
  succeeded = () => {};

  /**
   * @param {{ file: ChosenFile, key: string, fingerprint: string }} source the file that was chosen,
   *   null if there is none. `key` is that of an upload to continue, or empty
   * @param {Target} target @param {Api} api
   */
  constructor({ file, key, fingerprint }, target, api) {
    this.file = file;
    this.key = key;
    this.fingerprint = fingerprint;
    this.target = target;
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
    this.report = reporting.report;
    this.signal = signal;
    try {
      if (this.file) await this.#identify(this.file);
      const rounds = async (/** @type {() => void} */ succeeded) => {
        this.succeeded = succeeded;
        while (!(await this.#round())) this.report({ trouble: null });
      };
      await retry(rounds, {
        ...TRANSFER,
        signal,
        onError: (trouble) => isStale(trouble) || this.report({ trouble }),
      });
    } finally {
      reporting.stop();
    }
  }

  /** @param {File} file */
  async #identify(file) {
    this.fingerprint ||= await fingerprintOf(file).catch(() => {
      throw new TransferFailed(0, "file_unreadable");
    });
    this.report({ fingerprint: this.fingerprint });
  }

  /** Return whether storage has the whole content; else take the next step. */
  async #round() {
    this.report({ phase: this.phase });
    const upload = this.key ? await this.#read() : null;
    return this.#isWhole(upload) || this.advance(upload);
  }

  /** Phase in which a round begins. @returns {"sending" | "confirming"} */
  get phase() {
    return "sending";
  }

  /**
   * Take the next step, and return whether storage has confirmed the whole content.
   * @abstract @param {UploadState | null} _upload @returns {Promise<boolean>}
   */
  async advance(_upload) {
    throw new Error("abstract");
  }

  /** @param {UploadState | null} upload */
  #isWhole(upload) {
    const { size_bytes } = this.target;
    return upload?.state === "stored" && (size_bytes ?? upload.sizeBytes) === upload.sizeBytes;
  }

  async #read() {
    try {
      return await this.api.read(this.key, this.signal);
    } catch (error) {
      if (!(error instanceof Refused && error.code === "upload_not_issued")) throw error;
      // The portal no longer knows the upload, for example because its database was restored.
      this.setKey("");
      return null;
    }
  }

  /** Request a new key, and return the URL for one PUT of the whole content. */
  async presign() {
    const { key, uploadUrl } = await this.api.presign(this.target, this.signal);
    this.setKey(key);
    return uploadUrl;
  }

  /** @param {string} key */
  setKey(key) {
    this.key = key;
    this.report({ key });
  }

  /**
   * Begin the upload in parts, unless it has begun.
   * @param {UploadState | null} upload @returns {Promise<UploadState>}
   */
  async begin(upload) {
    if (!this.key) await this.presign();
    // A growing upload whose completion failed has a size already.
    const begun =
      upload?.state === "uploading"
        ? upload
        : await this.api.begin(this.key, this.target.size_bytes);
    this.signal.throwIfAborted();
    return begun;
  }

  /**
   * Assemble the parts in storage.
   * @param {number} [size_bytes] size of growing content @returns {Promise<true>}
   */
  async complete(size_bytes) {
    this.report({ phase: "confirming" });
    const upload = await this.api.complete(this.key, this.signal, size_bytes);
    if (!this.#isWhole(upload)) throw new TransferFailed(200, "incomplete");
    return true;
  }
}

/**
 * Return a report that also says when the transfer is silent for some seconds.
 * @param {Report} report @returns {{ report: Report, stop: () => void }}
 */
function reportSilence(report) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return {
    report(update) {
      clearTimeout(timer);
      timer = setTimeout(() => report({ isSilent: true }), SILENCE_MS);
      report({ isSilent: false, ...update });
    },
    stop: () => clearTimeout(timer),
  };
}

/**
 * Return the progress of an upload of an earlier visit.
 * @param {Api} api @param {{ key: string, size_bytes: number, repackedFrom: unknown,
 *   trim: unknown }} upload
 * @returns {Promise<{ isStored: boolean, arrived_bytes: number } | null>} null without a response
 */
export async function arrivedOf(api, { key, size_bytes, ...upload }) {
  try {
    const { state, sizeBytes, parts } = await api.read(key);
    // The size of a file that is repacked is unknown.
    const isStored = state === "stored" && (isRepacked(upload) || sizeBytes === size_bytes);
    // An object of another size is no progress.
    const countedParts = state === "stored" ? [] : parts;
    return { isStored, arrived_bytes: countedParts.reduce((sum, part) => sum + part.sizeBytes, 0) };
  } catch (error) {
    const isGone = error instanceof Refused && error.status === 404;
    return isGone ? { isStored: false, arrived_bytes: 0 } : null;
  }
}
