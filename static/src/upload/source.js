/**
 * Where a row's file is: on its way in a transfer, in storage since another visit, or to be chosen
 * again. Knows nothing of what is shown.
 */

import { matches } from "./saved.js";
import { Transfer } from "./transfer.js";

const IN_FLIGHT = new Set(["waiting", "sending", "offline", "confirming"]);
const NEEDS_EDITOR = new Set(["failed", "paused", "cancelled"]);

/** @typedef {import("./saved.js").Saved} Saved */
/** @typedef {import("./saved.js").Begun} Begun */

export class Source {
  /** @type {Transfer | null} */
  transfer = null;
  /** An upload of another visit, until its file is chosen again. @type {Saved | null} */
  saved = null;
  /** What was sent is of no use. */
  isLost = false;

  /** Whether nothing is chosen yet. */
  get isEmpty() {
    return !this.transfer && !this.saved;
  }

  /** Whether it is an upload of another visit that needs its file again. */
  get isDormant() {
    return this.saved !== null && !this.saved.isStored;
  }

  /** What goes on once its file is chosen again. @returns {Begun | null} */
  get unfinished() {
    return this.saved ?? (this.transfer?.lacksFile ? this.transfer.begun : null);
  }

  /** Whether the file has arrived. */
  get isSent() {
    if (this.isLost) return false;
    return this.transfer?.state === "sent" || this.saved?.isStored === true;
  }

  get isSending() {
    return this.transfer !== null && IN_FLIGHT.has(this.transfer.state);
  }

  /** Whether nothing goes on unless the editor does something. */
  get isStuck() {
    return this.isLost || NEEDS_EDITOR.has(this.transfer?.state ?? "");
  }

  /** Whether there is a file of this visit that would have to be chosen again. */
  get holdsFile() {
    return this.transfer !== null && this.transfer.state !== "cancelled";
  }

  /** What it adds to the progress of all; null when it has no part in it. */
  get load() {
    if (!this.transfer || !this.holdsFile) return null;
    return { sent_bytes: this.transfer.sent_bytes, total_bytes: this.transfer.file.size };
  }

  /** What the upload is kept under in this browser; empty without one. */
  get id() {
    return this.saved?.id ?? this.transfer?.id ?? "";
  }

  get fileName() {
    return this.transfer?.file.name ?? this.saved?.fileName ?? "";
  }

  get key() {
    return this.transfer?.key ?? this.saved?.key ?? "";
  }

  /** @param {File} file @returns {boolean} whether choosing it again is of no use */
  holds(file) {
    if (this.transfer?.lacksFile) return false;
    const own = this.transfer?.file;
    return (
      own?.name === file.name && own.size === file.size && own.lastModified === file.lastModified
    );
  }

  /** @param {File} file @returns {Promise<boolean>} whether this continues the unfinished upload */
  async awaits(file) {
    try {
      return this.unfinished !== null && (await matches(this.unfinished, file));
    } catch {
      // It can't be read; sending it will say so.
      return false;
    }
  }

  /**
   * Sends a file, or the rest of it where the unfinished upload is of this file.
   * @param {File} file
   * @param {string} contentType
   * @param {object} options
   * @param {import("./upload-api.js").Urls} options.urls
   * @param {(transfer: Transfer) => void} options.onChange
   * @param {(transfer: Transfer) => void} options.onProgress
   */
  send(file, contentType, { urls, onChange, onProgress }) {
    const transfer = new Transfer(file, { contentType, saved: this.unfinished, urls });
    this.transfer = transfer;
    this.saved = null;
    this.isLost = false;
    const isCurrent = () => this.transfer === transfer;
    transfer.addEventListener("change", () => isCurrent() && onChange(transfer));
    transfer.addEventListener("progress", () => isCurrent() && onProgress(transfer));
    transfer.start();
    onChange(transfer);
  }

  /** Stops sending, and removes what was sent. */
  cancel() {
    this.transfer?.cancel();
  }

  clear() {
    this.transfer = null;
    this.saved = null;
    this.isLost = false;
  }
}
