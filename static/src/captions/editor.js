/**
 * Editor of captions and chapters: a list of cues that follows the player, which shows changes at
 * once. A save that meets another editor's version merges both, and reports cues that both changed.
 */
import { player } from "../detail/watch.js";
import { announce, element, setText } from "../dom.js";
import { formatClock } from "../format.js";
import { isCaptions } from "../player/captions.js";
import { NoAnswer, needsSignIn, Refused, request, SIGNED_OUT } from "../requests.js";
import * as edit from "./cues.js";
import { VirtualList } from "./virtual-list.js";

/** @typedef {import("./cues.js").Cue} Cue */
/** @typedef {import("./cues.js").Cues} Cues */

const VTT = "text/vtt";
const NO_ANSWER = "The portal can’t be reached. Nothing is lost here: try again.";
const ROW = "[data-index]";

/** @type {import("../lifecycle.js").Start} */
export async function startEditor(root, signal) {
  const { api = "" } = root.dataset;
  const answer = await fetch(api, { signal, headers: { Accept: VTT } }).catch(() => null);
  if (!answer?.ok) return setText(root, "[data-editor-state]", NO_ANSWER);
  const cues = edit.parseWebVtt(await answer.text());
  new Editor(root, cues, answer.headers.get("ETag") ?? "", signal).start();
}

class Editor {
  /** Index of the current cue. */
  #current = 0;
  /** Whether the current cue was edited since the player moved. */
  #isEditing = false;
  #isBusy = false;
  /** Cues on the player. @type {Map<Cue, VTTCue>} */
  #drawn = new Map();
  /** @type {TextTrack | null} */
  #track = null;

  /** @param {HTMLElement} root @param {Cue[]} cues @param {string} etag @param {AbortSignal} signal */
  constructor(root, cues, etag, signal) {
    this.root = root;
    this.etag = etag;
    this.signal = signal;
    this.history = new edit.History(cues);
    /** @type {Cues} what is saved */
    this.saved = cues;
    this.isChapters = !root.dataset.language;
    this.box = element(root, "[data-cues]");
    const template = /** @type {HTMLTemplateElement} */ (root.querySelector("template"));
    const create = () => element(/** @type {any} */ (template.content.cloneNode(true)), "li");
    const rows = { create, fill: this.#fillRow.bind(this) };
    this.list = new VirtualList(this.box, element(root, "[data-cue-list]"), rows, signal);
  }

  get cues() {
    return this.history.cues;
  }

  /** Return the cues as they are saved. @returns {Cues} */
  get #whole() {
    return this.isChapters ? edit.inARow(this.cues) : this.cues;
  }

  get #now_ms() {
    return Math.round((player()?.currentTime ?? 0) * 1000);
  }

  start() {
    const { root, signal } = this;
    const at = () => this.#current;
    /** @type {Record<string, () => unknown>} */
    const actions = {
      save: () => this.#save(),
      undo: () => this.#step(-1),
      redo: () => this.#step(1),
      add: () => this.#add(),
      split: () => this.#apply(edit.split(this.cues, at(), this.#caret())),
      join: () => this.#apply(edit.join(this.cues, at())),
      remove: () => this.#apply(this.cues.filter((_, index) => index !== at())),
      start: () => this.#change(at(), { start_ms: this.#now_ms }),
      end: () => this.#change(at(), { end_ms: this.#now_ms }),
      play: () => element(document, "media-play-button").click(),
      shift: () => this.#shift(),
      replace: () => this.#replace(),
    };
    const clicked = (/** @type {Event} */ { target }) => {
      if (!(target instanceof Element)) return;
      const button = target.closest("[data-does]");
      if (button instanceof HTMLElement) actions[button.dataset.does ?? ""]?.();
      else if (target.closest("[data-cue=text]")) this.#seekTo(indexOf(target));
    };
    root.addEventListener("click", clicked, { signal });
    root.addEventListener("keydown", (event) => this.#pressed(event), { signal });
    root.addEventListener("input", (event) => this.#typed(event), { signal });
    root.addEventListener("change", (event) => this.#timed(event), { signal });
    root.addEventListener("focusin", (event) => this.#focused(event), { signal });
    const ask = (/** @type {Event} */ event) => this.cues !== this.saved && event.preventDefault();
    window.addEventListener("beforeunload", ask, { signal });
    this.#followPlayer();
    this.#show();
  }

  #followPlayer() {
    const [video, { signal }] = [player(), this];
    const again = () => this.#followPlayer();
    if (!video) return document.body.addEventListener("video-final", again, { once: true, signal });
    if (!this.isChapters) {
      for (const track of video.textTracks) if (isCaptions(track)) track.mode = "disabled";
      this.#track = video.addTextTrack("captions", "", this.root.dataset.language);
      this.#track.mode = "showing";
      this.#drawOnPicture();
    }
    let shown = -1;
    const follow = () => {
      const now = edit.indexAt(this.#whole, video.currentTime * 1000);
      if (now === shown || now < 0) return;
      this.list.rowAt(shown)?.classList.remove("cue--now");
      shown = now;
      const isIdle = !this.box.contains(document.activeElement);
      if (isIdle) this.#current = now;
      (isIdle ? this.list.reveal(now) : this.list.rowAt(now))?.classList.add("cue--now");
    };
    video.addEventListener("timeupdate", follow, { signal });
    const leave = () => {
      this.#isEditing = this.box.contains(document.activeElement);
    };
    for (const type of ["seeking", "play"]) video.addEventListener(type, leave, { signal });
  }

  /** Redraw the list, the captions on the picture, and the buttons. */
  #show() {
    const [{ cues, root, history }, isDirty] = [this, this.cues !== this.saved];
    this.#current = Math.max(Math.min(this.#current, cues.length - 1), 0);
    this.list.show(cues.length);
    element(root, "[data-no-cues]").hidden = cues.length > 0;
    const possible = { undo: history.canStep(-1), redo: history.canStep(1), save: isDirty };
    for (const [name, is] of Object.entries(possible)) {
      element(root, `[data-does=${name}]`).ariaDisabled = is && !this.#isBusy ? null : "true";
    }
    const things = (this.isChapters ? "chapter" : "cue") + (cues.length === 1 ? "" : "s");
    const state = `${cues.length.toLocaleString()} ${things} · ${isDirty ? "not saved yet" : "saved"}`;
    setText(root, "[data-editor-state]", state);
    this.#drawOnPicture();
  }

  #drawOnPicture() {
    const wanted = new Set(this.cues);
    for (const [cue, drawn] of this.#drawn) {
      if (wanted.has(cue)) continue;
      this.#track?.removeCue(drawn);
      this.#drawn.delete(cue);
    }
    for (const cue of this.#track ? wanted : []) {
      if (this.#drawn.has(cue) || cue.end_ms <= cue.start_ms) continue;
      const drawn = new VTTCue(cue.start_ms / 1000, cue.end_ms / 1000, edit.cueText(cue));
      this.#drawn.set(cue, drawn);
      this.#track?.addCue(drawn);
    }
  }

  /** @param {HTMLElement} row @param {number} index */
  #fillRow(row, index) {
    const cue = this.#whole[index];
    if (!cue) return;
    row.dataset.index = String(index);
    const name = `${this.isChapters ? "chapter" : "cue"} ${index + 1}`;
    const link = element(row, "a");
    Object.assign(link, { textContent: String(index + 1), ariaLabel: `Play ${name}` });
    link.dataset.seek = String(cue.start_ms / 1000);
    const fault = edit.faultOf(cue);
    const note =
      !this.isChapters && edit.overlaps(this.cues, index) ? `Overlaps cue ${index}.` : "";
    const reason = element(row, "[data-cue-fault]");
    Object.assign(reason, { id: `cue-fault-${index}`, textContent: fault || note });
    reason.classList.toggle("cue__fault--bad", fault !== "");
    const values = { start_ms: clockOf(cue.start_ms), end_ms: clockOf(cue.end_ms), text: cue.text };
    for (const [part, value] of Object.entries(values)) {
      const field = fieldOf(row, part);
      field.ariaLabel = `${name}: ${part === "text" ? "text" : `${part.slice(0, -3)}s at`}`;
      const isWrong = fault !== "" && (part === "text") === cue.end_ms > cue.start_ms;
      field.ariaInvalid = isWrong ? "true" : null;
      if (isWrong || note) field.setAttribute("aria-describedby", reason.id);
      else field.removeAttribute("aria-describedby");
      if (field.value !== value && field !== document.activeElement) field.value = value;
    }
    row.classList.toggle("cue--current", index === this.#current);
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const { key, altKey, ctrlKey, metaKey, shiftKey } = event;
    if (altKey && (key === "ArrowUp" || key === "ArrowDown")) {
      event.preventDefault();
      this.#goTo(this.#current + (key === "ArrowUp" ? -1 : 1));
    } else if (ctrlKey || metaKey) {
      const name = (shiftKey ? "Shift+" : "") + (key === " " ? "Space" : key.toLowerCase());
      const button = this.root.querySelector(`[data-key="${CSS.escape(name)}"]`);
      if (!(button instanceof HTMLElement)) return;
      event.preventDefault();
      button.click();
    }
  }

  /** @param {Event} event */
  #typed({ target }) {
    if (!(target instanceof HTMLTextAreaElement)) return;
    const [index, text] = [indexOf(target), target.value];
    const changed = this.cues.map((cue, at) => (at === index ? { ...cue, text } : cue));
    this.history.change(changed, `text ${index}`);
    this.#say("");
    this.#show();
  }

  /** @param {Event} event */
  #timed({ target }) {
    if (!(target instanceof HTMLInputElement) || !target.closest(ROW)) return;
    const time_ms = edit.parseTime_ms(target.value);
    if (time_ms === null) return this.#say("Write a time like 1:02.500.");
    this.#change(indexOf(target), { [target.dataset.cue ?? ""]: time_ms });
    const cue = this.#whole[this.#current];
    if (cue && edit.faultOf(cue)) announce(edit.faultOf(cue));
  }

  /** @param {Event} event */
  #focused({ target }) {
    const row = target instanceof Element && target.closest(ROW);
    if (!row) return;
    this.list.rowAt(this.#current)?.classList.remove("cue--current");
    this.#current = indexOf(row);
    this.#isEditing = true;
    row.classList.add("cue--current");
  }

  /** @param {number} index @param {Partial<Cue>} changes */
  #change(index, changes) {
    const [before, changed] = [new Set(this.cues), edit.change(this.cues, index, changes)];
    this.#current = changed.findIndex((cue) => !before.has(cue));
    this.history.change(changed);
    this.#say("");
    this.#show();
  }

  /** @param {number} index */
  #goTo(index) {
    if (!this.cues[index]) return;
    this.#current = index;
    const row = this.list.reveal(index);
    if (row) fieldOf(row, "text").focus();
  }

  /** Apply a change; the focused field is redrawn, too, and keeps its focus. @param {Cues} cues */
  #apply(cues) {
    const hadFocus = this.#leaveField();
    this.#say("");
    this.history.change(cues);
    this.#show();
    if (hadFocus) this.#goTo(this.#current);
  }

  /** @param {number} way */
  #step(way) {
    const hadFocus = this.#leaveField();
    this.#say("");
    this.history.step(way);
    this.#show();
    if (hadFocus) this.#goTo(this.#current);
  }

  #leaveField() {
    const { activeElement } = document;
    if (!(activeElement instanceof HTMLElement) || !this.box.contains(activeElement)) return false;
    activeElement.blur();
    return true;
  }

  /** Add a cue after the edited one, or at the player's position. */
  #add() {
    const edited = this.#isEditing && !this.isChapters ? this.cues[this.#current] : undefined;
    const { cues, cue } = edit.add(this.cues, edited?.end_ms ?? this.#now_ms);
    this.#apply(cues);
    this.#goTo(cues.indexOf(cue));
  }

  /** Return the caret as the position of a split, or the middle of the text. */
  #caret() {
    const row = this.list.rowAt(this.#current);
    const { length } = this.cues[this.#current]?.text ?? "";
    const caret = (row && fieldOf(row, "text").selectionStart) ?? 0;
    return caret > 0 && caret < length ? caret : Math.floor(length / 2);
  }

  /** Seek to a cue unless it is on the picture. @param {number} index */
  #seekTo(index) {
    const [video, cue] = [player(), this.cues[index]];
    if (!video || !cue || edit.indexAt(this.#whole, video.currentTime * 1000) === index) return;
    video.currentTime = cue.start_ms / 1000;
  }

  #shift() {
    const field = fieldOf(this.root, "shift");
    const by_ms = Math.round(field.valueAsNumber * 1000);
    if (!by_ms) {
      field.focus();
      return this.#say("Enter a number of seconds, such as 1.5 or -1.5.");
    }
    const { cues, moved_ms } = edit.shift(this.cues, by_ms);
    if (moved_ms) this.#apply(cues);
    if (moved_ms === by_ms) return;
    const by = moved_ms ? `by ${moved_ms / 1000} s only` : "no further";
    this.#say(`Shifted ${by}: the first cue can’t start before 0:00.`);
  }

  #replace() {
    const [wanted, by] = ["find", "replacement"].map((name) => fieldOf(this.root, name).value);
    const cues = wanted ? edit.replaceText(this.cues, wanted, by ?? "") : this.cues;
    const count = cues.filter((cue, at) => cue !== this.cues[at]).length;
    if (count) this.#apply(cues);
    const captions = count === 1 ? "1 caption" : `${count.toLocaleString()} captions`;
    this.#say(count ? `Replaced in ${captions}.` : `No matches for “${wanted}”.`);
  }

  /** @param {string} words */
  #say(words) {
    setText(this.root, "[data-editor-trouble]", words);
    if (words) announce(words);
  }

  async #save() {
    if (this.#isBusy || this.cues === this.saved) return;
    const wrong = this.#whole.findIndex((cue) => edit.faultOf(cue));
    const [cue] = this.#whole.slice(wrong);
    if (wrong >= 0 && cue) {
      this.#goTo(wrong);
      const thing = this.isChapters ? "Chapter" : "Cue";
      return this.#say(`${thing} ${wrong + 1}: ${edit.faultOf(cue)}`);
    }
    this.#isBusy = true;
    this.#say("");
    this.#show();
    await this.#send().catch((error) => this.#say(troubleOf(error)));
    this.#isBusy = false;
    this.#show();
  }

  async #send() {
    const [{ cues }, { api = "" }] = [this, this.root.dataset];
    const sent = { body: edit.toWebVtt(this.#whole), contentType: VTT, ifMatch: this.etag };
    try {
      this.etag = (await request("PUT", api, sent)).etag;
      this.saved = cues;
      announce("Saved.");
      document.body.dispatchEvent(new Event("captions-changed"));
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 412) throw error;
      await this.#mergeWith(error.present);
    }
  }

  /** @param {{ text: string, version: string }} present what someone else has saved */
  async #mergeWith({ text, version }) {
    const theirs = edit.parseWebVtt(text);
    const { cues, lost } = edit.merge(this.saved, this.cues, theirs);
    this.etag = `"${version}"`;
    this.saved = theirs;
    this.history.change(cues);
    if (!lost.length) {
      await this.#send();
      return this.#say("Someone else saved changes while you edited. Yours were added to theirs.");
    }
    const told = lost.map((cue) => `${clockOf(cue.start_ms)} “${cue.text.replace("\n", " ")}”`);
    this.#say(
      `Someone else changed the same cues: ${told.join(", ")}. Your version is shown. Save again to keep it.`,
    );
  }
}

/** @param {number} time_ms @returns {string} such as "1:02.500" */
function clockOf(time_ms) {
  return formatClock(Math.floor(time_ms / 1000)) + edit.clock(time_ms).slice(-4);
}

/** @param {ParentNode} root @param {string} name @returns {HTMLInputElement} a field or a text area */
function fieldOf(root, name) {
  return /** @type {HTMLInputElement} */ (element(root, `[data-cue=${name}]`));
}

/** @param {Element} part of a row */
function indexOf(part) {
  const row = part.closest(ROW);
  return row instanceof HTMLElement ? Number(row.dataset.index) : -1;
}

/** @param {unknown} error */
function troubleOf(error) {
  if (needsSignIn(error)) return SIGNED_OUT;
  if (error instanceof NoAnswer) return NO_ANSWER;
  if (!(error instanceof Refused)) throw error;
  return error.faults[0]?.message ?? error.detail;
}
