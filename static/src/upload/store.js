/**
 * Holds the page's state and runs its side effects. After each event it compares every upload with
 * its previous state: it starts or stops the transfer, saves the upload, inspects its file, or
 * publishes it. Results come back as events.
 */

import { factsInWords, findingsOf, wrongFile } from "../preflight/findings.js";
import { firstFrame, readFacts } from "../preflight/reader.js";
import { Api } from "./api.js";
import { NotPublished } from "./failures.js";
import { follow } from "./processing.js";
import { publish } from "./publication.js";
import * as browser from "./saved.js";
import * as is from "./selectors.js";
import { initialState, reduce } from "./state.js";
import { arrivedOf, Transfer } from "./transfer.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {{ transfer: Transfer, stop: AbortController, ended: Promise<void> }} Run */
/** @typedef {import("./api.js").Urls & { preflightUrl: string }} Urls */
/** @typedef {Pick<State, "limits" | "blank"> & { urls: Urls }} Page */

export class Store {
  #api;
  /** @type {Map<number, Run>} by the number of the upload */
  #runs = new Map();
  /** Files are inspected one after the other. @type {Promise<unknown>} */
  #examined = Promise.resolve();

  /**
   * @param {Page} page @param {(state: State, before: State) => void} changed called after each event
   * @param {AbortSignal} signal ends all
   */
  constructor({ urls, limits, blank }, changed, signal) {
    this.urls = urls;
    this.changed = changed;
    this.signal = signal;
    this.#api = new Api(urls);
    this.state = initialState(limits, blank);
    // navigator.onLine is no use: the portal may be on the same machine.
    window.addEventListener("online", () => this.dispatch({ type: "connected" }), { signal });
    signal.addEventListener("abort", () => {
      for (const { stop } of this.#runs.values()) stop.abort();
    });
  }

  /** @param {import("./state.js").UploadEvent} event */
  dispatch(event) {
    if (this.signal.aborted) return;
    const before = this.state;
    this.state = reduce(before, event);
    const { uploads } = this.state;
    for (const number of new Set([...before.uploads, ...uploads].map((it) => it.number))) {
      this.#react(number, is.uploadOf(before, number), is.uploadOf(this.state, number));
    }
    this.changed(this.state, before);
  }

  /** List unfinished uploads of earlier visits, and those of other pages once these are closed. */
  restore() {
    for (const { id } of browser.savedUploads()) {
      browser.released(id, this.signal).then((saved) => {
        if (saved) this.dispatch({ type: "restored", saved: [saved] });
      });
    }
  }

  /**
   * @param {File[]} files
   * @param {Upload} [asking] the upload that asked for its file, or for another one
   */
  async choose(files, asking) {
    const candidates = (asking ? [asking] : this.state.uploads).filter(is.isUnfinished);
    const replaced = candidates.length ? null : (asking?.number ?? null);
    const choices = [];
    for (const file of files) {
      const fits = await Promise.all(candidates.map((upload) => browser.matches(upload, file)));
      const match = candidates.find((_upload, index) => fits[index])?.number ?? replaced;
      const fault = asking && match === null ? wrongFile(asking) : "";
      choices.push({ file, id: browser.newId(), match: match ?? asking?.number ?? null, fault });
    }
    this.dispatch({ type: "chosen", choices, now: Date.now(), from: asking?.number });
  }

  /** @param {number} number @param {Upload | undefined} was @param {Upload | undefined} now */
  #react(number, was, now) {
    if (was === now) return;
    const isReplaced = was?.file && now && was.id !== now.id;
    if (was && !is.isDiscarded(was) && (isReplaced || is.isDiscarded(now))) this.#discard(was);
    if (isReplaced || is.isRunning(was) !== is.isRunning(now)) this.#switch(number, now);
    if (!now) return;
    if (was) browser.keep(was, now);
    else if (is.isRestored(now)) this.#readArrived(now);
    const { file } = now;
    if (file && file !== was?.file) {
      const examine = () => Promise.all([this.#inspect(number, file), this.#picture(number, file)]);
      this.#examined = this.#examined.then(examine);
    }
    if (was?.publishing === now.publishing) return;
    if (now.publishing === "publishing") this.#publish(now);
    if (now.publishing !== "published") return;
    browser.forget(now.id);
    const address = `${this.urls.publishUrl}/${now.video?.id}/transcode`;
    const tell = (/** @type {Upload["processing"]} */ processing) =>
      this.dispatch({ type: "followed", number, processing });
    follow(address, tell, this.signal);
  }

  /**
   * Stop an upload's transfer, and start another if it should run.
   * @param {number} number @param {Upload | undefined} upload
   */
  #switch(number, upload) {
    const before = this.#runs.get(number);
    before?.stop.abort();
    if (!is.isRunning(upload) || !upload?.file) return;
    const { id, file, key } = upload;
    browser.claim(id);
    const isSame = before?.transfer.file === file && before.transfer.key === key;
    const transfer = isSame ? before.transfer : new Transfer({ ...upload, file }, this.#api);
    const stop = new AbortController();
    // Two transfers at once would send the same parts.
    const ended = Promise.resolve(before?.ended).then(() =>
      this.#send(number, transfer, stop.signal),
    );
    this.#runs.set(number, { transfer, stop, ended });
  }

  /** @param {number} number @param {Transfer} transfer @param {AbortSignal} signal */
  async #send(number, transfer, signal) {
    if (signal.aborted) return;
    /** @param {import("./transfer.js").TransferNews} news */
    const report = (news) => {
      if (signal.aborted) return;
      this.dispatch({ type: "transferred", number, news, now_ms: performance.now() });
    };
    try {
      await transfer.run(report, signal);
      report({ phase: "sent" });
    } catch (error) {
      if (signal.aborted) return;
      // A bug in these scripts must end the wait, too, and still be reported.
      if (error instanceof TypeError || error instanceof ReferenceError) reportError(error);
      const failure = error instanceof Error ? error : new Error(String(error));
      this.dispatch({ type: "failed", number, error: failure });
    }
  }

  /** Delete the uploaded data. @param {Upload} upload cancelled, removed, or refused */
  async #discard({ id, number, key }) {
    const run = this.#runs.get(number);
    if (id) browser.forget(id);
    await run?.ended;
    // The portal may have issued the key at the last moment.
    const sent = run?.transfer.key || key;
    // The portal's janitor removes the rest later.
    if (sent) await this.#api.remove(sent).catch(() => {});
  }

  /** @param {Upload} upload of an earlier visit */
  async #readArrived({ number, ...upload }) {
    const arrived = await arrivedOf(this.#api, upload);
    if (arrived) this.dispatch({ type: "looked", number, ...arrived });
  }

  /** @param {number} number @param {File} file */
  async #inspect(number, file) {
    const facts = await readFacts(this.urls.preflightUrl, file, this.signal);
    const now = is.uploadOf(this.state, number);
    if (!facts || now?.file !== file || !is.isUnpublished(now)) return;
    const findings = findingsOf(facts, this.state.limits, file.name);
    const inspection = { facts: factsInWords(facts), findings };
    this.dispatch({ type: "inspected", number, inspection });
  }

  /** @param {number} number @param {File} file */
  async #picture(number, file) {
    const picture = await firstFrame(file, this.signal);
    if (!picture || is.uploadOf(this.state, number)?.file !== file) return;
    this.dispatch({ type: "pictured", number, picture });
  }

  /** @param {Upload} upload */
  async #publish({ number, details, fileName, key, request }) {
    /** @param {Upload["request"]} unanswered */
    const remember = (unanswered) =>
      this.dispatch({ type: "requested", number, request: unanswered });
    await null; // `publish` tells something at once, and an event must have ended before another
    try {
      const tags = details.tags.trim().replace(/\s+/g, " ");
      const wanted = { ...details, tags, fileName, key };
      const video = await publish(this.#api, wanted, request, remember);
      this.dispatch({ type: "published", number, video });
    } catch (error) {
      if (!(error instanceof NotPublished)) throw error;
      this.dispatch({ type: "refused", number, error });
    }
  }
}
