/**
 * Editor of cuts: people select parts of the whole film, on its strip or in its transcript, and cut
 * them. A removed part can be selected again to move its bounds or to restore it. Nothing changes
 * for viewers before a save; the preview plays the result by skipping removed parts.
 */

import { BOUNDS, listenToBounds, moveBound, showBounds } from "../bounds.js";
import { readStored, writeStored } from "../browser-storage.js";
import { announce, element, endTyping, setText, setTexts } from "../dom.js";
import { Editor } from "../editor/editor.js";
import { History } from "../editor/history.js";
import { NONE, show } from "../editor/messages.js";
import { formatExactTime } from "../format.js";
import { gettext, pgettext } from "../messages.js";
import { request } from "../people/session.js";
import { settings } from "../player/saved-state.js";
import { Scrubber } from "../player/scrubber.js";
import { retry } from "../retry.js";
import { Strip } from "../strip.js";
import { playerVideo } from "../watching/watch.js";
import * as messages from "./messages.js";
import * as parts from "./parts.js";
import { Sentences } from "./sentences.js";

/** @typedef {import("../bounds.js").Bound} Bound */
/** @typedef {import("../bounds.js").Part} Part */
/** @typedef {import("./parts.js").Parts} Parts */
/** @typedef {import("../editor/messages.js").Message} Message */

// The preview skips this early, so that no frame of a removed part is shown. Browsers draw frames
// up to two refreshes of the screen ahead.
const EARLY_S = 0.05;
// Step of a handle with Shift; without, it is a frame.
const LONG_STEP_S = 1;

/** @type {import("../lifecycle.js").Start} */
export async function startCutsEditor(root, signal) {
  const video = playerVideo();
  if (!video) return;
  try {
    await new CutsEditor(root, video, signal).start();
  } catch {
    if (signal.aborted) return;
    show(root, messages.NOT_LOADED);
  }
}

/** Editor whose value are the removed parts. @extends {Editor<Parts>} */
class CutsEditor extends Editor {
  /** Selected part, which may be one of the removed parts. @type {Part | null} */
  #selection = null;
  #isPreviewing = false;
  /** Whether the video has another film than the page, so that nothing can be saved. */
  #isReplaced = false;
  /** Whether this page has read or written the draft in this browser; another one may be open. */
  #hasDraft = false;
  #frameRequest = 0;
  /** Removed parts in the list. @type {Parts | null} */
  #listed = null;
  /** The last request to create a video, which has the same key when it is sent again. */
  #copy = { text: "", key: "" };

  /** @type {import("../editor/editor.js").Commands} */
  #commands = {
    start: () => this.#mark("startSeconds", 0),
    end: () => this.#mark("endSeconds", this.frame_s),
    cut: () => this.#cutOrRestore(),
    back: () => this.#seek(this.scrubber.position_s - this.frame_s),
    forward: () => this.#seek(this.scrubber.position_s + this.frame_s),
    in: () => this.strip.zoom(2, this.video.currentTime),
    out: () => this.strip.zoom(0.5, this.video.currentTime),
    edit: ({ index }) => this.#edit(this.value[Number(index)]),
    restore: ({ index }) => {
      this.change(this.value.toSpliced(Number(index), 1));
      element(this.root, "[data-list-title]").focus();
    },
    restoreAll: () => this.change([]),
    sentences: () => this.#cutSentences(),
    preview: () => this.#togglePreview(),
    save: () => this.runExclusively(() => this.#send()),
  };

  /** @param {HTMLElement} root @param {HTMLVideoElement} video @param {AbortSignal} signal */
  constructor(root, video, signal) {
    super(root, [], "", signal);
    this.video = video;
    this.film = root.dataset.film ?? "";
    this.draftKey = `portal.cuts.${this.api}`;
    this.film_s = Number(root.dataset.duration);
    this.picture_s = Number(root.dataset.picture);
    this.frame_s = 1 / Number(root.dataset.fps);
    this.scrubber = new Scrubber(video, signal);
    const gestures = {
      seek: this.#seek.bind(this),
      click: (/** @type {number} */ at_s) => this.#select(parts.partAt(this.value, at_s)),
      select: this.#drag.bind(this),
    };
    this.strip = new Strip(root, this.film_s, gestures, signal);
    this.sentences = new Sentences(root);
  }

  get #isRemoved() {
    return this.#selection !== null && this.value.includes(this.#selection);
  }

  async start() {
    const { root, video, signal } = this;
    const onError = () => setText(root, "[data-message]", messages.LOADING);
    await retry(() => this.#load(), { signal, onError });
    this.history = new History(this.saved);
    setText(root, "[data-message]", "");
    this.listenToButtons(this.#commands);
    root.addEventListener("click", (event) => this.#handleClick(event), { signal });
    document.addEventListener("keydown", (event) => this.#handleKey(event), { signal });
    const move = this.#adjust.bind(this);
    listenToBounds(root, { move, step_s: this.frame_s, shiftStep_s: LONG_STEP_S }, signal);
    for (const name of ["play", "seeking", "timeupdate", "ended"]) {
      video.addEventListener(name, () => this.#follow(), { signal });
    }
    // The player seeks to the end of the sound, where that seek may not end without a picture.
    const showLastFrame = () => {
      const last_s = this.picture_s - this.frame_s / 2;
      if (video.currentTime >= this.picture_s) this.scrubber.jump(last_s);
    };
    video.addEventListener("seeking", showLastFrame, { signal });
    signal.addEventListener("abort", () => cancelAnimationFrame(this.#frameRequest));
    // People who may not publish have no form.
    const copyForm = root.querySelector("[data-copy-form]");
    copyForm?.addEventListener("submit", (event) => this.#saveCopy(event), { signal });
    this.strip.load(root.dataset);
    const draft = readStored(this.draftKey);
    this.#hasDraft = Boolean(draft);
    if (draft?.film !== this.film) {
      if (draft) this.showMessage(messages.DROPPED);
      this.show();
    } else if (parts.areAlike(draft.removed, this.saved, this.frame_s / 2)) {
      // The page was closed before it knew that the cuts were saved.
      this.show();
    } else {
      const isCurrent = parts.versionIn(draft.etag) === parts.versionIn(this.etag);
      this.change(draft.removed, isCurrent ? messages.DRAFT : messages.CONFLICT);
    }
  }

  /** Load the recorded cuts, unless they are of another film than the page's. */
  async #load() {
    const { json, etag } = await request("GET", this.api, { signal: this.signal });
    if (!this.#isOfFilm(json)) return;
    const { film_s, picture_s } = this;
    this.setSaved(json.keep ? parts.removedBy(json.keep, film_s, picture_s) : [], etag);
  }

  /**
   * Return whether recorded cuts are of the page's film; if they aren't, the editing ends.
   * @param {any} record
   */
  #isOfFilm({ filmUrl }) {
    this.#isReplaced = filmUrl !== this.film;
    return !this.#isReplaced;
  }

  /** @param {MouseEvent} event */
  #handleClick(event) {
    const sentence = this.sentences.handleClick(event);
    if (sentence && this.video.paused) this.#seek(sentence.startSeconds);
  }

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    const { key, altKey, ctrlKey, metaKey, target } = event;
    if (event.defaultPrevented || altKey || !(target instanceof Element)) return;
    // Forms have their own undo.
    if (target.matches("form *") || document.querySelector("dialog[open]")) return;
    const isCommand = ctrlKey || metaKey;
    const button = this.buttonOfKey(event);
    const isTyping = target.matches("input:not([type=checkbox], [type=range])");
    const takesLetters = !isTyping && (settings().hasLetterKeys ?? true);
    if (!button || !(isCommand || takesLetters)) return;
    // Fields have their own undo, too.
    if (isTyping && key.toLowerCase() === "z") return;
    event.preventDefault();
    if (isTyping) {
      endTyping(/** @type {HTMLElement} */ (target));
      if (target.ariaInvalid === "true") return;
    }
    button.click();
  }

  #cutSentences() {
    const { film_s, frame_s, picture_s } = this;
    const marked = this.sentences.marked;
    if (!marked.length) return this.showMessage(messages.NO_SENTENCES);
    this.sentences.unmark();
    const removed = marked.map((part) => parts.toWholeFrames(part, frame_s, film_s, picture_s));
    this.change(removed.reduce(parts.withPart, this.value));
  }

  /** Show the frame at a time. @param {number} at_s */
  #seek(at_s) {
    const { picture_s, frame_s } = this;
    const frame = parts.frameAt(Math.max(Math.min(at_s, picture_s - frame_s), 0), frame_s);
    // The middle of the frame, because rounding could miss its start.
    this.scrubber.seek((frame + 0.5) * frame_s);
  }

  /** Select a removed part, or none; a selection of something else stays. @param {Part} [part] */
  #select(part) {
    if (part || this.#isRemoved) this.#selection = part ?? null;
    this.show();
  }

  /**
   * Move a bound to the playhead, or after it. If it passes the other one, a new selection begins.
   * @param {Bound} bound @param {number} after_s
   */
  #mark(bound, after_s) {
    const at_s = this.scrubber.position_s + after_s;
    const { startSeconds = 0, endSeconds = Infinity } = this.#selection ?? {};
    const isPast = bound === "startSeconds" ? at_s >= endSeconds : at_s <= startSeconds;
    if (isPast) this.#selection = null;
    this.#move(bound, at_s);
  }

  /** @param {number} at_s */
  #frameStart_s(at_s) {
    return parts.frameStart_s(at_s, this.frame_s, this.film_s, this.picture_s);
  }

  /** Move a bound by its handle or its field, and show the frame there. @param {Bound} bound @param {number} to_s */
  #adjust(bound, to_s) {
    this.#stop();
    this.#move(bound, to_s);
  }

  /** Select the part between two times, of which the second one is the pointer's. @param {number} from_s @param {number} to_s */
  #drag(from_s, to_s) {
    this.#stop();
    const last_s = this.picture_s - this.frame_s;
    this.#selection = {
      startSeconds: this.#frameStart_s(Math.min(from_s, to_s, last_s)),
      endSeconds: this.#frameStart_s(Math.max(from_s, to_s) + this.frame_s),
    };
    this.#seek(to_s);
    this.show();
  }

  /** Move a bound of the selection, which may be a removed part, to a frame. @param {Bound} bound @param {number} to_s */
  #move(bound, to_s) {
    const { film_s, frame_s } = this;
    const at_s = this.#frameStart_s(to_s);
    const from = this.#selection ?? { startSeconds: 0, endSeconds: film_s };
    const to = moveBound(from, bound, at_s, frame_s, film_s);
    this.#selection = to;
    if (this.value.includes(from)) {
      const removed = parts.withPart(parts.without(this.value, from), to);
      // Moves of a bound are one step of the history as long as the other one stays.
      const key = bound === "startSeconds" ? `to ${from.endSeconds}` : `from ${from.startSeconds}`;
      this.history.append(removed, key);
      this.#selection = parts.partAt(removed, to.startSeconds) ?? null;
    }
    const frame_at_s = bound === "startSeconds" ? to.startSeconds : to.endSeconds - frame_s;
    if (this.video.paused) this.#seek(frame_at_s);
    this.show();
  }

  /** Select a removed part, and show where it starts. @param {Part} [part] */
  #edit(part) {
    this.#select(part);
    if (part) this.#seek(part.startSeconds);
    element(this.root, "[data-field=startSeconds]").focus();
  }

  /** Cut the selection, or restore it if it is a removed part. */
  #cutOrRestore() {
    const change = this.#isRemoved ? parts.without : parts.withPart;
    if (this.#selection) this.change(change(this.value, this.#selection));
  }

  /** @override @param {() => void} move @param {Message} [message] */
  step(move, message) {
    this.#selection = null;
    super.step(move, message);
  }

  /** Stop the preview, or the playback of the film. */
  #stop() {
    if (this.#isPreviewing) this.#togglePreview();
    else this.video.pause();
  }

  /** Play the result, from its beginning if it is over, or stop. */
  #togglePreview() {
    const { video, film_s } = this;
    this.#isPreviewing = !this.#isPreviewing;
    if (this.#isPreviewing) {
      const [first] = parts.restOf(this.value, film_s);
      if (first && (video.ended || this.#removedEnd())) this.#seek(first.startSeconds);
      video.play().catch(() => {});
    } else {
      video.pause();
    }
    this.show();
  }

  /** Return the removed end of the film, if only that follows the frame at the playhead. */
  #removedEnd() {
    const [end] = this.value.slice(-1).filter(({ endSeconds }) => endSeconds === this.film_s);
    const next_s = this.video.currentTime + Math.max(EARLY_S, this.frame_s);
    return end && next_s >= end.startSeconds ? end : undefined;
  }

  /** Show the position; during a preview, skip removed parts, and end it with the result. */
  #follow() {
    const { video } = this;
    const now_s = this.scrubber.position_s;
    cancelAnimationFrame(this.#frameRequest);
    if (!video.paused) this.#frameRequest = requestAnimationFrame(() => this.#follow());
    // The end of the film pauses the video.
    if (this.#isPreviewing && !this.scrubber.isSeeking && (!video.paused || video.ended)) {
      const end = this.#removedEnd();
      if (end || video.ended) {
        this.#togglePreview();
        // The video pauses a little later, perhaps in the removed part.
        return end && this.#seek(end.startSeconds - this.frame_s);
      }
      const skipped = parts.partAt(this.value, video.currentTime + EARLY_S);
      if (skipped) this.#seek(skipped.endSeconds);
    }
    const removed_s = this.#isPreviewing ? parts.lengthOf_s(this.value, now_s) : 0;
    const position = formatExactTime(now_s - removed_s);
    this.strip.follow(now_s, position);
    setText(this.root, "[data-position]", position);
    this.sentences.follow(now_s);
  }

  /** @override */
  show() {
    const { root, film_s, value: removed } = this;
    const { activeElement: focused } = document;
    const selection = this.#selection;
    const fault = this.#isReplaced ? messages.REPLACED : parts.removalFault(removed, film_s);
    const removed_s = parts.lengthOf_s(removed);
    setTexts(root, {
      lengths: lengthsText(film_s, removed_s),
      selected: selection ? formatExactTime(parts.lengthOf_s([selection])) : "–",
      "cut-words": this.#isRemoved
        ? // Translators: button that brings a removed part of the film back.
          gettext("Restore")
        : pgettext("button", "Cut"),
      fault,
    });
    this.showButtons({
      cut: selection !== null,
      save: this.isDirty && !fault && !this.isBusy,
      restoreAll: removed.length > 0,
    });
    root.toggleAttribute("data-previewing", this.#isPreviewing);
    element(root, "[data-does=preview]").ariaPressed = String(this.#isPreviewing);
    showBounds(root, selection, formatExactTime);
    this.strip.show(removed, selection);
    if (removed !== this.#listed) {
      const rows = removed.map((part, index) => this.#createRow(part, index));
      element(root, "[data-list]").replaceChildren(...rows);
      this.#listed = removed;
    }
    this.sentences.show(removed);
    // A handle without a selection is hidden, and a row of the list may be gone.
    if (focused && !focused.checkVisibility()) this.strip.playhead.focus();
    this.#saveDraft();
    this.#follow();
  }

  /** Save the cuts in this browser until the portal has them. */
  #saveDraft() {
    const { isDirty, value: removed, etag, film } = this;
    const draft = { removed, etag, film };
    if (isDirty || this.#hasDraft) writeStored(this.draftKey, isDirty ? draft : undefined);
    this.#hasDraft = isDirty;
  }

  /** @param {Part} part @param {number} index */
  #createRow(part, index) {
    const template = /** @type {HTMLTemplateElement} */ (this.root.querySelector("template"));
    const row = element(/** @type {any} */ (template.content.cloneNode(true)), "li");
    const times = BOUNDS.map((bound) => formatExactTime(part[bound])).join(" – ");
    setTexts(row, { times, length: formatExactTime(parts.lengthOf_s([part])) });
    for (const button of row.querySelectorAll("button")) {
      button.dataset.index = String(index);
      const action = button.textContent?.trim() ?? "";
      // Translators: name of a button, such as "Restore", and the times of the part it is for.
      button.ariaLabel = gettext("%(action)s: %(times)s", { action, times });
    }
    return row;
  }

  /** Save the result as a new video, and open its page. @param {Event} event */
  #saveCopy(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const field = /** @type {HTMLInputElement} */ (element(form, "input"));
    const { api = "", page = "" } = form.dataset;
    const send = async () => {
      this.showMessage(messages.SAVING);
      const { json: recorded, etag } = await request("GET", this.api);
      if (!this.#isOfFilm(recorded)) return NONE;
      const body = { title: field.value, keep: parts.restOf(this.value, this.film_s) };
      const idempotencyKey = this.#keyOf(JSON.stringify([body, etag]));
      const { json } = await request("POST", api, { body, ifMatch: etag, idempotencyKey });
      // The cuts are in the new video, so they are no draft of this one.
      this.change(this.saved);
      location.assign(page.replace("VIDEO_ID", json.id));
      // Nothing can be saved until the new page is shown.
      return new Promise((resolve) => {
        window.addEventListener("pagehide", () => resolve(NONE), { once: true });
      });
    };
    this.runExclusively(send, ({ text: fault }) => {
      setText(form, ".field__error", fault);
      field.ariaInvalid = String(fault !== "");
      if (fault) announce(fault);
      if (fault) field.focus();
    });
  }

  /** Return the key of a request to create a video, another one if its text has changed. @param {string} text */
  #keyOf(text) {
    if (text !== this.#copy.text) this.#copy = { text, key: `${Date.now()}-${Math.random()}` };
    return this.#copy.key;
  }

  #send() {
    this.showMessage(messages.SAVING);
    const keep = this.value.length ? parts.restOf(this.value, this.film_s) : null;
    return this.put({
      body: { keep },
      event: "cuts-saved",
      resolveConflict: () => this.#showOthers(),
      // The portal accepts cuts that another film has already.
      accepts: (record) => this.#isOfFilm(record),
    });
  }

  /** Let Undo show the cuts that somebody else has saved. */
  async #showOthers() {
    await this.#load();
    if (this.#isReplaced) return NONE;
    // More may have been cut since the request.
    const own = this.value;
    this.history.append(this.saved);
    this.history.append(own);
    return messages.CONFLICT;
  }
}

/**
 * Return the length of the film, what is left of it, and what is removed.
 * @param {number} film_s @param {number} removed_s
 */
function lengthsText(film_s, removed_s) {
  const before = formatExactTime(film_s);
  if (!removed_s) return gettext("%(length)s, nothing removed", { length: before });
  const after = formatExactTime(film_s - removed_s);
  const removed = formatExactTime(removed_s);
  // Translators: lengths of the film before and after cutting, and of what is removed.
  return gettext("%(before)s → %(after)s, %(removed)s removed", { before, after, removed });
}
