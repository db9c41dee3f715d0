/**
 * Upload page: a list of files that upload while the editor fills in the details of the open one.
 * The page is drawn from the store's state, and every action becomes an event of the store.
 */

import { startCopyLink } from "../copy.js";
import { closest, confirmLeaving, element, setText, setTexts } from "../dom.js";
import { gettext } from "../messages.js";
import { allowSignInPrompt } from "../people/sign-in-again.js";
import { ask } from "../question.js";
import { newId } from "./saved.js";
import * as is from "./selectors.js";
import { Store } from "./store.js";
import { batchOf, questionOf, submitOf } from "./texts.js";
import { NO_DETAILS } from "./upload.js";
import { DetailsView, LineView } from "./views.js";

/** @typedef {import("./state.js").State} State */

/** @param {HTMLElement} root @param {AbortSignal} signal */
export function startUploadPage(root, signal) {
  new UploadPage(root, signal);
  const notice = document.querySelector("[data-unfinished-recordings]");
  if (notice instanceof HTMLElement) offerUnfinished(notice, signal);
}

/** Offer to continue with recordings. @param {HTMLElement} notice @param {AbortSignal} signal */
async function offerUnfinished(notice, signal) {
  const { startUnfinishedNotice } = await import("../recording/unfinished.js");
  startUnfinishedNotice(notice, signal);
}

class UploadPage {
  /** Views by the number of their upload. @type {Map<number, LineView>} */
  #lines = new Map();
  /** Ends the panel with the film of the open upload. */
  #trimming = new AbortController();

  /** @param {HTMLElement} root @param {AbortSignal} signal */
  constructor(root, signal) {
    this.root = root;
    this.signal = signal;
    this.drop = element(root, "[data-drop]");
    this.input = /** @type {HTMLInputElement} */ (element(this.drop, "input"));
    this.list = element(root, "[data-lines]");
    this.form = /** @type {HTMLFormElement} */ (element(root, "[data-details]"));
    this.details = new DetailsView(this.form);
    this.trim = /** @type {HTMLDetailsElement} */ (element(this.form, "[data-trim]"));
    this.question = /** @type {HTMLDialogElement} */ (element(root, "dialog"));
    this.publishing = element(root, "[data-publish]");
    const { limits = "", defaultVisibility: visibility = "" } = root.dataset;
    const urls = /** @type {import("./store.js").Urls} */ ({ ...root.dataset });
    const page = { urls, limits: JSON.parse(limits), blank: { ...NO_DETAILS, visibility } };
    this.store = new Store(page, (...states) => this.#draw(...states), signal);
    this.#listen();
    this.store.restore();
    root.dataset.ready = "";
  }

  #listen() {
    const { store, list, form, signal } = this;
    acceptDrops(this.drop, (files) => store.choose(files), signal);
    const takeChosen = () => takeFiles(this.input, (files) => store.choose(files));
    this.input.addEventListener("change", takeChosen, { signal });
    // Files may have been chosen before this script started.
    takeChosen();
    list.addEventListener("click", (event) => this.#handleLineClick(event), { signal });
    form.addEventListener("click", ({ target }) => this.#runAction(target, store.state.open), {
      signal,
    });
    form.addEventListener("change", (event) => this.#handleFile(event), { signal });
    this.details.listen(store, signal);
    const submit = element(this.publishing, "[data-submit]");
    submit.addEventListener("click", () => this.details.submit(store), { signal });
    this.trim.addEventListener("toggle", () => this.#openTrim(), { signal });
    this.trim.addEventListener("click", ({ target }) => this.#chooseTrim(target), { signal });
    confirmLeaving(() => store.state.uploads.some(is.holdsWork), signal);
  }

  /** Open an upload, or run the action of its button. @param {Event} event on a line */
  #handleLineClick({ target }) {
    const number = numberOf(target);
    const opener = closest(target, "[data-open]");
    if (!opener) return this.#runAction(target, number);
    this.store.dispatch({ type: "opened", number });
    // On a narrow page the details are below the list.
    const isBelow = this.form.getBoundingClientRect().top > innerHeight / 2;
    if (isBelow) this.form.scrollIntoView();
  }

  /**
   * Run the action of a button, after a question if needed.
   * @param {EventTarget | null} target @param {number} number of the upload
   */
  async #runAction(target, number) {
    const action = closest(target, "[data-action]")?.dataset.action;
    if (!action) return;
    allowSignInPrompt();
    const question = questionOf(this.store.state, action, number);
    const isAgreed = question !== null && (await ask(this.question, question, this.signal));
    if (question && !isAgreed && action === "remove") return;
    const type = /** @type {"copy"} */ (action);
    this.store.dispatch({ type, number, mayLoosen: isAgreed });
  }

  /**
   * Pass a chosen file to the open upload, which needs its file again or another one.
   * @param {Event} event
   */
  #handleFile({ target }) {
    if (!(target instanceof HTMLInputElement) || target.type !== "file") return;
    takeFiles(target, (files) => this.store.choose(files, is.openOf(this.store.state)));
  }

  /** Let people choose a part of the open upload's film. */
  async #openTrim() {
    this.#trimming.abort();
    const upload = is.openOf(this.store.state);
    if (!this.trim.open || !upload?.file) return;
    this.#trimming = new AbortController();
    const { TrimPanel } = await import("../trim/trim.js");
    const { number, file } = upload;
    /** @param {import("../bounds.js").Part} part @param {number} film_s */
    const move = ({ startSeconds: start_s, endSeconds: end_s }, film_s) =>
      this.store.dispatch({ type: "partMoved", number, draft: { start_s, end_s, film_s } });
    const { repackUrl } = this.store.urls;
    const signal = AbortSignal.any([this.signal, this.#trimming.signal]);
    new TrimPanel(this.trim, { url: repackUrl, file, part: partOf(upload), move }, signal);
  }

  /** Send the chosen part, or the whole film. @param {EventTarget | null} target a button */
  #chooseTrim(target) {
    const choice = closest(target, "[data-trim-choice]")?.dataset.trimChoice;
    const { open: number } = this.store.state;
    if (!choice) return;
    const isWhole = choice === "whole";
    this.store.dispatch({ type: "partChosen", number, id: newId(), now: Date.now(), isWhole });
    if (isWhole) this.trim.open = false;
  }

  /** @param {State} state @param {State} before */
  #drawTrim(state, before) {
    const upload = is.openOf(state);
    const isOther = state.open !== before.open || upload?.file !== is.openOf(before)?.file;
    this.trim.hidden = !upload || !is.canTrim(upload);
    if (isOther || this.trim.hidden) this.trim.open = false;
    element(this.trim, "[data-trim-choices]").hidden = !upload?.draft;
  }

  /** @param {State} state @param {State} before */
  #draw(state, before) {
    const focused = document.activeElement;
    this.#drawLines(state, before);
    this.details.draw(state);
    this.#drawTrim(state, before);
    this.#drawPublishing(state);
    this.root.classList.toggle("upload--filled", state.uploads.length > 0);
    this.root.classList.toggle("upload--open", state.open > 0);
    const dropText = state.uploads.length ? gettext("Upload more") : gettext("Choose videos");
    setText(this.drop, "[data-drop-words]", dropText);
    if (state.focus) this.#focus(state.focus);
    else this.#keepFocus(focused, state, before);
  }

  /** @param {State} state @param {State} before */
  #drawLines(state, before) {
    for (const [number, view] of this.#lines) {
      if (is.uploadOf(state, number)) continue;
      view.root.remove();
      this.#lines.delete(number);
    }
    const defaultVisibility = state.blank.visibility;
    for (const upload of state.uploads) {
      const { number } = upload;
      const view = this.#lines.get(number) ?? this.#addLine(number);
      view.draw(upload, is.uploadOf(before, number), number === state.open, defaultVisibility);
    }
  }

  /** @param {number} number */
  #addLine(number) {
    const { videoUrl = "", editUrl = "", publicUrl = "" } = this.root.dataset;
    const template = element(this.root, "[data-line-template]");
    const { content } = /** @type {HTMLTemplateElement} */ (template);
    const emptyLine = element(document.importNode(content, true), ".line");
    const view = new LineView(emptyLine, number, { videoUrl, editUrl, publicUrl });
    startCopyLink(element(view.root, "[data-copies]"), this.signal);
    this.list.append(view.root);
    this.#lines.set(number, view);
    return view;
  }

  /** @param {State} state */
  #drawPublishing(state) {
    const { isHidden, label, isBusy, hint, isIncomplete } = submitOf(state);
    const batch = batchOf(state);
    this.publishing.hidden = isHidden && batch.isHidden;
    element(this.publishing, "[data-batch]").hidden = batch.isHidden;
    const meter = /** @type {HTMLProgressElement} */ (element(this.publishing, "progress"));
    meter.value = batch.share;
    meter.hidden = batch.share === 1;
    const { percent, count, rest } = batch;
    setTexts(this.publishing, { percent, count, rest, submit: label, "submit-state": hint });
    const button = element(this.publishing, "[data-submit]");
    button.hidden = isHidden;
    button.classList.toggle("button--quiet", Boolean(isIncomplete));
    button.setAttribute("aria-disabled", String(isBusy));
  }

  /** @param {NonNullable<State["focus"]>} focus */
  #focus({ number = 0, target }) {
    if (target === "files") this.input.focus();
    else if (target === "fault") this.details.focusFault();
    else this.#lines.get(number)?.focus();
  }

  /**
   * Keep the focus in place when the open upload or a button changes.
   * @param {Element | null} focused @param {State} state @param {State} before
   */
  #keepFocus(focused, state, before) {
    const isMoved = state.open !== before.open && this.form.contains(focused);
    const isLost =
      focused !== document.body && isHidden(focused) && isHidden(document.activeElement);
    if (isMoved) this.#lines.get(before.open)?.focus();
    else if (isLost) {
      const number = numberOf(focused) || state.open || before.open;
      this.#lines.get(number)?.focus(focused);
    }
  }
}

/** Return whether an element is missing or not visible. @param {Element | null} focused */
function isHidden(focused) {
  return !focused || focused === document.body || focused.getClientRects().length === 0;
}

/** Return the part of a film that is sent or being chosen. @param {import("./upload.js").Upload} upload */
function partOf({ draft, trim }) {
  const part = draft ?? trim;
  return part && { startSeconds: part.start_s, endSeconds: part.end_s };
}

/**
 * Return the number of the upload on whose line an element is.
 * @param {EventTarget | null} target
 */
function numberOf(target) {
  return Number(closest(target, "[data-line]")?.dataset.line);
}

/**
 * Pass on the chosen files.
 * @param {HTMLInputElement} input @param {(files: File[]) => void} onFiles
 */
function takeFiles(input, onFiles) {
  const files = [...(input.files ?? [])];
  // Cleared, because choosing the same file again sends an event only then.
  input.value = "";
  if (files.length) onFiles(files);
}

/**
 * Accept files that are dropped anywhere on the page, so that the browser never leaves it to open
 * one.
 * @param {HTMLElement} zone @param {(files: File[]) => void} onFiles @param {AbortSignal} signal
 */
function acceptDrops(zone, onFiles, signal) {
  /** @param {DragEvent} event */
  const handleDrag = (event) => {
    if (event.type === "dragleave") {
      if (!event.relatedTarget) zone.classList.remove("drop--over");
      return;
    }
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    zone.classList.toggle("drop--over", event.type === "dragover");
    const files = event.type === "drop" ? [...event.dataTransfer.files] : [];
    if (files.length) onFiles(files);
  };
  for (const type of /** @type {const} */ (["dragover", "dragleave", "drop"])) {
    window.addEventListener(type, handleDrag, { signal });
  }
}
