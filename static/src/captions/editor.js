/**
 * The page where captions are edited: a list of cues that follows the player, which shows them as
 * they are changed. They are saved as one; who saves after someone else is told, and what only one
 * has changed is merged.
 */
import { player } from "../detail/watch.js";
import { announce, element, setText } from "../dom.js";
import { formatClock, parseStartTime_s } from "../format.js";
import { isCaptions } from "../player/captions.js";
import { NoAnswer, needsSignIn, Refused, request, SIGNED_OUT } from "../requests.js";
import {
  add,
  change,
  clock,
  cueText,
  faultOf,
  History,
  inARow,
  indexAt,
  join,
  merge,
  parseWebVtt,
  remove,
  replaceText,
  shift,
  split,
  toWebVtt,
} from "./cues.js";
import { VirtualList } from "./virtual-list.js";

/** @typedef {import("./cues.js").Cue} Cue */
/** @typedef {import("./cues.js").Cues} Cues */

const VTT = "text/vtt";
const NO_ANSWER = "The portal can’t be reached. Nothing is lost here: try again.";
// With Ctrl or ⌘; what a button says does the same.
const KEYS = new Map([
  ["s", "save"],
  ["z", "undo"],
  ["Z", "redo"],
  ["y", "redo"],
  ["Enter", "add"],
  ["k", "split"],
  ["j", "join"],
  ["Backspace", "remove"],
  ["[", "start"],
  ["]", "end"],
  [" ", "play"],
]);

/** @type {import("../lifecycle.js").Start} */
export async function startEditor(root, signal) {
  const { api = "" } = root.dataset;
  const answer = await fetch(api, { signal, headers: { Accept: VTT } }).catch(() => null);
  if (!answer?.ok) return setText(root, "[data-editor-state]", NO_ANSWER);
  const etag = answer.headers.get("ETag") ?? "";
  new Editor(root, parseWebVtt(await answer.text()), etag, signal).start();
}

class Editor {
  /** Index of the cue that is worked on. */
  #current = 0;
  #isBusy = false;
  /** @type {Map<Cue, VTTCue>} what the player shows */
  #drawn = new Map();
  /** @type {TextTrack | null} */
  #track = null;

  /** @param {HTMLElement} root @param {Cue[]} cues @param {string} etag @param {AbortSignal} signal */
  constructor(root, cues, etag, signal) {
    this.root = root;
    this.signal = signal;
    /** Without a language they are chapters, which end where the next begins. */
    this.words = root.dataset.language ? ["cue", "cues"] : ["chapter", "chapters"];
    this.history = new History(cues);
    /** @type {Cues} what is saved */
    this.saved = cues;
    this.etag = etag;
    this.template = /** @type {HTMLTemplateElement} */ (root.querySelector("template"));
    const rows = { create: () => this.#createRow(), fill: this.#fillRow.bind(this) };
    this.list = new VirtualList(
      element(root, "[data-cues]"),
      element(root, "[data-cue-list]"),
      rows,
      signal,
    );
  }

  get cues() {
    return this.history.cues;
  }

  /** As they are saved. @returns {Cues} */
  get #whole() {
    return this.root.dataset.language ? this.cues : inARow(this.cues);
  }

  get #isDirty() {
    return this.cues !== this.saved;
  }

  start() {
    const { root, signal } = this;
    /** @type {Record<string, () => unknown>} */
    const actions = {
      save: () => this.#save(),
      undo: () => this.#step(-1),
      redo: () => this.#step(1),
      add: () => this.#add(),
      split: () => this.#apply(split(this.cues, this.#current, this.#caret())),
      join: () => this.#apply(join(this.cues, this.#current)),
      remove: () => this.#apply(remove(this.cues, this.#current)),
      start: () => this.#setTime("start_ms"),
      end: () => this.#setTime("end_ms"),
      play: () => this.#play(),
      shift: () => this.#shift(),
      replace: () => this.#replace(),
    };
    const clicked = (/** @type {Event} */ event) => {
      const button = event.target instanceof Element && event.target.closest("[data-does]");
      if (button instanceof HTMLElement) actions[button.dataset.does ?? ""]?.();
      const number = event.target instanceof Element && event.target.closest("[data-seek-cue]");
      if (number) this.#playFrom(indexOf(number));
    };
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      if (event.altKey && ["ArrowUp", "ArrowDown"].includes(event.key)) {
        event.preventDefault();
        return this.#goTo(this.#current + (event.key === "ArrowUp" ? -1 : 1));
      }
      if (!event.ctrlKey && !event.metaKey) return;
      const name = KEYS.get(event.key);
      if (!name || (name === "remove" && !event.shiftKey)) return;
      event.preventDefault();
      actions[name]?.();
    };
    root.addEventListener("click", clicked, { signal });
    root.addEventListener("keydown", pressed, { signal });
    root.addEventListener("input", (event) => this.#typed(event), { signal });
    root.addEventListener("change", (event) => this.#timed(event), { signal });
    root.addEventListener("focusin", (event) => this.#focused(event), { signal });
    const ask = (/** @type {Event} */ event) => this.#isDirty && event.preventDefault();
    window.addEventListener("beforeunload", ask, { signal });
    this.#followPlayer();
    this.#show();
  }

  #followPlayer() {
    const [video, { signal }] = [player(), this];
    const again = () => this.#followPlayer();
    if (!video) return document.body.addEventListener("video-final", again, { once: true, signal });
    const { label, language } = this.root.dataset;
    if (language) {
      for (const track of video.textTracks) if (isCaptions(track)) track.mode = "disabled";
      this.#track = video.addTextTrack("captions", label, language);
      this.#track.mode = "showing";
    }
    let shown = -1;
    const follow = () => {
      const now = indexAt(this.cues, video.currentTime * 1000);
      if (now === shown) return;
      this.list.rowAt(shown)?.classList.remove("cue--now");
      shown = now;
      const isIdle = !element(this.root, "[data-cues]").contains(document.activeElement);
      if (now < 0) return;
      const row = isIdle ? this.list.reveal(now) : this.list.rowAt(now);
      row?.classList.add("cue--now");
      if (isIdle) this.#current = now;
    };
    video.addEventListener("timeupdate", follow, { signal });
    this.#drawOnPicture();
  }

  /** Draws what has changed: the list, the captions on the picture, and what can be done. */
  #show() {
    const { cues, root } = this;
    this.#current = Math.max(Math.min(this.#current, cues.length - 1), 0);
    this.list.show(cues.length);
    element(root, "[data-no-cues]").hidden = cues.length > 0;
    const isPossible = { undo: this.history.canStep(-1), redo: this.history.canStep(1) };
    for (const [name, is] of Object.entries({ ...isPossible, save: this.#isDirty })) {
      element(root, `[data-does=${name}]`).ariaDisabled = is && !this.#isBusy ? null : "true";
    }
    const count = `${cues.length.toLocaleString()} ${this.words[cues.length === 1 ? 0 : 1]}`;
    setText(root, "[data-editor-state]", `${count} · ${this.#isDirty ? "not saved yet" : "saved"}`);
    this.#drawOnPicture();
  }

  #drawOnPicture() {
    if (!this.#track) return;
    const wanted = new Set(this.cues);
    for (const [cue, drawn] of this.#drawn) {
      if (wanted.has(cue)) continue;
      this.#track.removeCue(drawn);
      this.#drawn.delete(cue);
    }
    for (const cue of wanted) {
      if (this.#drawn.has(cue) || cue.end_ms <= cue.start_ms) continue;
      const drawn = new VTTCue(cue.start_ms / 1000, cue.end_ms / 1000, cueText(cue));
      this.#drawn.set(cue, drawn);
      this.#track.addCue(drawn);
    }
  }

  #createRow() {
    const row = this.template.content.firstElementChild?.cloneNode(true);
    return /** @type {HTMLElement} */ (row);
  }

  /** @param {HTMLElement} row @param {number} index */
  #fillRow(row, index) {
    const cue = this.cues[index];
    if (!cue) return;
    row.dataset.index = String(index);
    setText(row, "[data-seek-cue]", String(index + 1));
    const name = `${this.words[0]} ${index + 1}`;
    element(row, "[data-seek-cue]").setAttribute("aria-label", `Play ${name}`);
    const fault = faultOf(this.#whole[index] ?? cue);
    for (const [part, value, label] of [
      ["start_ms", clockOf(cue.start_ms), "begins at"],
      ["end_ms", clockOf(cue.end_ms), "ends at"],
      ["text", cue.text, "text"],
    ]) {
      const field = fieldOf(row, part ?? "");
      field.setAttribute("aria-label", `${name}: ${label}`);
      const isAtFault = fault && (part === "text") === !cue.text.trim();
      if (isAtFault) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
      if (field.value !== value && field !== document.activeElement) field.value = value ?? "";
    }
    row.title = fault;
    row.classList.toggle("cue--current", index === this.#current);
  }

  /** @param {Event} event */
  #typed({ target }) {
    if (!(target instanceof HTMLTextAreaElement)) return;
    const index = indexOf(target);
    this.history.change(change(this.cues, index, { text: target.value }), `text ${index}`);
    this.#show();
  }

  /** @param {Event} event */
  #timed({ target }) {
    if (!(target instanceof HTMLInputElement) || !target.dataset.cue) return;
    const index = indexOf(target);
    const seconds = parseStartTime_s(target.value);
    const cue = this.cues[index];
    if (!cue) return;
    if (seconds === null) {
      target.value = clockOf(target.dataset.cue === "start_ms" ? cue.start_ms : cue.end_ms);
      return this.#say("Write a time like 1:02.500.");
    }
    this.#change(index, { [target.dataset.cue]: Math.round(seconds * 1000) });
  }

  /** @param {number} index @param {Partial<Cue>} changes */
  #change(index, changes) {
    const changed = change(this.cues, index, changes);
    const moved = changed.findIndex((cue) => !this.cues.includes(cue));
    this.history.change(changed);
    this.#current = moved < 0 ? index : moved;
    this.#show();
  }

  /** @param {Event} event */
  #focused({ target }) {
    const row = target instanceof Element && target.closest("[data-index]");
    if (!(row instanceof HTMLElement)) return;
    this.list.rowAt(this.#current)?.classList.remove("cue--current");
    this.#current = Number(row.dataset.index);
    row.classList.add("cue--current");
  }

  /** @param {number} index */
  #goTo(index) {
    if (!this.cues[index]) return;
    this.#current = index;
    const row = this.list.reveal(index);
    if (row) fieldOf(row, "text").focus();
  }

  /** @param {Cues} cues */
  #apply(cues) {
    if (cues !== this.cues && this.cues.length) {
      const hadFocus = element(this.root, "[data-cues]").contains(document.activeElement);
      // What has the focus keeps its text otherwise.
      if (hadFocus && document.activeElement instanceof HTMLElement) document.activeElement.blur();
      this.history.change(cues);
      this.#show();
      if (hadFocus) this.#goTo(this.#current);
    }
  }

  /** @param {-1 | 1} way */
  #step(way) {
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    if (this.history.step(way)) this.#show();
  }

  #add() {
    const at_ms = Math.round((player()?.currentTime ?? 0) * 1000);
    const added = add(this.cues, at_ms);
    this.history.change(added.cues);
    this.#current = added.cues.indexOf(added.cue);
    this.#show();
    this.#goTo(this.#current);
  }

  #caret() {
    const row = this.list.rowAt(this.#current);
    const text = row && fieldOf(row, "text");
    const length = this.cues[this.#current]?.text.length ?? 0;
    const caret = text?.selectionStart ?? 0;
    return caret > 0 && caret < length ? caret : Math.floor(length / 2);
  }

  /** @param {"start_ms" | "end_ms"} name */
  #setTime(name) {
    if (document.activeElement instanceof HTMLInputElement) document.activeElement.blur();
    if (!this.cues[this.#current]) return;
    this.#change(this.#current, { [name]: Math.round((player()?.currentTime ?? 0) * 1000) });
  }

  #play() {
    const video = player();
    if (!video) return;
    if (video.paused) video.play().catch(() => {});
    else video.pause();
  }

  /** @param {number} index */
  #playFrom(index) {
    const [video, cue] = [player(), this.cues[index]];
    if (!video || !cue) return;
    video.currentTime = cue.start_ms / 1000;
    video.play().catch(() => {});
  }

  #shift() {
    const by_s = Number(fieldOf(this.root, "shift").value);
    if (!by_s || !Number.isFinite(by_s))
      return this.#say("Give the seconds to shift by, like -0.5.");
    this.#apply(shift(this.cues, Math.round(by_s * 1000)));
    this.#say(`All are ${Math.abs(by_s)} s ${by_s < 0 ? "earlier" : "later"}.`, false);
  }

  #replace() {
    const wanted = fieldOf(this.root, "find").value;
    if (!wanted) return this.#say("Write what to find.");
    const { cues, count } = replaceText(this.cues, wanted, fieldOf(this.root, "replacement").value);
    if (count) this.#apply(cues);
    this.#say(count ? `Replaced ${count} times.` : `“${wanted}” is nowhere.`, !count);
  }

  /** @param {string} words @param {boolean} [isBad] */
  #say(words, isBad = true) {
    setText(this.root, "[data-editor-trouble]", words);
    element(this.root, "[data-editor-trouble]").classList.toggle("field__error", isBad);
    if (words) announce(words);
  }

  async #save() {
    if (this.#isBusy || !this.#isDirty) return;
    const wrong = this.#whole.findIndex((cue) => faultOf(cue));
    const cue = this.#whole[wrong];
    if (cue) {
      this.#goTo(wrong);
      return this.#say(`No. ${wrong + 1}: ${faultOf(cue)}`);
    }
    this.#isBusy = true;
    this.#say("");
    this.#show();
    try {
      await this.#send();
    } catch (error) {
      this.#say(troubleOf(error));
    } finally {
      this.#isBusy = false;
      this.#show();
    }
  }

  async #send() {
    const { cues } = this;
    const { api = "" } = this.root.dataset;
    try {
      const body = toWebVtt(this.#whole);
      const { etag } = await request("PUT", api, { body, contentType: VTT, ifMatch: this.etag });
      this.etag = etag;
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
    const theirs = parseWebVtt(text);
    const { cues, lost } = merge(this.saved, this.cues, theirs);
    this.etag = `"${version}"`;
    this.saved = theirs;
    this.history.change(cues);
    if (!lost.length) return this.#send();
    const told = lost.map((cue) => `${clockOf(cue.start_ms)} “${cue.text.replace("\n", " ")}”`);
    this.#say(
      `Someone else has changed cues that you have changed, too: ${told.join(", ")}. Yours are here now. Save again to keep them.`,
    );
  }
}

/** @param {number} time_ms @returns {string} such as "1:02.500" */
function clockOf(time_ms) {
  return formatClock(Math.floor(time_ms / 1000)) + clock(time_ms).slice(-4);
}

/** @param {ParentNode} root @param {string} name @returns {HTMLInputElement} a field or a text area */
function fieldOf(root, name) {
  return /** @type {HTMLInputElement} */ (element(root, `[data-cue=${name}]`));
}

/** @param {Element} field */
function indexOf(field) {
  const row = field.closest("[data-index]");
  return row instanceof HTMLElement ? Number(row.dataset.index) : -1;
}

/** @param {unknown} error */
function troubleOf(error) {
  if (needsSignIn(error)) return SIGNED_OUT;
  if (error instanceof NoAnswer) return NO_ANSWER;
  if (!(error instanceof Refused)) throw error;
  return error.faults[0]?.message ?? error.detail ?? NO_ANSWER;
}
