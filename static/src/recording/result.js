/**
 * Part of the page that follows a recording: the recorded film, the address of its video, and the
 * form for its details.
 */

import { readStored, writeStored } from "../browser-storage.js";
import { announce, element } from "../dom.js";
import { gettext } from "../messages.js";
import { NotPublished } from "../publishing/failures.js";
import { linkVideo } from "../publishing/views.js";
import { DetailsForm } from "./details.js";
import { titleOf } from "./texts.js";

/** Categories that were chosen last. */
const CATEGORIES = "portal.recording.categories";
/** "People & Society", for recordings that nobody has described. */
const FIRST_CATEGORY = 15;

/** @typedef {import("./recording.js").Recording} Recording */
/** @typedef {import("../publishing/store.js").Urls} Urls */
/** @typedef {import("../publishing/views.js").Addresses} Addresses */

export class Result {
  /** @param {HTMLElement} root @param {Urls & Addresses} urls @param {AbortSignal} signal */
  constructor(root, urls, signal) {
    this.root = root;
    this.urls = urls;
    this.player = /** @type {HTMLVideoElement} */ (element(root, "[data-recorded]"));
    this.details = new DetailsForm(root, urls, signal);
  }

  /** Show a recorded film, and offer a copy. @param {File} file @param {string} name */
  show(file, name) {
    this.player.src = URL.createObjectURL(file);
    offerCopy(element(this.root, "[data-save]"), this.player.src, name);
  }

  /** Make a video of a recording that was sent, for oneself. @param {Recording} recording */
  async keep(recording) {
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
   * Ask for the details of a recording, until it is published.
   * @param {Recording} recording @param {number} size_bytes of its file
   * @returns {Promise<boolean>} false if it was discarded
   */
  async publish(recording, size_bytes) {
    const { defaultVisibility: visibility = "" } = this.root.dataset;
    const categoryIds = this.#categoryIds;
    const details = { ...this.#blankDetails(recording), categoryIds, visibility };
    const video = await this.details.fill(recording, size_bytes, details);
    if (!video) return false;
    writeStored(CATEGORIES, this.details.categoryIds);
    recording.video = video;
    this.#drawAddress(recording);
    this.note(gettext("“%(title)s” is published.", { title: video.title }));
    return true;
  }

  close() {
    this.details.close();
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
