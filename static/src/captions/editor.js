/**
 * Editor of captions and chapters: a list of cues that follows the player, which shows each change
 * at once. If another editor has saved in the meantime, a save merges both versions, and reports
 * cues that both changed.
 */

import { announce, closest, confirmLeaving, element, endTyping, setText } from "../dom.js";
import { Editor } from "../editor/editor.js";
import { SAVED } from "../editor/messages.js";
import { formatNumber } from "../format.js";
import { gettext, ngettext } from "../messages.js";
import { isCaptions } from "../player/captions.js";
import { send } from "../requests.js";
import { playerVideo } from "../watching/watch.js";
import * as edit from "./cues.js";
import { VirtualList } from "./virtual-list.js";

/** @typedef {import("./cues.js").Cue} Cue */
/** @typedef {import("./cues.js").Cues} Cues */
/** @typedef {import("../editor/messages.js").Message} Message */

const VTT = "text/vtt";
const LOAD_FAILED = gettext(
  "The list can’t be loaded. Check your connection, then reload this page.",
);
const ENTER_TIME = gettext("Enter a time such as 1:02.500.");
const ROW = "[data-index]";

/** @type {import("../lifecycle.js").Start} */
export async function startEditor(root, signal) {
  const { api = "" } = root.dataset;
  const read = async (/** @type {Response} */ response) => ({
    text: await response.text(),
    etag: response.headers.get("ETag") ?? "",
  });
  const saved = await send("GET", api, read, { accept: VTT, signal }).catch(() => null);
  if (!saved) return setText(root, "[data-editor-state]", LOAD_FAILED);
  new CaptionEditor(root, edit.parseWebVtt(saved.text), saved.etag, signal).start();
}

/** @type {Message} */
const MERGED = {
  text: gettext(
    "Someone else saved changes while you edited. Both versions were merged and saved.",
  ),
};

/** @extends {Editor<Cues>} */
class CaptionEditor extends Editor {
  /** Index of the current cue. */
  #current = 0;
  /** Whether the current cue has been edited since the player moved. */
  #isEditing = false;
  /** Cues that the player shows. @type {Map<Cue, VTTCue>} */
  #cuesOnPicture = new Map();
  /** @type {TextTrack | null} */
  #track = null;

  /**
   * @param {HTMLElement} root @param {Cues} cues @param {string} etag @param {AbortSignal} signal
   */
  constructor(root, cues, etag, signal) {
    super(root, cues, etag, signal);
    this.isChapters = !root.dataset.language;
    this.box = element(root, "[data-cues]");
    const template = /** @type {HTMLTemplateElement} */ (root.querySelector("template"));
    const create = () => element(/** @type {any} */ (template.content.cloneNode(true)), "li");
    const rows = { create, fill: this.#fillRow.bind(this) };
    this.list = new VirtualList(this.box, element(root, "[data-cue-list]"), rows, signal);
  }

  /** Return the cues in the form in which they are saved. @returns {Cues} */
  get #savableCues() {
    return this.isChapters ? edit.withoutGaps(this.value) : this.value;
  }

  get #now_ms() {
    return Math.round((playerVideo()?.currentTime ?? 0) * 1000);
  }

  start() {
    const { root, signal } = this;
    this.listenToButtons({
      save: () => this.#save(),
      add: () => this.#add(),
      split: () => this.change(edit.splitCue(this.value, this.#current, this.#splitPosition())),
      join: () => this.change(edit.joinCues(this.value, this.#current)),
      remove: () => this.change(this.value.filter((_, index) => index !== this.#current)),
      start: () => this.#changeCue(this.#current, { start_ms: this.#now_ms }),
      end: () => this.#changeCue(this.#current, { end_ms: this.#now_ms }),
      play: () => element(document, "media-play-button").click(),
      shift: () => this.#shift(),
      replace: () => this.#replace(),
    });
    const handleClick = (/** @type {Event} */ { target }) => {
      const field = closest(target, "[data-cue=text]");
      if (field) this.#seekTo(indexOf(field));
    };
    root.addEventListener("click", handleClick, { signal });
    root.addEventListener("keydown", (event) => this.#handleKey(event), { signal });
    root.addEventListener("input", (event) => this.#handleTextInput(event), { signal });
    root.addEventListener("change", (event) => this.#handleTimeChange(event), { signal });
    root.addEventListener("focusin", (event) => this.#handleFocus(event), { signal });
    confirmLeaving(() => this.isDirty, signal);
    this.#followPlayer();
    this.show();
  }

  #followPlayer() {
    const { signal } = this;
    const video = playerVideo();
    const retryFollowing = () => this.#followPlayer();
    if (!video)
      return document.body.addEventListener("video-final", retryFollowing, { once: true, signal });
    if (!this.isChapters) {
      for (const track of video.textTracks) if (isCaptions(track)) track.mode = "disabled";
      this.#track = video.addTextTrack("captions", "", this.root.dataset.language);
      this.#track.mode = "showing";
      this.#updatePicture();
    }
    let shownIndex = -1;
    const followTime = () => {
      const currentIndex = edit.indexAt(this.#savableCues, video.currentTime * 1000);
      if (currentIndex === shownIndex || currentIndex < 0) return;
      this.list.rowAt(shownIndex)?.classList.remove("cue--now");
      shownIndex = currentIndex;
      const isIdle = !this.box.contains(document.activeElement);
      if (isIdle) this.#current = currentIndex;
      (isIdle ? this.list.reveal(currentIndex) : this.list.rowAt(currentIndex))?.classList.add(
        "cue--now",
      );
    };
    video.addEventListener("timeupdate", followTime, { signal });
    const endEditing = () => {
      this.#isEditing = this.box.contains(document.activeElement);
    };
    for (const type of ["seeking", "play"]) video.addEventListener(type, endEditing, { signal });
  }

  /** Redraw the list, the captions on the picture, and the buttons. @override */
  show() {
    const { value: cues, isDirty, root } = this;
    this.#current = Math.max(Math.min(this.#current, cues.length - 1), 0);
    this.list.show(cues.length);
    element(root, "[data-no-cues]").hidden = cues.length > 0;
    this.showButtons({ save: isDirty && !this.isBusy });
    const state = isDirty
      ? // Translators: state of captions or chapters that are edited.
        gettext("not saved yet")
      : // Translators: state of captions or chapters that are edited.
        gettext("saved");
    const summary = `${countText(cues.length, this.isChapters)} · ${state}`;
    setText(root, "[data-editor-state]", summary);
    this.#updatePicture();
  }

  #updatePicture() {
    const cues = new Set(this.value);
    for (const [cue, vttCue] of this.#cuesOnPicture) {
      if (cues.has(cue)) continue;
      this.#track?.removeCue(vttCue);
      this.#cuesOnPicture.delete(cue);
    }
    for (const cue of this.#track ? cues : []) {
      if (this.#cuesOnPicture.has(cue) || cue.end_ms <= cue.start_ms) continue;
      const vttCue = new VTTCue(cue.start_ms / 1000, cue.end_ms / 1000, edit.cueText(cue));
      this.#cuesOnPicture.set(cue, vttCue);
      this.#track?.addCue(vttCue);
    }
  }

  /** @param {HTMLElement} row @param {number} index */
  #fillRow(row, index) {
    const cue = this.#savableCues[index];
    if (!cue) return;
    row.dataset.index = String(index);
    const texts = rowTexts(index + 1, this.isChapters);
    const link = element(row, "a");
    Object.assign(link, { textContent: String(index + 1), ariaLabel: texts.play });
    link.dataset.seek = String(cue.start_ms / 1000);
    const fault = edit.cueFault(cue);
    const { film = Infinity } = this.root.dataset;
    const isInFilm = cue.start_ms < Number(film) * 1000;
    const late = isInFilm ? "" : gettext("Begins after the end of the video.");
    const note =
      !this.isChapters && edit.overlaps(this.value, index)
        ? // Translators: of a cue of captions.
          gettext("Overlaps cue %(number)s.", { number: index })
        : late;
    const reason = element(row, "[data-cue-fault]");
    Object.assign(reason, { id: `cue-fault-${index}`, textContent: fault || note });
    reason.classList.toggle("cue__fault--bad", fault !== "");
    const values = {
      start_ms: edit.formatShortTime(cue.start_ms),
      end_ms: edit.formatShortTime(cue.end_ms),
      text: cue.text,
    };
    for (const part of /** @type {const} */ (["start_ms", "end_ms", "text"])) {
      const value = values[part];
      const field = fieldOf(row, part);
      field.ariaLabel = texts[part];
      const isWrong = fault !== "" && (part === "text") === cue.end_ms > cue.start_ms;
      field.ariaInvalid = isWrong ? "true" : null;
      if (isWrong || note) field.setAttribute("aria-describedby", reason.id);
      else field.removeAttribute("aria-describedby");
      if (field.value !== value && field !== document.activeElement) field.value = value;
    }
    row.classList.toggle("cue--current", index === this.#current);
  }

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    const { key, altKey, ctrlKey, metaKey, target } = event;
    if (altKey && (key === "ArrowUp" || key === "ArrowDown")) {
      event.preventDefault();
      this.#goTo(this.#current + (key === "ArrowUp" ? -1 : 1));
    } else if (ctrlKey || metaKey) {
      const button = this.buttonOfKey(event);
      if (!button) return;
      event.preventDefault();
      if (target instanceof HTMLInputElement) endTyping(target);
      button.click();
    }
  }

  /** @param {Event} event */
  #handleTextInput({ target }) {
    if (!(target instanceof HTMLTextAreaElement)) return;
    const index = indexOf(target);
    const text = target.value;
    const changed = this.value.map((cue, at) => (at === index ? { ...cue, text } : cue));
    super.step(() => this.history.append(changed, `text ${index}`));
  }

  /** @param {Event} event */
  #handleTimeChange({ target }) {
    if (!(target instanceof HTMLInputElement) || !target.closest(ROW)) return;
    const time_ms = edit.parseTime_ms(target.value);
    if (time_ms === null) return this.showMessage({ text: ENTER_TIME });
    this.#changeCue(indexOf(target), { [target.dataset.cue ?? ""]: time_ms });
    const cue = this.#savableCues[this.#current];
    if (cue && edit.cueFault(cue)) announce(edit.cueFault(cue));
  }

  /** @param {Event} event */
  #handleFocus({ target }) {
    const row = closest(target, ROW);
    if (!row) return;
    this.list.rowAt(this.#current)?.classList.remove("cue--current");
    this.#current = indexOf(row);
    this.#isEditing = true;
    row.classList.add("cue--current");
  }

  /** @param {number} index @param {Partial<Cue>} changes */
  #changeCue(index, changes) {
    const before = new Set(this.value);
    const changed = edit.changeCue(this.value, index, changes);
    this.#current = changed.findIndex((cue) => !before.has(cue));
    // Rows of a changed order have other cues, also the focused row.
    if (this.#current !== index) return this.change(changed);
    super.step(() => this.history.append(changed));
  }

  /** @param {number} index */
  #goTo(index) {
    if (!this.value[index]) return;
    this.#current = index;
    const row = this.list.reveal(index);
    if (row) fieldOf(row, "text").focus();
  }

  /**
   * Show another state of the whole list. The focused field is redrawn and focused again.
   * @override @param {() => void} move
   */
  step(move) {
    const hadFocus = this.#blurField();
    super.step(move);
    if (hadFocus) this.#goTo(this.#current);
  }

  /** Blur the focused field of the list, and return whether there was one. */
  #blurField() {
    const { activeElement } = document;
    if (!(activeElement instanceof HTMLElement) || !this.box.contains(activeElement)) return false;
    activeElement.blur();
    return true;
  }

  /** Add a cue after the edited one, or at the player's position. */
  #add() {
    const edited = this.#isEditing && !this.isChapters ? this.value[this.#current] : undefined;
    const { cues, cue } = edit.addCue(this.value, edited?.end_ms ?? this.#now_ms);
    this.change(cues);
    this.#goTo(cues.indexOf(cue));
  }

  /** Return the position of a split: the caret, else the middle of the text. */
  #splitPosition() {
    const row = this.list.rowAt(this.#current);
    const { length } = this.value[this.#current]?.text ?? "";
    const caret = (row && fieldOf(row, "text").selectionStart) ?? 0;
    return caret > 0 && caret < length ? caret : Math.floor(length / 2);
  }

  /** Seek to a cue, unless the player shows it. @param {number} index */
  #seekTo(index) {
    const video = playerVideo();
    const cue = this.value[index];
    if (!video || !cue || edit.indexAt(this.#savableCues, video.currentTime * 1000) === index)
      return;
    video.currentTime = cue.start_ms / 1000;
  }

  #shift() {
    const field = fieldOf(this.root, "shift");
    const by_ms = Math.round(field.valueAsNumber * 1000);
    if (!by_ms) {
      field.focus();
      const text = gettext("Enter a number of seconds, such as 1.5 or -1.5.");
      return this.showMessage({ text });
    }
    const { cues, moved_ms } = edit.shiftCues(this.value, by_ms);
    if (moved_ms) this.change(cues);
    if (moved_ms === by_ms) return;
    const seconds = formatNumber(moved_ms / 1000);
    const text = moved_ms
      ? gettext("Shifted by %(seconds)s s only: the first cue can’t start before 0:00.", {
          seconds,
        })
      : gettext("Not shifted: the first cue can’t start before 0:00.");
    this.showMessage({ text });
  }

  #replace() {
    const query = fieldOf(this.root, "find").value;
    const replacement = fieldOf(this.root, "replacement").value;
    const cues = query ? edit.replaceText(this.value, query, replacement) : this.value;
    const count = cues.filter((cue, index) => cue !== this.value[index]).length;
    if (count) this.change(cues);
    const text = count
      ? replacedText(count, this.isChapters)
      : gettext("No matches for “%(query)s”.", { query });
    this.showMessage({ text });
  }

  /** Save the cues, unless one is faulty. */
  #save() {
    const faultyIndex = this.#savableCues.findIndex((cue) => edit.cueFault(cue));
    const cue = this.#savableCues[faultyIndex];
    if (!cue) return this.runExclusively(() => this.#send());
    this.#goTo(faultyIndex);
    const values = { number: faultyIndex + 1, fault: edit.cueFault(cue) };
    const text = this.isChapters
      ? // Translators: number of a chapter, and why it can't be saved.
        gettext("Chapter %(number)s: %(fault)s", values)
      : // Translators: number of a cue of captions, and why it can't be saved.
        gettext("Cue %(number)s: %(fault)s", values);
    this.showMessage({ text });
  }

  #send() {
    return this.put({
      body: edit.toWebVtt(this.#savableCues),
      contentType: VTT,
      event: "captions-changed",
      resolveConflict: ({ present }) => this.#mergeWith(present),
    });
  }

  /**
   * Merge with the version of another editor, and save the result if both changed other cues.
   * @param {{ text: string, version: string }} present @returns {Promise<Message>}
   */
  async #mergeWith({ text, version }) {
    const theirs = edit.parseWebVtt(text);
    const edited = this.value[this.#current];
    const { cues, lost } = edit.mergeCues(this.saved, this.value, theirs);
    this.setSaved(theirs, `"${version}"`);
    // The edited cue may be in another row.
    if (edited) this.#current = Math.max(cues.indexOf(edited), 0);
    this.change(cues);
    if (!lost.length) {
      const message = await this.#send();
      return message === SAVED ? MERGED : message;
    }
    const cueList = lost
      .map((cue) => {
        const time = edit.formatShortTime(cue.start_ms);
        const words = cue.text.replace("\n", " ");
        // Translators: start and text of a cue, in a list of cues.
        return gettext("%(time)s “%(text)s”", { time, text: words });
      })
      .join(", ");
    return {
      text: gettext(
        "Someone else changed the same cues: %(cues)s. Your version is shown. Save again to keep it.",
        { cues: cueList },
      ),
    };
  }
}

/** @param {number} length @param {boolean} isChapters */
function countText(length, isChapters) {
  const count = formatNumber(length);
  return isChapters
    ? ngettext("%(count)s chapter", "%(count)s chapters", length, { count })
    : // Translators: cues are the single texts of captions, each with its times.
      ngettext("%(count)s cue", "%(count)s cues", length, { count });
}

/** @param {number} length number of changed cues @param {boolean} isChapters */
function replacedText(length, isChapters) {
  const count = formatNumber(length);
  return isChapters
    ? ngettext("Replaced in %(count)s chapter.", "Replaced in %(count)s chapters.", length, {
        count,
      })
    : ngettext("Replaced in %(count)s cue.", "Replaced in %(count)s cues.", length, { count });
}

/**
 * Return the names of the link and the fields of a row.
 * @param {number} number of the cue @param {boolean} isChapters
 */
function rowTexts(number, isChapters) {
  return isChapters
    ? {
        play: gettext("Play chapter %(number)s", { number }),
        // Translators: name of a field with a time.
        start_ms: gettext("chapter %(number)s: starts at", { number }),
        // Translators: name of a field with a time.
        end_ms: gettext("chapter %(number)s: ends at", { number }),
        // Translators: name of a field with the title of a chapter.
        text: gettext("chapter %(number)s: text", { number }),
      }
    : {
        play: gettext("Play cue %(number)s", { number }),
        // Translators: name of a field with a time.
        start_ms: gettext("cue %(number)s: starts at", { number }),
        // Translators: name of a field with a time.
        end_ms: gettext("cue %(number)s: ends at", { number }),
        // Translators: name of a field with the text of a cue.
        text: gettext("cue %(number)s: text", { number }),
      };
}

/**
 * Return an input or a text area.
 * @param {ParentNode} root @param {string} name @returns {HTMLInputElement}
 */
function fieldOf(root, name) {
  return /** @type {HTMLInputElement} */ (element(root, `[data-cue=${name}]`));
}

/** Return the index of a row; -1 outside the rows. @param {Element} part of the row */
function indexOf(part) {
  const row = part.closest(ROW);
  return row instanceof HTMLElement ? Number(row.dataset.index) : -1;
}
