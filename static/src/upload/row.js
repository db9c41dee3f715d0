/**
 * One video on the page: its file's transfer, its details, its publication. What it shows is its
 * view's business, and what concerns all rows is the page's.
 */

import { Details } from "./details.js";
import { Fields } from "./fields.js";
import { findingsOf } from "./findings.js";
import { NotPublished, Publication } from "./publication.js";
import { RowView } from "./row-view.js";
import { forget, saveRequest } from "./saved.js";
import { Source } from "./source.js";
import { STORED, shownState, shownSubmit } from "./states.js";
import {
  factsInWords,
  findingInWords,
  unfinishedInWords,
  uploadTrouble,
  wrongFile,
} from "./words.js";

/** @typedef {import("./saved.js").Saved} Saved */
/** @typedef {import("./transfer.js").Transfer} Transfer */

/**
 * What rows need of the page.
 * @typedef {object} Surroundings
 * @property {import("./upload-api.js").Urls & { publish: string, video: string }} urls
 * @property {import("./findings.js").Limits} limits
 * @property {import("./preflight.js").Preflight} preflight
 * @property {import("./announcer.js").Announcer} announcer
 * @property {(saved: Saved) => Promise<import("./unfinished.js").Progress>} askProgress
 * @property {(saved: Saved) => void} abandon
 * @property {() => void} changed something the page sums up
 * @property {(row: Row) => boolean} isAlone
 * @property {(row: Row) => void} remove
 * @property {(row: Row) => void} copy
 */

export class Row {
  source = new Source();
  /** The editor has pressed Publish; it happens as soon as the file has arrived. */
  wantsPublish = false;
  isPublished = false;
  #isPublishing = false;
  /** The portal won't publish this file. */
  #isRefused = false;
  #shownState = "";
  #controller = new AbortController();

  /**
   * @param {HTMLElement} root
   * @param {Surroundings} page
   */
  constructor(root, page) {
    this.root = root;
    this.page = page;
    this.view = new RowView(root);
    this.fields = new Fields(this.view.form);
    this.details = new Details(this.fields, () => this.#savedId);
    this.publication = new Publication(page.urls.publish, (request) =>
      saveRequest(this.#savedId, request),
    );
    this.#listen();
  }

  #listen() {
    const { signal } = this.#controller;
    const { form } = this.view;
    /** @type {Record<string, () => void>} */
    const actions = {
      pause: () => this.source.transfer?.pause(),
      resume: () => this.source.transfer?.resume(),
      retry: () => this.#retry(),
      cancel: () => this.#cancel(),
      remove: () => this.#discard(),
      discard: () => this.#discard(),
      copy: () => this.page.copy(this),
    };
    this.view.onAction((action) => actions[action]?.(), signal);
    form.addEventListener(
      "input",
      (event) => {
        this.fields.edited(event);
        this.details.saveSoon();
      },
      { signal },
    );
    form.addEventListener("submit", (event) => this.#submitted(event), { signal });
    this.view.onFile((file) => this.#continueWith(file), signal);
  }

  /** Whether it can be published, now or later. */
  get isPublishable() {
    const { isEmpty, isDormant, transfer } = this.source;
    if (transfer?.state === "cancelled") return false;
    return !isEmpty && !isDormant && !this.isPublished && !this.#isRefused;
  }

  /** Whether it takes part in what is said of all. */
  get isCounted() {
    return this.isPublishable || this.isPublished;
  }

  /** Whether leaving the page would lose something, or stop it. */
  get holdsWork() {
    return !this.isPublished && (this.source.holdsFile || this.details.isTyped);
  }

  /** What the upload is kept under; empty when it is not worth keeping. */
  get #savedId() {
    return this.isPublished || this.#isRefused ? "" : this.source.id;
  }

  /**
   * Takes a file and sends it.
   * @param {File} file
   * @param {string} contentType
   */
  take(file, contentType) {
    const isContinued = this.source.unfinished !== null;
    this.#isRefused = false;
    // For a file that went away on its way, what was asked for still holds.
    if (!this.source.transfer?.lacksFile) this.wantsPublish = false;
    this.view.showFile(file);
    this.view.hideDetails(false);
    if (!isContinued) this.details.prefill(file.name);
    this.fields.clear("/file");
    this.#send(file, contentType);
    this.#look(file);
  }

  /**
   * Shows an upload of another visit, with what was typed then.
   * @param {Saved} saved
   */
  async restore(saved) {
    this.view.showFile({ name: saved.fileName, size: saved.size_bytes });
    if (saved.details) this.details.restore(saved.details);
    else this.details.prefill(saved.fileName);
    this.publication.restore(saved.request);
    this.#showSaved(saved, null);
    const { state, sent_bytes } = await this.page.askProgress(saved);
    // Meanwhile its file may have been chosen.
    if (this.source.saved?.id !== saved.id) return;
    const isStored = state === "unknown" ? saved.isStored : state === "stored";
    this.#showSaved({ ...saved, isStored }, sent_bytes);
    this.page.changed();
  }

  /**
   * @param {Saved} saved
   * @param {number | null} sent_bytes
   */
  #showSaved(saved, sent_bytes) {
    this.source.saved = saved;
    if (saved.isStored) this.view.showStored(saved.size_bytes, STORED);
    else this.view.showUnfinished(unfinishedInWords(sent_bytes, saved));
    this.#showSubmit();
  }

  /** @param {Partial<import("./fields.js").Details>} details given by another row */
  setDetails(details) {
    this.fields.write(details);
    if (details.categoryIds?.length) this.fields.clear("/categoryIds");
    this.details.saveSoon();
  }

  /** @param {SubmitEvent} event */
  #submitted(event) {
    event.preventDefault();
    this.submit()?.focus();
  }

  /**
   * Publishes as soon as the file has arrived, if the fields are right.
   * @returns {HTMLElement | null} the first input at fault
   */
  submit() {
    if (this.#isPublishing || this.isPublished || this.#isRefused) return null;
    const faults = this.fields.check();
    if (this.source.isDormant) {
      faults.unshift({ pointer: "/file", message: "Choose the file again to go on." });
    }
    this.view.showSubmitTrouble("");
    const first = this.fields.show(faults);
    this.wantsPublish = faults.length === 0 && !this.source.isEmpty;
    if (this.wantsPublish && this.source.isSent) this.#publish();
    else this.#showSubmit();
    this.page.changed();
    return first;
  }

  /** The row leaves the page. */
  close() {
    this.#controller.abort();
    this.details.stop();
  }

  /** Ends the upload and gives its file up. */
  #discard() {
    const { saved } = this.source;
    const id = this.#savedId;
    this.source.cancel();
    if (id) forget(id);
    if (saved) {
      this.page.abandon(saved);
      this.details.reset();
    }
    this.source.clear();
    this.#isRefused = false;
    this.wantsPublish = false;
    this.view.showSubmitTrouble("");
    this.view.showNothing();
    this.view.hideDetails(false);
    this.#showSubmit();
    this.page.remove(this);
  }

  /**
   * @param {File} file
   * @param {string} contentType
   */
  #send(file, contentType) {
    this.#shownState = "";
    this.source.send(file, contentType, {
      urls: this.page.urls,
      onChange: (transfer) => this.#transferChanged(transfer),
      onProgress: (transfer) => this.#progressed(transfer),
    });
  }

  /** @param {Transfer} transfer */
  #progressed(transfer) {
    if (transfer.state === "sending") this.view.showProgress(transfer.sent_bytes);
    this.page.changed();
  }

  /** @param {Transfer} transfer */
  #transferChanged(transfer) {
    this.details.saveSoon();
    if (!this.#isRefused) this.#showTransfer(transfer);
    this.#showSubmit();
    if (transfer.state === "sent" && this.wantsPublish) this.#publish();
    this.page.changed();
  }

  /** @param {Transfer} transfer */
  #showTransfer(transfer) {
    const { state, sent_bytes, trouble } = transfer;
    const isNew = state !== this.#shownState;
    this.#shownState = state;
    if (sent_bytes > 0 || state !== "sending") this.view.showShare(sent_bytes);
    const shown = shownState(transfer);
    if (shown) this.view.showState(shown);
    else this.view.showTrouble(uploadTrouble(trouble));
    if (state === "sending" && isNew) this.view.beginMeasuring(sent_bytes);
    if (shown?.say && isNew) this.page.announcer.say(shown.say);
  }

  #retry() {
    const { transfer } = this.source;
    if (transfer?.state === "failed") transfer.retry();
    else if (transfer) this.#send(transfer.file, transfer.contentType);
  }

  #cancel() {
    if (this.page.isAlone(this)) return this.#discard();
    this.wantsPublish = false;
    this.source.cancel();
  }

  /** Looks into the file while it uploads. @param {File} file */
  async #look(file) {
    const facts = await this.page.preflight.examine(file);
    if (!facts || this.source.transfer?.file !== file || this.isPublished) return;
    const findings = findingsOf(facts, this.page.limits);
    const refusal = findings.find(({ weight }) => weight === "refuse");
    this.view.showFacts(factsInWords(facts), refusal ? [] : findings);
    if (refusal) return this.#refuse(refusal);
    const words = findings.map((finding) => `${findingInWords(finding).title}.`).join(" ");
    if (words) this.page.announcer.say(`${file.name}: ${words}`);
  }

  /** @param {import("./findings.js").Finding} finding */
  #refuse(finding) {
    const id = this.#savedId;
    this.#isRefused = true;
    this.wantsPublish = false;
    this.source.cancel();
    if (id) forget(id);
    this.view.showTrouble({ ...findingInWords(finding), canRetry: false });
    this.view.hideDetails(!this.page.isAlone(this));
    this.#showSubmit();
    this.page.changed();
  }

  /** @param {File} file chosen to go on with the row's unfinished upload */
  async #continueWith(file) {
    const { saved } = this.source;
    if (!saved) return;
    if (await this.source.awaits(file)) {
      this.take(file, saved.contentType);
      this.view.panel.focus();
      return;
    }
    const message = wrongFile(saved, file);
    this.fields.show([{ pointer: "/file", message }])?.focus();
    this.page.announcer.say(message);
  }

  async #publish() {
    const details = this.fields.read();
    const { fileName, key } = this.source;
    this.#isPublishing = true;
    this.#showSubmit();
    try {
      this.#published(await this.publication.publish({ ...details, fileName, key }));
    } catch (error) {
      if (!(error instanceof NotPublished)) throw error;
      this.#notPublished(error);
    } finally {
      this.#isPublishing = false;
      this.#showSubmit();
      this.page.changed();
    }
  }

  /** @param {import("./publication.js").Published} video */
  #published(video) {
    const { title } = video;
    const id = this.#savedId;
    this.details.stop();
    this.isPublished = true;
    if (id) forget(id);
    const address = this.page.urls.video.replace("VIDEO_ID", encodeURIComponent(video.id));
    if (this.page.isAlone(this)) return location.assign(address);
    this.view.showPublished(title, address);
    this.page.announcer.say(`“${title}” is published.`);
  }

  /** @param {NotPublished} error */
  #notPublished({ faults, words, needsUpload }) {
    this.wantsPublish = false;
    this.fields.show(faults)?.focus();
    this.source.isLost = needsUpload;
    if (needsUpload) {
      const title = "This file has to be uploaded again";
      this.view.showTrouble({ title, text: words, canRetry: this.source.transfer !== null });
    } else this.view.showSubmitTrouble(words);
  }

  #showSubmit() {
    const isWaiting = this.wantsPublish && !this.source.isSent;
    const isStuck = isWaiting && this.source.isStuck;
    this.view.showSubmit(
      shownSubmit({
        isBusy: this.#isPublishing || this.isPublished,
        isRefused: this.#isRefused,
        isWaiting,
        isStuck,
      }),
    );
  }
}
