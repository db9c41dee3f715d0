/** Draws one row from the state: its file, progress, findings, details, and what can be done. */

import { element } from "../dom.js";
import { formatSize } from "../format.js";
import { WHO_HAS_TO_SIGN_IN } from "./publication.js";
import * as is from "./selectors.js";
import { standingOf, submitOf } from "./words.js";

/** The order of the fields on the page; the first one at fault gets the focus. */
const POINTERS = ["/file", "/title", "/description", "/tags", "/visibility", "/categoryIds"];

/** Fields that hold one text each. */
const TEXTS = /** @type {const} */ (["title", "description", "tags", "visibility"]);

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {import("./upload.js").Details} Details */
/** @typedef {import("./words.js").Standing} Standing */

export class RowView {
  #company = "";

  /** @param {HTMLElement} root @param {string} videoUrl with VIDEO_ID in it */
  constructor(root, videoUrl) {
    this.root = root;
    this.videoUrl = videoUrl;
    this.form = /** @type {HTMLFormElement} */ (element(root, "form"));
    this.panel = element(root, "[data-transfer]");
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

  /**
   * @param {Upload} upload
   * @param {Upload | undefined} before what was drawn last
   * @param {State} state
   */
  draw(upload, before, state) {
    const isAlone = is.isAlone(state, upload.number);
    const others = state.uploads.filter(is.isUnpublished).length;
    const company = `${isAlone} ${others > 1}`;
    if (upload === before && company === this.#company) return;
    this.#company = company;
    setText(this.panel, "[data-action=remove]", isAlone ? "Choose another file" : "Remove");
    element(this.root, "[data-action=copy]").hidden = others < 2;
    // Where it is alone, the video's own page comes next.
    const isDone = upload.publishing === "published" && state.destination !== upload.video?.id;
    const isHidden = isDone || (upload.phase === "refused" && !isAlone);
    const hadFocus = this.root.contains(document.activeElement);
    for (const part of ["details", "end"]) element(this.root, `[data-${part}]`).hidden = isHidden;
    this.#drawFile(upload);
    if (upload.inspection !== before?.inspection) this.#drawFindings(upload);
    element(this.panel, "[data-findings]").hidden = isHidden || !hasNotes(upload);
    this.#drawStanding(standingOf(upload), upload);
    if (upload.details !== before?.details) this.#write(upload.details);
    if (upload.faults !== before?.faults) this.#drawFaults(upload.faults);
    this.#drawSubmit(upload);
    if (isDone && before?.publishing !== "published") this.#drawDone(upload, hadFocus);
  }

  /** The first input at fault, or the row. */
  get atFault() {
    const inputs = POINTERS.flatMap((pointer) => this.#inputs(pointer));
    return inputs.find((input) => input.hasAttribute("aria-invalid")) ?? this.panel;
  }

  /** @param {Upload} upload */
  #drawFile({ phase, fileName, size_bytes, inspection }) {
    this.panel.hidden = phase === "empty";
    this.form.setAttribute("aria-label", fileName || "New video");
    setText(this.panel, "[data-name]", fileName);
    setText(this.panel, "[data-size]", formatSize(size_bytes));
    setText(this.panel, "[data-facts]", inspection?.facts ?? "");
  }

  /** @param {Upload} upload */
  #drawFindings({ inspection }) {
    const items = (inspection?.findings ?? []).map(findingItem);
    element(this.panel, "[data-findings]").replaceChildren(...items);
  }

  /** @param {Standing} standing @param {Upload} upload */
  #drawStanding({ art = "file", figure, rest = "", trouble, unfinished, buttons }, upload) {
    const meter = element(this.panel, "progress");
    element(this.panel, "[data-art]").dataset.art = art;
    element(this.panel, "[data-progress]").hidden = figure === undefined;
    element(this.panel, "[data-trouble]").hidden = !trouble;
    meter.setAttribute("aria-label", `Upload progress of ${upload.fileName}`);
    const isStarting = upload.phase === "sending" && upload.sent_bytes === 0;
    const share = upload.size_bytes ? upload.sent_bytes / upload.size_bytes : 0;
    if (isStarting) meter.removeAttribute("value");
    else if (meter.getAttribute("value") !== String(share)) {
      meter.setAttribute("value", String(share));
    }
    setText(this.panel, "[data-percent]", figure ?? "");
    setText(this.panel, "[data-rest]", rest);
    setText(this.panel, "[data-trouble-title]", trouble?.title ?? "");
    setText(this.panel, "[data-trouble-text]", trouble?.text ?? "");
    element(this.panel, "[data-sign-in]").hidden = !trouble?.needsSignIn;
    this.#drawUnfinished(unfinished);
    this.#drawButtons(buttons);
  }

  /** @param {string | undefined} words asks for the file of an upload of another visit */
  #drawUnfinished(words) {
    const shown = this.panel.querySelector("[data-again]");
    if (!words) return shown?.remove();
    if (!shown) {
      const template = element(this.panel, "[data-again-template]");
      template.before(stamp(this.panel, "[data-again-template]", this.root.dataset.row ?? ""));
    }
    setText(this.panel, "[data-again-text]", words);
  }

  /** @param {string[]} shown */
  #drawButtons(shown) {
    const focused = document.activeElement;
    for (const button of this.panel.querySelectorAll("[data-action]")) {
      const name = button.getAttribute("data-action") ?? "";
      if (button instanceof HTMLElement && name !== "discard")
        button.hidden = !shown.includes(name);
    }
    // A button that went away must not take the keyboard's place in the page with it.
    if (!(focused instanceof HTMLElement && focused.hidden && this.panel.contains(focused))) return;
    const swap = { pause: "resume", resume: "pause" }[focused.dataset.action ?? ""] ?? "";
    const successor = shown.includes(swap) ? `[data-action=${swap}]` : "";
    (successor ? element(this.panel, successor) : this.panel).focus();
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
  }

  /** @param {import("./upload.js").FieldFault[]} faults */
  #drawFaults(faults) {
    for (const pointer of POINTERS) {
      const own = faults.find(
        (it) => it.pointer === pointer || it.pointer.startsWith(`${pointer}/`),
      );
      const place = this.form.querySelector(`[data-error-for="${pointer}"]`);
      if (place) place.textContent = own?.message ?? "";
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
  #drawSubmit(upload) {
    const { label, isBusy, words } = submitOf(upload);
    setText(this.root, "button[type=submit]", label);
    element(this.root, "button[type=submit]").setAttribute("aria-disabled", String(isBusy));
    setText(this.root, "[data-submit-state]", words);
    setText(this.root, "[data-submit-trouble] [data-text]", upload.publishTrouble);
    element(this.root, "[data-submit-trouble]").hidden = !upload.publishTrouble;
    const needsSignIn = WHO_HAS_TO_SIGN_IN.has(upload.publishTrouble);
    element(this.root, "[data-submit-trouble] [data-sign-in]").hidden = !needsSignIn;
  }

  /**
   * Published: the row shrinks to its file and a link.
   * @param {Upload} upload
   * @param {boolean} hadFocus
   */
  #drawDone({ video }, hadFocus) {
    const link = element(this.root, "[data-video]");
    link.setAttribute(
      "href",
      this.videoUrl.replace("VIDEO_ID", encodeURIComponent(video?.id ?? "")),
    );
    setText(this.root, "[data-video]", `View “${video?.title}”`);
    element(this.root, "[data-done]").hidden = false;
    if (hadFocus) link.focus();
  }
}

/**
 * A copy of a template's one element, with ids of its own.
 * @param {ParentNode} root
 * @param {string} selector of the template
 * @param {number | string} number takes the place of NUMBER in ids and in what refers to them
 * @returns {HTMLElement}
 */
export function stamp(root, selector, number) {
  const template = /** @type {HTMLTemplateElement} */ (element(root, selector));
  const copy = /** @type {HTMLElement} */ (
    document.importNode(template.content, true).firstElementChild
  );
  for (const part of [copy, ...copy.querySelectorAll("*")]) {
    for (const name of ["id", "for", "aria-describedby", "data-row"]) {
      const value = part.getAttribute(name);
      if (value) part.setAttribute(name, value.replaceAll("NUMBER", String(number)));
    }
  }
  return copy;
}

/** @param {ParentNode} root @param {string} selector @param {string} words */
export function setText(root, selector, words) {
  const place = element(root, selector);
  if (place.textContent !== words) place.textContent = words;
}

/** @param {Upload} upload whether something was found that doesn't refuse the file */
function hasNotes({ phase, inspection }) {
  return phase !== "refused" && Boolean(inspection?.findings.length);
}

/** @param {import("./findings.js").Finding} finding */
function findingItem({ weight, title, text }) {
  const item = document.createElement("li");
  item.className = `finding finding--${weight}`;
  const strong = document.createElement("strong");
  strong.textContent = title;
  item.append(strong, ` ${text}`);
  return item;
}
