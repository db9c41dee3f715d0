/**
 * Part of the page that follows a recording: the recorded film with handles for the part to publish,
 * the address of its video, and the form for its details.
 */

import { readStored, writeStored } from "../browser-storage.js";
import { announce, element, setText } from "../dom.js";
import { gettext } from "../messages.js";
import { NotPublished } from "../publishing/failures.js";
import { explainFailure, publish } from "../publishing/publication.js";
import { linkVideo } from "../publishing/views.js";
import { cutVideo } from "./cut.js";
import { DetailsForm } from "./details.js";
import { PREPARING, titleOf } from "./texts.js";

/** Categories that were chosen last. */
const CATEGORIES = "portal.recording.categories";
/** "People & Society", for recordings that nobody has described. */
const FIRST_CATEGORY = 15;
/** Length of the shortest part that the portal publishes. */
const SHORTEST_S = 0.5;

/** @typedef {import("./recording.js").Recording} Recording */
/** @typedef {import("../publishing/store.js").Urls} Urls */
/** @typedef {import("../publishing/views.js").Addresses & { repackUrl: string }} Addresses */

export class Result {
  #stop = new AbortController();
  /** Part to publish, null for the whole film. @type {import("./cut.js").Part | null} */
  #part = null;
  /** Whether a cut of the video was asked for, which has to be undone for the whole film. */
  #isCut = false;

  /** @param {HTMLElement} root @param {Urls & Addresses} urls @param {AbortSignal} signal */
  constructor(root, urls, signal) {
    this.root = root;
    this.urls = urls;
    this.signal = signal;
    this.film = element(root, "[data-film]");
    this.player = /** @type {HTMLVideoElement} */ (element(root, "[data-recorded]"));
    this.details = new DetailsForm(root, urls);
  }

  /** Whether leaving the page would lose details or the chosen part, or stop the publication. */
  get holdsWork() {
    return this.#part !== null || this.details.holdsWork;
  }

  /** Show a recorded film, and offer a copy. @param {File} file @param {string} name */
  show(file, name) {
    this.#stop = new AbortController();
    this.player.src = URL.createObjectURL(file);
    offerCopy(element(this.root, "[data-save]"), this.player.src, name);
  }

  /** Make a video of a recording that was sent, for oneself. @param {Recording} recording */
  async publishForOneself(recording) {
    const { firstVisibility: visibility = "" } = this.root.dataset;
    const categoryIds = this.#categoryIds.length ? this.#categoryIds : [FIRST_CATEGORY];
    try {
      await recording.publish({ ...this.#blankDetails(recording), categoryIds, visibility });
    } catch (error) {
      if (!(error instanceof NotPublished)) throw error;
      this.note(error.message);
      announce(error.message);
    }
    this.#drawAddress(recording);
  }

  /**
   * Ask for the details of a recording and the part to publish, until it is published.
   * @param {Recording} recording @param {File} file
   * @returns {Promise<boolean>} false if it was discarded
   */
  async publish(recording, file) {
    const signal = AbortSignal.any([this.signal, this.#stop.signal]);
    this.#openTrim(file, signal);
    /** @type {typeof publish} */
    const publishPart = (...request) => this.#publishPart(request, signal);
    const { defaultVisibility: visibility = "" } = this.root.dataset;
    const categoryIds = this.#categoryIds;
    const details = { ...this.#blankDetails(recording), categoryIds, visibility };
    const video = await this.details.fill(recording, file.size, details, publishPart, signal);
    if (!video) return false;
    writeStored(CATEGORIES, this.details.categoryIds);
    recording.video = video;
    this.#drawAddress(recording);
    this.note(gettext("“%(title)s” is published.", { title: video.title }));
    return true;
  }

  /** Let people choose the part to publish. @param {File} file @param {AbortSignal} signal */
  async #openTrim(file, signal) {
    this.#choosePart(null);
    const { TrimPanel } = await import("../trim/trim.js");
    if (signal.aborted) return;
    const { repackUrl: url } = this.urls;
    /** @param {import("../bounds.js").Part} part @param {number} film_s */
    const move = ({ startSeconds, endSeconds: end_s }, film_s) => {
      const endSeconds = end_s < film_s ? end_s : Number.POSITIVE_INFINITY;
      const isWhole = startSeconds <= 0 && end_s >= film_s;
      this.#choosePart(isWhole ? null : { startSeconds, endSeconds });
    };
    const film = { url, file, part: null, move, shortest_s: SHORTEST_S };
    new TrimPanel(this.film, film, signal);
  }

  /** @param {import("./cut.js").Part | null} part */
  #choosePart(part) {
    this.#part = part;
    element(this.film, "[data-part-note]").hidden = !part;
  }

  /**
   * Publish the chosen part. The video gets its details first, and its audience once the cut is live.
   * @param {Parameters<typeof publish>} request @param {AbortSignal} signal
   * @returns {ReturnType<typeof publish>}
   */
  async #publishPart([api, request, pending, remember], signal) {
    if (!this.#part && !this.#isCut) return publish(api, request, pending, remember);
    const { firstVisibility: visibility = "" } = this.root.dataset;
    const unpublished = { ...request, visibility, share: "", series: "" };
    this.#setBusy(true);
    try {
      const { id } = await publish(api, unpublished, pending, remember);
      this.#isCut = true;
      const report = this.#drawProgress.bind(this);
      const url = `${this.urls.publishUrl}/${id}`;
      await explainFailure(() => cutVideo(url, this.#part, report, signal));
      return await publish(api, request, pending ?? unpublished, remember);
    } finally {
      this.#setBusy(false);
    }
  }

  /** Let nothing be changed while the video is cut. @param {boolean} isBusy */
  #setBusy(isBusy) {
    this.details.form.inert = isBusy;
    element(this.film, "[data-handles]").inert = isBusy;
    element(this.root, "[data-cutting]").hidden = !isBusy;
    if (isBusy) this.#drawProgress(PREPARING, 0);
  }

  /** @type {import("./cut.js").Report} */
  #drawProgress(text, share) {
    const place = element(this.root, "[data-cutting]");
    setText(place, "[data-cutting-text]", text);
    /** @type {HTMLProgressElement} */ (element(place, "progress")).value = share;
  }

  close() {
    this.#stop.abort();
    this.#isCut = false;
    element(this.root, "[data-address]").hidden = true;
    this.note("");
    URL.revokeObjectURL(this.player.src);
    this.player.removeAttribute("src");
  }

  /** @param {string} text */
  note(text) {
    const note = element(this.root, "[data-note]");
    note.textContent = text;
    note.hidden = !text;
  }

  /** @returns {number[]} */
  get #categoryIds() {
    return readStored(CATEGORIES) ?? [];
  }

  /** @param {Recording} recording */
  #blankDetails({ saved }) {
    return { title: titleOf(saved.started_at), description: "", tags: "", share: "", series: "" };
  }

  /** @param {Recording} recording */
  #drawAddress({ video }) {
    element(this.root, "[data-address]").hidden = !video;
    if (!video) return;
    element(this.root, "[data-video]").textContent = linkVideo(this.root, this.urls, video.id);
  }
}

/** Let a link save a file. @param {HTMLElement} link @param {string} address @param {string} name */
export function offerCopy(link, address, name) {
  link.setAttribute("href", address);
  link.setAttribute("download", name);
}
