/** Draws one upload's line in the list: its picture, how it stands, and what can be done with it. */

import { element } from "../dom.js";
import { formatSize } from "../format.js";
import { noteOf, standingOf, visibilityInWords } from "./words.js";

/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {import("./words.js").Standing} Standing */
/** Addresses of a video's pages, with VIDEO_ID in them; the last one is for others. */
/** @typedef {{ videoUrl: string, editUrl: string, publicUrl: string }} Addresses */

/** Buttons that take each other's place. @type {Record<string, string>} */
const SWAPS = { pause: "resume", resume: "pause" };

export class LineView {
  /** @param {HTMLElement} root @param {number} number @param {Addresses} addresses */
  constructor(root, number, addresses) {
    this.root = root;
    this.addresses = addresses;
    root.dataset.line = String(number);
  }

  /**
   * @param {Upload} upload
   * @param {Upload | undefined} before what was drawn last
   * @param {boolean} isOpen
   * @param {string} usual visibility
   */
  draw(upload, before, isOpen, usual) {
    const isPublished = upload.publishing === "published";
    element(this.root, "[data-open]").setAttribute("aria-current", String(isOpen));
    this.root.classList.toggle("line--open", isOpen);
    if (upload === before) return;
    const focused = document.activeElement;
    const standing = standingOf(upload);
    const note = isPublished ? { words: "" } : noteOf(upload);
    this.root.setAttribute("aria-label", upload.fileName);
    setText(this.root, "[data-open]", upload.fileName);
    setText(this.root, "[data-title]", upload.video?.title ?? "");
    setText(this.root, "[data-visibility]", visibilityInWords(upload, usual));
    setText(this.root, "[data-note]", note.words);
    element(this.root, "[data-note]").classList.toggle("line__note--bad", Boolean(note.isBad));
    this.#drawPicture(upload, standing);
    this.#drawStanding(upload, standing);
    this.#drawButtons(upload, standing);
    if (isPublished) this.#drawVideo(upload);
    this.#keepFocus(focused, standing.buttons);
  }

  /** The keyboard goes on from here. */
  focus() {
    const places = ["[data-open]:not([hidden])", "[data-video]:not([hidden])"];
    const place = this.root.querySelector(places.join());
    (place instanceof HTMLElement ? place : this.root).focus();
  }

  /** @param {Upload} upload @param {Standing} standing */
  #drawPicture({ picture, processing, video }, { art: kind = "file" }) {
    const art = element(this.root, "[data-art]");
    const poster = processing?.hasPoster && video;
    const source = poster ? `${this.#address("videoUrl", video.id)}/poster.jpg` : picture;
    const shown = art.querySelector("img");
    art.dataset.art = kind;
    if (!source) return shown?.remove();
    if (shown?.getAttribute("src") === source) return;
    const image = shown ?? art.appendChild(document.createElement("img"));
    image.className = "line__picture";
    image.alt = "";
    image.src = source;
  }

  /** @param {Upload} upload @param {Standing} standing */
  #drawStanding({ fileName, size_bytes }, { figure, rest = "", share, art }) {
    const meter = element(this.root, "progress");
    setText(this.root, "[data-size]", formatSize(size_bytes));
    setText(this.root, "[data-figure]", figure);
    setText(this.root, "[data-rest]", rest);
    element(this.root, "[data-figure]").classList.toggle("line__figure--bad", art === "bad");
    meter.hidden = share === undefined;
    meter.setAttribute("aria-label", `Progress of ${fileName}`);
    if (typeof share !== "number") meter.removeAttribute("value");
    else if (meter.getAttribute("value") !== String(share)) {
      meter.setAttribute("value", String(share));
    }
  }

  /** @param {Upload} upload @param {Standing} standing */
  #drawButtons({ publishing, processing }, { unfinished, buttons }) {
    const isPublished = publishing === "published";
    element(this.root, "[data-open]").hidden = isPublished;
    element(this.root, "[data-title]").hidden = !isPublished;
    element(this.root, "[data-video]").hidden = !isPublished;
    element(this.root, "[data-workshop]").hidden = !isPublished;
    setText(this.root, "[data-workshop]", processing?.stage === "failed" ? "What to do" : "Edit");
    for (const button of this.root.querySelectorAll("[data-action]")) {
      const name = /** @type {any} */ (button.getAttribute("data-action"));
      const isShown = name === "copy-link" ? isPublished : buttons.includes(name);
      if (button instanceof HTMLElement) button.hidden = !isShown;
    }
    const remove = element(this.root, "[data-action=remove]");
    remove.title = unfinished ? "Discard" : "Remove";
    setText(remove, ".visually-hidden", remove.title);
  }

  /** @param {Upload} upload published */
  #drawVideo({ video }) {
    const id = video?.id ?? "";
    element(this.root, "[data-video]").setAttribute("href", this.#address("videoUrl", id));
    element(this.root, "[data-workshop]").setAttribute("href", this.#address("editUrl", id));
    const copy = element(this.root, "[data-action=copy-link]");
    copy.dataset.address = this.#address("publicUrl", id);
  }

  /** @param {keyof Addresses} which @param {string} videoId */
  #address(which, videoId) {
    return this.addresses[which].replace("VIDEO_ID", encodeURIComponent(videoId));
  }

  /**
   * What went away must not take the keyboard's place in the page with it.
   * @param {Element | null} focused
   * @param {string[]} shown
   */
  #keepFocus(focused, shown) {
    if (!(focused instanceof HTMLElement && focused.hidden && this.root.contains(focused))) return;
    const swap = SWAPS[focused.dataset.action ?? ""] ?? "";
    if (shown.includes(swap)) element(this.root, `[data-action=${swap}]`).focus();
    else this.focus();
  }
}

/** @param {ParentNode} root @param {string} selector @param {string} words */
export function setText(root, selector, words) {
  const place = element(root, selector);
  if (place.textContent !== words) place.textContent = words;
}
