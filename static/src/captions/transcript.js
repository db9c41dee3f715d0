/**
 * Transcript of the captions in the chosen language: a searchable list that follows the player and
 * links to its times. It is fetched when it is opened.
 */
import { player } from "../detail/watch.js";
import { element, setText } from "../dom.js";
import { formatClock } from "../format.js";
import { indexAt, parseWebVtt, plainText } from "./cues.js";

/** @param {HTMLElement} root @param {AbortSignal} signal */
export function startTranscript(root, signal) {
  const video = player();
  if (video) return new Transcript(root, video, signal).start();
  const again = () => startTranscript(root, signal);
  document.body.addEventListener("video-final", again, { once: true, signal });
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
    this.search.addEventListener("input", () => this.#find(), { signal });
    video.addEventListener("timeupdate", () => this.#follow(), { signal });
    load();
  }

  async #load() {
    /** @type {NodeListOf<HTMLTrackElement>} */
    const tracks = this.video.querySelectorAll("track[kind=captions]");
    const wanted = [...tracks].find(({ track }) => track.mode === "showing") ?? tracks[0];
    this.root.hidden = !wanted;
    if (!wanted || !this.panel.open || wanted.src === this.#address) return;
    const { src, srclang } = wanted;
    this.#address = src;
    const answer = await fetch(src, { signal: this.signal }).catch(() => null);
    if (this.#address !== src) return;
    if (!answer?.ok) {
      this.#address = "";
      return setText(this.root, "[data-transcript-words]", "It can’t be fetched. Open it again.");
    }
    this.#cues = parseWebVtt(await answer.text());
    this.#rows = this.#cues.map((cue) => this.#rowOf(cue.start_ms, plainText(cue), srclang));
    this.list.replaceChildren(...this.#rows);
    for (const link of document.querySelectorAll("[data-chapters] [data-seek]")) {
      if (link instanceof HTMLElement) this.#insertChapter(link);
    }
    this.#shown = -1;
    this.#find();
    this.#follow();
  }

  /** @param {number} start_ms @param {string} words @param {string} language */
  #rowOf(start_ms, words, language) {
    const row = element(/** @type {any} */ (this.template.content.cloneNode(true)), "li");
    const [link, time, text] = ["a", "span", "span + span"].map((name) => element(row, name));
    if (!(link instanceof HTMLAnchorElement) || !time || !text) throw new Error("no link");
    const start_s = Math.floor(start_ms / 1000);
    link.href = `?t=${start_s}`;
    link.dataset.seek = String(start_ms / 1000);
    time.textContent = formatClock(start_s);
    Object.assign(text, { lang: language, textContent: words });
    return row;
  }

  /** @param {HTMLElement} link to the chapter, in the list of them */
  #insertChapter(link) {
    const start_ms = Number(link.dataset.seek) * 1000;
    const heading = document.createElement("li");
    heading.className = "transcript__chapter";
    heading.textContent = link.lastElementChild?.textContent ?? "";
    const next = this.#rows[this.#cues.findIndex((cue) => cue.start_ms >= start_ms)];
    this.list.insertBefore(heading, next ?? null);
  }

  #find() {
    const wanted = folded(this.search.value.trim());
    for (const row of this.#rows) row.hidden = !folded(row.textContent ?? "").includes(wanted);
    const count = this.#rows.filter(({ hidden }) => !hidden).length;
    const found = `${count.toLocaleString()} ${count === 1 ? "place" : "places"}`;
    setText(this.root, "[data-transcript-words]", wanted && found);
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

/** Return a text without case and accents. @param {string} text */
function folded(text) {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}
