/**
 * Store of the page's state, which runs the side effects. After each event it compares every upload
 * with its previous state, and starts or stops the transfer, saves the upload, inspects its file,
 * or publishes it. The results are new events.
 */

import { announce } from "../dom.js";
import { SIGNED_IN } from "../people/sign-in-again.js";
import { factsText, findingsOf, wrongFile } from "../preflight/findings.js";
import { firstFrame, readFacts } from "../preflight/reader.js";
import { mp4NameOf, repackedTransfer } from "../repack/content.js";
import { Api } from "./api.js";
import { NotPublished } from "./failures.js";
import { FileTransfer } from "./file-transfer.js";
import { followProcessing } from "./processing.js";
import { publish } from "./publication.js";
import * as browser from "./saved.js";
import * as is from "./selectors.js";
import { initialState, reduce } from "./state.js";
import { arrivedOf } from "./transfer.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {import("./transfer.js").AnyTransfer} AnyTransfer */
/** @typedef {{ transfer: AnyTransfer, stop: AbortController, ended: Promise<void> }} Run */
/** @typedef {import("./api.js").Urls & { preflightUrl: string, repackUrl: string }} Urls */
/** @typedef {Pick<State, "limits" | "blank"> & { urls: Urls }} Page */

export class Store {
  #api;
  /** @type {Map<number, Run>} by the number of the upload */
  #runs = new Map();
  /** Files are inspected one after the other. @type {Promise<unknown>} */
  #examined = Promise.resolve();

  /**
   * @param {Page} page
   * @param {(state: State, before: State) => void} onChange called after each event
   * @param {AbortSignal} signal stops everything
   * @param {typeof publish} [publishUpload] does what has to be done before, too
   */
  constructor({ urls, limits, blank }, onChange, signal, publishUpload = publish) {
    this.urls = urls;
    this.onChange = onChange;
    this.signal = signal;
    this.publishUpload = publishUpload;
    this.#api = new Api(urls);
    this.state = initialState(limits, blank);
    // navigator.onLine doesn't help, because the portal may run on the same machine.
    window.addEventListener("online", () => this.dispatch({ type: "connected" }), { signal });
    document.addEventListener(SIGNED_IN, () => this.dispatch({ type: "signedIn" }), { signal });
    signal.addEventListener("abort", () => {
      for (const { stop } of this.#runs.values()) stop.abort();
    });
  }

  /** Apply an event, and run its side effects. @param {import("./state.js").UploadEvent} event */
  dispatch(event) {
    if (this.signal.aborted) return;
    const before = this.state;
    this.state = reduce(before, event);
    const { uploads, announcements } = this.state;
    for (const number of new Set([...before.uploads, ...uploads].map(({ number }) => number))) {
      this.#react(number, is.uploadOf(before, number), is.uploadOf(this.state, number));
    }
    this.onChange(this.state, before);
    for (const message of announcements) announce(message);
  }

  /** List unfinished uploads of earlier visits, and those of other pages when these pages close. */
  restore() {
    for (const { id } of browser.savedUploads()) {
      browser.waitForRelease(id, this.signal).then((saved) => {
        if (saved) this.dispatch({ type: "restored", saved: [saved] });
      });
    }
  }

  /**
   * Accept chosen files, each as a new upload or for an unfinished one.
   * @param {File[]} files @param {Upload} [requester] upload for which the file was chosen
   */
  async choose(files, requester) {
    const candidates = (requester ? [requester] : this.state.uploads).filter(is.isUnfinished);
    const replaced = candidates.length ? null : (requester?.number ?? null);
    const choices = [];
    for (const file of files) {
      const fits = await Promise.all(candidates.map((upload) => browser.isSameFile(upload, file)));
      const match = candidates.find((_upload, index) => fits[index])?.number ?? replaced;
      const fault = requester && match === null ? wrongFile(requester) : "";
      choices.push({ file, id: browser.newId(), match: match ?? requester?.number ?? null, fault });
    }
    this.dispatch({ type: "chosen", choices, now: Date.now(), from: requester?.number });
  }

  /**
   * Run the side effects of a changed upload.
   * @param {number} number @param {Upload | undefined} before @param {Upload | undefined} upload
   */
  #react(number, before, upload) {
    if (before === upload) return;
    const isReplaced = before?.file && upload && before.id !== upload.id;
    const isObsolete = isReplaced || is.isDiscarded(upload);
    if (before && !is.isDiscarded(before) && isObsolete) this.#discard(before);
    if (isReplaced || is.isRunning(before) !== is.isRunning(upload)) {
      this.#switch(number, upload, Boolean(isReplaced));
    }
    if (!upload) return;
    if (before) browser.saveChanges(before, upload);
    else if (is.isRestored(upload)) this.#readArrived(upload);
    const { file } = upload;
    if (file && file !== before?.file) {
      const examine = () => Promise.all([this.#inspect(number, file), this.#picture(number, file)]);
      this.#examined = this.#examined.then(examine);
    }
    if (before?.publishing === upload.publishing) return;
    if (upload.publishing === "publishing") this.#publish(upload);
    if (upload.publishing !== "published") return;
    browser.removeSaved(upload.id);
    const address = `${this.urls.publishUrl}/${upload.video?.id}/transcode`;
    const report = (/** @type {Upload["processing"]} */ processing) =>
      this.dispatch({ type: "processingRead", number, processing });
    followProcessing(address, report, this.signal);
  }

  /**
   * Stop an upload's transfer, and start another if it should run.
   * @param {number} number @param {Upload | undefined} upload @param {boolean} isReplaced
   */
  #switch(number, upload, isReplaced) {
    const before = this.#runs.get(number);
    before?.stop.abort();
    if (!is.isRunning(upload) || !upload?.file) return;
    const { id, file, key } = upload;
    browser.lockUpload(id);
    const isSame = !isReplaced && before?.transfer.file === file && before.transfer.key === key;
    const transfer = isSame ? before.transfer : this.#newTransfer({ ...upload, file });
    const stop = new AbortController();
    // Two transfers at once would send the same parts.
    const ended = Promise.resolve(before?.ended).then(() =>
      this.#send(number, transfer, stop.signal),
    );
    this.#runs.set(number, { transfer, stop, ended });
  }

  /** @param {Upload & { file: File }} upload */
  #newTransfer(upload) {
    if (!is.isRepacked(upload)) return new FileTransfer(upload, this.#api);
    const { number, still } = upload;
    const onStill = (/** @type {string} */ made) =>
      this.dispatch({ type: "stillMade", number, still: made });
    return repackedTransfer(this.urls.repackUrl, upload, { still, onStill }, this.#api);
  }

  /**
   * Run a transfer, and dispatch its updates.
   * @param {number} number @param {AnyTransfer} transfer @param {AbortSignal} signal
   */
  async #send(number, transfer, signal) {
    if (signal.aborted) return;
    /** @param {import("./transfer.js").TransferUpdate} update */
    const report = (update) => {
      if (signal.aborted) return;
      this.dispatch({ type: "transferred", number, update, now_ms: performance.now() });
    };
    try {
      await transfer.run(report, signal);
      report({ phase: "sent" });
    } catch (error) {
      if (signal.aborted) return;
      // A bug in these scripts also ends the transfer, and is reported to the console.
      if (error instanceof TypeError || error instanceof ReferenceError) reportError(error);
      const failure = error instanceof Error ? error : new Error(String(error));
      this.dispatch({ type: "failed", number, error: failure });
    }
  }

  /** Delete the uploaded data of an upload. @param {Upload} upload cancelled, removed or refused */
  async #discard({ id, number, key }) {
    const run = this.#runs.get(number);
    if (id) browser.removeSaved(id);
    await run?.ended;
    // The portal may have issued the key at the last moment.
    const uploadedKey = run?.transfer.key || key;
    // If this fails, the portal's janitor removes the data later.
    if (uploadedKey) await this.#api.remove(uploadedKey).catch(() => {});
  }

  /** Read the progress of an upload of an earlier visit. @param {Upload} upload */
  async #readArrived({ number, ...upload }) {
    const arrived = await arrivedOf(this.#api, upload);
    if (arrived) this.dispatch({ type: "progressRead", number, ...arrived });
  }

  /** Inspect the file of an upload. @param {number} number @param {File} file */
  async #inspect(number, file) {
    const isRepacked = Boolean(is.uploadOf(this.state, number)?.repackedFrom);
    const facts = await readFacts(this.urls.preflightUrl, file, isRepacked, this.signal);
    const upload = is.uploadOf(this.state, number);
    if (!facts || upload?.file !== file || !is.isUnpublished(upload)) return;
    const findings = findingsOf(facts, this.state.limits, file.name);
    const canTrim = facts.outcome === "read" && facts.video?.codec !== null;
    const inspection = { facts: factsText(facts), findings, canTrim };
    this.dispatch({ type: "inspected", number, inspection });
  }

  /** Create the picture of an upload. @param {number} number @param {File} file */
  async #picture(number, file) {
    const picture = await firstFrame(file, this.signal);
    if (!picture || is.uploadOf(this.state, number)?.file !== file) return;
    this.dispatch({ type: "pictureMade", number, picture });
  }

  /** Publish an upload. @param {Upload} upload */
  async #publish({ number, details, fileName, key, request, ...upload }) {
    /** @param {Upload["request"]} pendingRequest */
    const remember = (pendingRequest) =>
      this.dispatch({ type: "requested", number, request: pendingRequest });
    // `publish` calls `remember` at once, but the present event must end before the next one.
    await null;
    try {
      const tags = details.tags.trim().replace(/\s+/g, " ");
      const sentName = is.isRepacked(upload) ? mp4NameOf(fileName) : fileName;
      const submission = { ...details, tags, fileName: sentName, key };
      const video = await this.publishUpload(this.#api, submission, request, remember);
      this.dispatch({ type: "published", number, video });
    } catch (error) {
      if (this.signal.aborted) return;
      if (!(error instanceof NotPublished)) throw error;
      this.dispatch({ type: "refused", number, error });
    }
  }
}
