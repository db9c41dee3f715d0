/** Transfer of a file that is repacked, whose progress is told in bytes of the file. */

import { TransferFailed } from "../publishing/failures.js";
import { GrowingTransfer } from "../publishing/growing-transfer.js";
import { fingerprintOf } from "../publishing/saved.js";

/** @typedef {import("../publishing/transfer.js").TransferUpdate} TransferUpdate */

export class RepackedTransfer extends GrowingTransfer {
  /**
   * @param {{ file: File, key: string, fingerprint: string }} source
   * @param {import("./content.js").RepackedContent} content @param {import("../publishing/api.js").Api} api
   */
  constructor({ file, key, fingerprint }, content, api) {
    super({ content, key }, api);
    this.file = file;
    this.fingerprint = fingerprint;
    this.repacked = content;
  }

  /**
   * @override
   * @param {(update: TransferUpdate) => void} report @param {AbortSignal} signal
   */
  async run(report, signal) {
    this.fingerprint ||= await fingerprintOf(this.file).catch(() => {
      throw new TransferFailed(0, "file_unreadable");
    });
    report({ fingerprint: this.fingerprint });
    await super.run((update) => report(this.#inSourceBytes(update)), signal);
  }

  /** @param {TransferUpdate} update */
  #inSourceBytes({ stored_bytes, sent_bytes, ...update }) {
    const inSource = (/** @type {number} */ bytes) => this.repacked.sourceBytesOf(bytes);
    return {
      ...update,
      ...(stored_bytes === undefined ? {} : { stored_bytes: inSource(stored_bytes) }),
      ...(sent_bytes === undefined ? {} : { sent_bytes: inSource(sent_bytes) }),
    };
  }
}
