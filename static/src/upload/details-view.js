/** Draws the details of the open upload: its file, what is wrong with it, and its form. */

import { element } from "../dom.js";
import { CHOICES_CHANGED } from "../multi-select.js";
import { setText } from "./line-view.js";
import { WHO_HAS_TO_SIGN_IN } from "./publication.js";
import * as is from "./selectors.js";
import { appliedInWords, standingOf } from "./words.js";

/** The order of the fields on the page; the first one at fault gets the focus. */
const POINTERS = ["/file", "/title", "/categoryIds", "/description", "/tags", "/visibility"];

/** Fields that hold one text each. */
const TEXTS = /** @type {const} */ (["title", "description", "tags", "visibility"]);

const COPY_HINT = "The categories, tags and visibility you set here";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {import("./upload.js").Details} Details */

export class DetailsView {
  /** @type {Upload | undefined} what was drawn last */
  #drawn;

  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
  }

  /** @returns {Details} exactly as typed */
  read() {
    const data = new FormData(this.form);
    const [title = "", description = "", tags = "", visibility = ""] = TEXTS.map((name) =>
      String(data.get(name) ?? ""),
    );
    const categoryIds = data.getAll("categoryIds").map(Number);
    return { title, description, categoryIds, tags, visibility };
  }

  /** @param {State} state */
  draw(state) {
    const upload = is.openOf(state);
    const before = this.#drawn;
    this.form.hidden = !upload;
    this.#drawCopying(state);
    this.#drawn = upload;
    if (!upload || upload === before) return;
    setText(this.form, "[data-name]", upload.fileName);
    setText(this.form, "[data-facts]", upload.inspection?.facts ?? "");
    if (upload.inspection !== before?.inspection) this.#drawFindings(upload);
    this.#drawNotice(upload);
    if (upload.details !== before?.details) this.#write(upload.details);
    if (upload.faults !== before?.faults) this.#drawFaults(upload.faults);
    this.#drawSubmitTrouble(upload);
  }

  /** @param {State} state */
  #drawCopying(state) {
    const place = element(this.form, "[data-copy-to-all]");
    const { applied, open } = state;
    place.hidden = !is.othersOf(state, open).length;
    const copy = /** @type {HTMLButtonElement} */ (element(place, "[data-action=copy]"));
    copy.disabled = !Object.keys(is.sharedOf(state, open)).length;
    element(place, "[data-action=undo]").hidden = !applied.length;
    setText(place, "[data-copy-hint]", applied.length ? appliedInWords(applied) : COPY_HINT);
  }

  /** Leads the keyboard to the first input at fault. */
  focusFault() {
    const inputs = POINTERS.flatMap((pointer) => this.#inputs(pointer));
    inputs.find((input) => input.hasAttribute("aria-invalid"))?.focus();
  }

  /** @param {Upload} upload */
  #drawFindings({ inspection }) {
    const notes = (inspection?.findings ?? []).filter(({ weight }) => weight !== "refuse");
    const list = element(this.form, "[data-findings]");
    list.replaceChildren(...notes.map(findingItem));
    list.hidden = notes.length === 0;
  }

  /** @param {Upload} upload */
  #drawNotice(upload) {
    const { trouble, unfinished, canReplace } = standingOf(upload);
    const notice = element(this.form, "[data-notice]");
    notice.hidden = !(trouble || unfinished || canReplace);
    notice.classList.toggle("notice--bad", Boolean(trouble));
    element(notice, "[data-trouble]").hidden = !trouble;
    setText(notice, "[data-trouble-title]", trouble?.title ?? "");
    setText(notice, "[data-trouble-text]", trouble?.text ?? "");
    element(notice, "[data-sign-in]").hidden = !trouble?.needsSignIn;
    setText(notice, "[data-again]", unfinished ?? "");
    setText(notice, "[data-pick-words]", unfinished ? "Choose the file again" : "Replace file");
  }

  /** @param {Details} details */
  #write(details) {
    for (const name of TEXTS) {
      const input = /** @type {HTMLInputElement} */ (element(this.form, `[name=${name}]`));
      if (input.value !== details[name]) input.value = details[name];
    }
    for (const box of this.form.querySelectorAll("[name=categoryIds]")) {
      if (!(box instanceof HTMLInputElement)) continue;
      box.checked = details.categoryIds.includes(Number(box.value));
    }
    element(this.form, "[data-multi-select]").dispatchEvent(new Event(CHOICES_CHANGED));
  }

  /** @param {import("./upload.js").FieldFault[]} faults */
  #drawFaults(faults) {
    for (const pointer of POINTERS) {
      const own = faults.find(
        (it) => it.pointer === pointer || it.pointer.startsWith(`${pointer}/`),
      );
      setText(this.form, `[data-error-for="${pointer}"]`, own?.message ?? "");
      for (const input of this.#inputs(pointer)) {
        if (own) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
    }
  }

  /** @param {string} pointer @returns {HTMLInputElement[]} */
  #inputs(pointer) {
    const selector = `[data-field="${pointer}"] :is(input, textarea, select)`;
    return /** @type {HTMLInputElement[]} */ ([...this.form.querySelectorAll(selector)]);
  }

  /** @param {Upload} upload */
  #drawSubmitTrouble({ publishTrouble }) {
    const notice = element(this.form, "[data-submit-trouble]");
    setText(notice, "[data-text]", publishTrouble);
    notice.hidden = !publishTrouble;
    element(notice, "[data-sign-in]").hidden = !WHO_HAS_TO_SIGN_IN.has(publishTrouble);
  }
}

/** @param {import("../preflight/findings.js").Finding} finding */
function findingItem({ weight, title, text }) {
  const item = document.createElement("li");
  item.className = `finding finding--${weight}`;
  const strong = document.createElement("strong");
  strong.textContent = title;
  item.append(strong, ` ${text}`);
  return item;
}
