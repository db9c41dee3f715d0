/**
 * One file on its way to storage, as the page sees it: a state, a progress that never goes back,
 * and start, pause, resume, retry, cancel. How the bytes get there is `delivery.js`'s business.
 */

import { areReachable } from "./connection.js";
import { Delivery } from "./delivery.js";
import { TransferFailed } from "./failures.js";
import { claim, fingerprint, forget, newId, save } from "./saved.js";
import { takeSlot } from "./slots.js";
import { UploadApi, uploadIdOf } from "./upload-api.js";

export { TransferFailed };

/**
 * @typedef {"waiting" | "sending" | "paused" | "offline" | "confirming" | "sent" | "failed"
 *   | "cancelled"} TransferState
 */

/** States in which something is being done, or will be without the editor. */
const ACTIVE = new Set(["waiting", "sending", "offline", "confirming"]);

/** Tells "change" (of state, key or trouble) and "progress". */
export class Transfer extends EventTarget {
  /** @type {TransferState} */
  state = "waiting";
  /** Never goes down; the file's whole size only in state "sent". */
  sent_bytes = 0;
  /** @type {Error | null} in "failed" the reason; before, what is being tried again */
  trouble = null;

  #isStarted = false;
  #isStored = false;
  #fingerprint = "";
  #stop = new AbortController();
  /** @type {Promise<void>} the last run, to its very end */
  #run = Promise.resolve();
  #listening = new AbortController();

  /**
   * @param {File} file
   * @param {object} options
   * @param {string} options.contentType
   * @param {import("./saved.js").Begun | null} [options.saved] an upload of this file to continue
   * @param {import("./upload-api.js").Urls} options.urls
   */
  constructor(file, { contentType, saved = null, urls }) {
    super();
    this.file = file;
    this.contentType = saved?.contentType ?? contentType;
    this.id = saved?.id ?? newId();
    this.#isStored = saved?.isStored ?? false;
    this.#fingerprint = saved?.fingerprint ?? "";
    this.api = new UploadApi(urls);
    this.delivery = new Delivery(file, this.contentType, {
      api: this.api,
      key: saved?.key ?? "",
      events: {
        onKey: () => this.#keyChanged(),
        onState: (state) => this.#show(state),
        onProgress: (sent_bytes) => this.#progress(sent_bytes),
        onTrouble: (trouble) => this.#show(this.state, trouble),
      },
    });
  }

  /** Empty until the portal has issued it. */
  get key() {
    return this.delivery.key;
  }

  get uploadId() {
    return uploadIdOf(this.key);
  }

  /** What another Transfer goes on from. @returns {import("./saved.js").Begun} */
  get begun() {
    return {
      id: this.id,
      key: this.key,
      fileName: this.file.name,
      size_bytes: this.file.size,
      contentType: this.contentType,
      fingerprint: this.#fingerprint,
      isStored: this.#isStored,
    };
  }

  /** Whether it failed for a file that may come back, or be chosen again. */
  get lacksFile() {
    const { state, trouble } = this;
    return (
      state === "failed" && trouble instanceof TransferFailed && trouble.code === "file_unreadable"
    );
  }

  start() {
    if (this.#isStarted) return;
    this.#isStarted = true;
    const { signal } = this.#listening;
    window.addEventListener("offline", () => ACTIVE.has(this.state) && this.#go(), { signal });
    window.addEventListener("online", () => this.state === "offline" && this.#go(), { signal });
    claim(this.id);
    this.#go();
  }

  /** Parts on their way are sent again on `resume`; all before them stay. */
  pause() {
    if (this.#isStarted && ACTIVE.has(this.state)) this.#halt("paused");
  }

  resume() {
    if (this.state === "paused") this.#go();
  }

  /** After "failed": goes on with what is missing. */
  retry() {
    if (this.state === "failed") this.#go();
  }

  /** Also removes from storage what has been sent. */
  cancel() {
    if (this.state === "cancelled") return;
    this.#halt("cancelled");
    this.#listening.abort();
    forget(this.id);
    this.#run.then(() => {
      if (this.key) this.api.giveUp(this.key);
    });
  }

  #go() {
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    if (navigator.onLine) this.#begin(signal);
    else this.#beginIfReachable(signal);
  }

  /** @param {AbortSignal} signal */
  #begin(signal) {
    this.#show("waiting", null);
    this.#run = this.#deliver(this.#run, signal);
  }

  /** @param {AbortSignal} signal */
  async #beginIfReachable(signal) {
    this.#show("offline", null);
    const isReachable = await areReachable([location.href, this.api.urls.storage], signal);
    if (isReachable && !signal.aborted) this.#begin(signal);
  }

  /**
   * @param {Promise<void>} before two runs at once would send the same parts
   * @param {AbortSignal} signal
   */
  async #deliver(before, signal) {
    await before;
    try {
      const leave = await takeSlot(signal);
      try {
        signal.throwIfAborted();
        this.#show("sending");
        this.#fingerprint ||= await this.#readFingerprint();
        await this.delivery.run(signal);
      } finally {
        leave();
      }
      if (!signal.aborted) this.#arrived();
    } catch (error) {
      if (!signal.aborted) this.#failed(error);
    }
  }

  async #readFingerprint() {
    try {
      return await fingerprint(this.file);
    } catch {
      throw new TransferFailed(0, "file_unreadable");
    }
  }

  #arrived() {
    this.#isStored = true;
    this.#save();
    this.sent_bytes = this.file.size;
    this.dispatchEvent(new Event("progress"));
    this.#listening.abort();
    this.#show("sent", null);
  }

  /** @param {unknown} error */
  #failed(error) {
    // Also a mistake in these scripts must not leave the editor waiting; but it is to be seen.
    if (error instanceof TypeError || error instanceof ReferenceError) reportError(error);
    this.#show("failed", error instanceof Error ? error : new Error(String(error)));
  }

  /** @param {"paused" | "cancelled"} state */
  #halt(state) {
    this.#stop.abort();
    this.#show(state, null);
  }

  #keyChanged() {
    this.#isStored = false;
    this.#save();
    this.#tell("change");
  }

  #save() {
    if (!this.key || this.state === "cancelled") return;
    save(this.begun);
  }

  /** @param {number} sent_bytes */
  #progress(sent_bytes) {
    // Bytes on their way are not yet arrived, and the last one only counts once storage says so.
    const shown_bytes = Math.min(sent_bytes, this.file.size - 1);
    if (shown_bytes <= this.sent_bytes) return;
    this.sent_bytes = shown_bytes;
    this.#tell("progress");
  }

  /**
   * @param {TransferState} state
   * @param {Error | null} [trouble]
   */
  #show(state, trouble = this.trouble) {
    if (state === this.state && trouble === this.trouble) return;
    this.state = state;
    this.trouble = trouble;
    this.#tell("change");
  }

  /** @param {"change" | "progress"} type */
  #tell(type) {
    this.dispatchEvent(new Event(type));
  }
}
