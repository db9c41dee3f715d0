/**
 * One recording: its file in this browser, its upload while it is recorded, and its video. Nothing
 * but `discard` deletes the file before the portal has all of it.
 */

import { requestJson } from "../people/session.js";
import { SIGNED_IN } from "../people/sign-in-again.js";
import { canRetryTransfer } from "../publishing/failures.js";
import { GrowingTransfer } from "../publishing/growing-transfer.js";
import { publish } from "../publishing/publication.js";
import { newId } from "../publishing/saved.js";
import { fileNameOf, lockRecording, removeRecording, saveRecording } from "./saved-recordings.js";
import { removeSpooled, Spool } from "./spool.js";

/** Pause after the retries of a transfer have failed. */
const PAUSE_MS = 15_000;
/** How often the time that was recorded is saved. */
const SAVE_MS = 5_000;

/** @typedef {import("./saved-recordings.js").Saved} Saved */
/** @typedef {import("../publishing/upload.js").Details} Details */
/** @typedef {{ api: import("../publishing/api.js").Api, spoolUrl: string }} Tools */

export class Recording {
  /** Bytes that storage has. */
  stored_bytes = 0;
  /** Bytes that were sent, also of parts that are under way. */
  sent_bytes = 0;
  /** Error that is being retried, or that has stopped the upload. @type {Error | null} */
  trouble = null;
  /** @type {{ id: string, title: string } | null} */
  video = null;
  #stop = new AbortController();
  #another = new EventTarget();
  #saved_at = 0;
  /** Whether all has arrived, once it has; false after `discard`. @type {Promise<boolean>} */
  sent = Promise.resolve(false);

  /** @param {Saved} saved @param {Tools} tools */
  constructor(saved, { api, spoolUrl }) {
    this.saved = saved;
    this.api = api;
    this.spool = new Spool(fileNameOf(saved.id), spoolUrl);
  }

  /**
   * Begin a recording, whose file has this name.
   * @param {string} name @param {Tools} tools @returns {Promise<Recording>}
   */
  static async begin(name, tools) {
    const id = newId();
    await lockRecording(id);
    const started_at = Date.now();
    const blank = { key: "", duration_s: 0, request: null, isSafe: false };
    const recording = new Recording({ ...blank, id, name, started_at }, tools);
    await recording.spool.open();
    recording.#save({});
    return recording;
  }

  /**
   * Continue with what an earlier visit has recorded.
   * @param {Saved} saved @param {Tools} tools
   * @returns {Promise<Recording | null>} null if another page continues with it
   */
  static async resume(saved, tools) {
    if (!(await lockRecording(saved.id))) return null;
    const recording = new Recording(saved, tools);
    await recording.spool.open();
    await recording.spool.end();
    return recording;
  }

  /**
   * Keep bytes of the recorder.
   * @param {Uint8Array} bytes @param {number} duration_s recorded so far
   */
  async write(bytes, duration_s) {
    await this.spool.write(bytes);
    if (Date.now() < this.#saved_at + SAVE_MS) return;
    this.#saved_at = Date.now();
    this.#save({ duration_s });
  }

  /**
   * Send what is recorded, until all of it has arrived, however long that takes.
   * @param {() => void} onChange
   */
  send(onChange) {
    this.sent = this.#send(onChange).then(
      () => true,
      (error) => {
        if (this.#stop.signal.aborted) return false;
        throw error;
      },
    );
  }

  /** @param {() => void} onChange */
  async #send(onChange) {
    const { signal } = this.#stop;
    const { name, key } = this.saved;
    const content = {
      name,
      parts: (/** @type {number} */ part_bytes, /** @type {AbortSignal} */ stop) =>
        this.spool.parts(part_bytes, stop),
    };
    const transfer = new GrowingTransfer({ content, key }, this.api);
    /** @param {import("../publishing/transfer.js").TransferUpdate} update */
    const report = (update) => {
      if (update.key !== undefined) this.#save({ key: update.key });
      if (update.trouble !== undefined) this.trouble = update.trouble;
      this.stored_bytes = update.stored_bytes ?? this.stored_bytes;
      this.sent_bytes = Math.max(update.sent_bytes ?? 0, this.stored_bytes);
      onChange();
    };
    for (;;) {
      try {
        await transfer.run(report, signal);
        break;
      } catch (error) {
        signal.throwIfAborted();
        // A bug in these scripts also ends the transfer.
        if (error instanceof TypeError || error instanceof ReferenceError) reportError(error);
        report({ trouble: error instanceof Error ? error : new Error(String(error)) });
        await this.#waitForAnotherTry(error);
      }
    }
    this.#save({ key: transfer.key });
    report({ trouble: null, stored_bytes: this.spool.size_bytes });
  }

  /**
   * Wait until the person signs in, asks for another try, or is connected again. Passing troubles
   * end by themselves.
   * @param {unknown} error
   */
  #waitForAnotherTry(error) {
    return new Promise((resolve) => {
      const once = { once: true };
      document.addEventListener(SIGNED_IN, resolve, once);
      window.addEventListener("online", resolve, once);
      this.#another.addEventListener("try", resolve, once);
      this.#stop.signal.addEventListener("abort", resolve, once);
      if (canRetryTransfer(error)) setTimeout(resolve, PAUSE_MS);
    });
  }

  /** Try a stopped upload again. */
  tryAgain() {
    this.#another.dispatchEvent(new Event("try"));
  }

  /**
   * Make a video of the sent recording, or find the one that an earlier visit has made.
   * @param {Details} details @throws {import("../publishing/failures.js").NotPublished}
   */
  async publish(details) {
    const { name: fileName, key, request } = this.saved;
    const pending = request?.key === key ? request : null;
    const first = pending ?? { ...details, fileName, key };
    this.video = await publish(this.api, first, pending, (request) => this.#save({ request }));
    this.#save({ isSafe: true });
  }

  /** Stop the upload; the file stays in this browser. */
  leave() {
    this.#stop.abort(new DOMException("left", "AbortError"));
  }

  /**
   * Delete the recording: its file, and what the portal has of it.
   * @throws {Error} the portal can't delete its video now
   */
  async discard() {
    this.#stop.abort(new DOMException("discarded", "AbortError"));
    await this.sent;
    const { publishUrl } = this.api.urls;
    // The janitor of the portal removes an upload later; a video has to be deleted.
    if (this.video) await requestJson("DELETE", `${publishUrl}/${this.video.id}`);
    else if (this.saved.key) await this.api.remove(this.saved.key).catch(() => {});
    await this.forget();
  }

  /** Remove the file, of which the portal has all or nothing any more. */
  async forget() {
    await this.spool.remove();
    removeRecording(this.saved.id);
  }

  /** @param {Partial<Saved>} changed */
  #save(changed) {
    this.saved = { ...this.saved, ...changed };
    saveRecording(this.saved);
  }
}

/** Remove a recording that no page has open. @param {Saved} saved @param {Tools} tools */
export async function discardSaved({ id, key }, { api }) {
  if (!(await lockRecording(id))) return;
  if (key) await api.remove(key).catch(() => {});
  await removeSpooled(fileNameOf(id));
  removeRecording(id);
}
