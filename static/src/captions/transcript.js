/**
 * The transcript beside a player: what its captions say in one language, as a list that follows it,
 * leads to each time, and can be searched. Nothing is fetched until it is opened.
 */
import { player } from "../detail/watch.js";
import { element, setText } from "../dom.js";
import { formatClock } from "../format.js";
import { indexAt, parseWebVtt, plainText } from "./cues.js";

const TRACKS = "track[kind=captions]";

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
    this.languages = /** @type {HTMLSelectElement} */ (element(root, "select"));
    this.search = /** @type {HTMLInputElement} */ (element(root, "input"));
    this.list = element(root, "[data-transcript-list]");
  }

  start() {
    const { video, signal } = this;
    const changed = new MutationObserver(() => this.#listLanguages());
    changed.observe(video, { childList: true });
    signal.addEventListener("abort", () => changed.disconnect());
    this.panel.addEventListener("toggle", () => this.#load(), { signal });
    this.languages.addEventListener("change", () => this.#load(), { signal });
    this.search.addEventListener("input", () => this.#find(), { signal });
    this.list.addEventListener("click", (event) => this.#seek(event), { signal });
    video.addEventListener("timeupdate", () => this.#follow(), { signal });
    this.#listLanguages();
  }

  #listLanguages() {
    const tracks = [...this.video.querySelectorAll(TRACKS)].filter(
      (it) => it instanceof HTMLTrackElement,
    );
    const { value } = this.languages;
    const shown = tracks.find(({ track }) => track.mode === "showing")?.srclang;
    this.languages.replaceChildren(
      ...tracks.map(({ label, srclang }) => new Option(label, srclang)),
    );
    const chosen = [value, shown].find((it) => tracks.some(({ srclang }) => srclang === it));
    if (chosen) this.languages.value = chosen;
    this.languages.hidden = tracks.length < 2;
    this.root.hidden = tracks.length === 0;
    this.#load();
  }

  async #load() {
    const wanted = this.languages.value;
    const track = [...this.video.querySelectorAll(TRACKS)].find(
      (it) => it instanceof HTMLTrackElement && it.srclang === wanted,
    );
    if (!this.panel.open || !(track instanceof HTMLTrackElement) || track.src === this.#address)
      return;
    this.#address = track.src;
    const answer = await fetch(track.src, { signal: this.signal }).catch(() => null);
    if (this.#address !== track.src) return;
    if (!answer?.ok) {
      this.#address = "";
      return setText(
        this.root,
        "[data-transcript-words]",
        "It can’t be fetched. Close and open it.",
      );
    }
    this.#cues = parseWebVtt(await answer.text());
    this.#rows = this.#cues.map((cue, index) => rowOf(cue, index, wanted));
    this.list.replaceChildren(...this.#rows);
    for (const link of document.querySelectorAll("[data-chapters] [data-seek]")) {
      if (link instanceof HTMLElement) this.#insertChapter(link);
    }
    this.#shown = -1;
    this.#find();
    this.#follow();
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
    let count = 0;
    for (const row of this.#rows) {
      row.hidden = Boolean(wanted) && !folded(row.textContent ?? "").includes(wanted);
      if (!row.hidden) count += 1;
    }
    const found = count === 1 ? "1 place" : `${count.toLocaleString()} places`;
    setText(this.root, "[data-transcript-words]", wanted ? found : "");
  }

  /** @param {Event} event */
  #seek({ target }) {
    const button = target instanceof Element && target.closest("button");
    const cue = button && this.#cues[Number(button.dataset.index)];
    if (!cue) return;
    this.video.currentTime = cue.start_ms / 1000;
    this.video.play().catch(() => {});
  }

  /** Whoever reads elsewhere in it is left there. */
  #follow() {
    if (!this.panel.open) return;
    const now = indexAt(this.#cues, this.video.currentTime * 1000);
    if (now === this.#shown || now < 0) return;
    this.#rows[this.#shown]?.firstElementChild?.removeAttribute("aria-current");
    this.#shown = now;
    const row = this.#rows[now];
    row?.firstElementChild?.setAttribute("aria-current", "true");
    if (!row || row.hidden || this.list.matches(":hover, :focus-within")) return;
    const { offsetTop, offsetHeight } = row;
    this.list.scrollTop = offsetTop - (this.list.clientHeight - offsetHeight) / 2;
  }
}

/** @param {import("./cues.js").Cue} cue @param {number} index @param {string} language */
function rowOf(cue, index, language) {
  const [row, button, time, text] = ["li", "button", "span", "span"].map((it) =>
    document.createElement(it),
  );
  if (!row || !(button instanceof HTMLButtonElement) || !time || !text) throw new Error("no row");
  Object.assign(button, { type: "button", className: "transcript__cue" });
  button.dataset.index = String(index);
  Object.assign(time, { className: "transcript__time", textContent: clockOf(cue.start_ms) });
  Object.assign(text, { lang: language, dir: "auto", textContent: plainText(cue) });
  button.append(time, " ", text);
  row.append(button);
  return row;
}

/** @param {number} time_ms */
function clockOf(time_ms) {
  return formatClock(Math.floor(time_ms / 1000));
}

/** Without case and accents. @param {string} text */
function folded(text) {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}
