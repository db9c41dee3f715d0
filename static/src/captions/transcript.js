/**
 * Transcript of the captions in the chosen language: a searchable list that follows the player,
 * with links to its times. Opening the panel fetches the captions.
 */

import { element, setText } from "../dom.js";
import { foldText, formatClock, formatNumber } from "../format.js";
import { gettext, ngettext } from "../messages.js";
import { fetchText } from "../requests.js";
import { playerVideo } from "../watching/watch.js";
import { indexAt, parseWebVtt, plainText } from "./cues.js";

const FETCH_FAILED = gettext("The transcript can’t be loaded. Close it, then open it again.");

/** @param {HTMLElement} root @param {AbortSignal} signal */
export function startTranscript(root, signal) {
  const video = playerVideo();
  if (video) return new Transcript(root, video, signal).start();
  const retryStart = () => startTranscript(root, signal);
  document.body.addEventListener("video-final", retryStart, { once: true, signal });
}

class Transcript {
  /** @type {import("./cues.js").Cue[]} */
  #cues = [];
  /** @type {HTMLElement[]} */
  #rows = [];
  #shown = -1;
  #address = "";

  /** @param {HTMLElement} root @param {HTMLVideoElement} video @param {AbortSignal} signal */
  constructor(root, video, signal) {
    this.root = root;
    this.video = video;
    this.signal = signal;
    this.panel = /** @type {HTMLDetailsElement} */ (element(root, "details"));
    this.search = /** @type {HTMLInputElement} */ (element(root, "input"));
    this.template = /** @type {HTMLTemplateElement} */ (root.querySelector("template"));
    this.list = element(root, "[data-transcript-list]");
  }

  start() {
    const { video, signal } = this;
    const load = () => this.#load();
    for (const name of ["addtrack", "removetrack", "change"]) {
      video.textTracks.addEventListener(name, load, { signal });
    }
    this.panel.addEventListener("toggle", load, { signal });
    this.search.addEventListener("input", () => this.#filterRows(), { signal });
    video.addEventListener("timeupdate", () => this.#follow(), { signal });
    load();
  }

  async #load() {
    /** @type {NodeListOf<HTMLTrackElement>} */
    const tracks = this.video.querySelectorAll("track[kind=captions]");
    const trackElement = [...tracks].find(({ track }) => track.mode === "showing") ?? tracks[0];
    this.root.hidden = !trackElement;
    if (!trackElement || !this.panel.open || trackElement.src === this.#address) return;
    const { src, srclang } = trackElement;
    this.#address = src;
    const text = await fetchText(src, { signal: this.signal }).catch(() => null);
    if (this.#address !== src) return;
    if (text === null) {
      this.#address = "";
      return setText(this.root, "[data-transcript-words]", FETCH_FAILED);
    }
    this.#cues = parseWebVtt(text);
    this.#rows = this.#cues.map((cue) => this.#createRow(cue.start_ms, plainText(cue), srclang));
    this.list.replaceChildren(...this.#rows);
    for (const link of document.querySelectorAll("[data-chapters] [data-seek]")) {
      if (link instanceof HTMLElement) this.#insertChapter(link);
    }
    this.#shown = -1;
    this.#filterRows();
    this.#follow();
  }

  /** @param {number} start_ms @param {string} cueText @param {string} language */
  #createRow(start_ms, cueText, language) {
    const row = element(/** @type {any} */ (this.template.content.cloneNode(true)), "li");
    const [link, time, text] = ["a", "span", "span + span"].map((name) => element(row, name));
    if (!(link instanceof HTMLAnchorElement) || !time || !text) throw new Error("no link");
    const start_s = Math.floor(start_ms / 1000);
    link.href = `?t=${start_s}`;
    link.dataset.seek = String(start_ms / 1000);
    time.textContent = formatClock(start_s);
    Object.assign(text, { lang: language, textContent: cueText });
    return row;
  }

  /** Insert the heading of a chapter. @param {HTMLElement} link of the page's list of chapters */
  #insertChapter(link) {
    const start_ms = Number(link.dataset.seek) * 1000;
    const heading = document.createElement("li");
    heading.className = "transcript__chapter";
    heading.textContent = link.lastElementChild?.textContent ?? "";
    const next = this.#rows[this.#cues.findIndex((cue) => cue.start_ms >= start_ms)];
    this.list.insertBefore(heading, next ?? null);
  }

  #filterRows() {
    const query = foldText(this.search.value.trim());
    for (const row of this.#rows) row.hidden = !foldText(row.textContent ?? "").includes(query);
    const count = this.#rows.filter(({ hidden }) => !hidden).length;
    const values = { count: formatNumber(count) };
    // Translators: number of places in a transcript that contain the text of a search.
    const summary = ngettext("%(count)s place", "%(count)s places", count, values);
    setText(this.root, "[data-transcript-words]", query && summary);
  }

  /** Scroll to the current cue, unless the reader has scrolled elsewhere. */
  #follow() {
    const now = indexAt(this.#cues, this.video.currentTime * 1000);
    const row = this.#rows[now];
    if (!this.panel.open || now === this.#shown || !row) return;
    this.#rows[this.#shown]?.firstElementChild?.removeAttribute("aria-current");
    this.#shown = now;
    row.firstElementChild?.setAttribute("aria-current", "true");
    if (row.hidden || this.list.matches(":hover, :focus-within")) return;
    this.list.scrollTop = row.offsetTop - (this.list.clientHeight - row.offsetHeight) / 2;
  }
}
