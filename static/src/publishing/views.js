/**
 * Views of an upload: its line in the list (picture, status and actions), and the details of the
 * open upload (file, faults and form).
 */

import { closest, element, setText, setTexts } from "../dom.js";
import { formatSize } from "../format.js";
import { gettext } from "../messages.js";
import { CHOICES_CHANGED } from "../multi-select.js";
import { allowSignInPrompt } from "../people/sign-in-again.js";
import { SIGN_IN_MESSAGES } from "./failures.js";
import * as is from "./selectors.js";
import { appliedText, noteOf, statusOf, visibilityText } from "./texts.js";

/** Button that takes the focus of a removed one. @type {Record<string, string>} */
const REPLACEMENTS = { pause: "resume", resume: "pause" };
/** Pointers of the fields in the order of the page; the first invalid field gets the focus. */
const FIELD_ORDER = [
  "/file",
  "/title",
  "/categoryIds",
  "/description",
  "/tags",
  "/visibility",
  "/share",
  "/series",
];
/** Fields that hold one text each. Some portals have no `share`, and some editors no `series`. */
const TEXT_FIELDS = /** @type {const} */ ([
  "title",
  "description",
  "tags",
  "visibility",
  "share",
  "series",
]);
// Translators: what the button "Apply to all" applies.
const COPY_HINT = gettext("The categories, tags, visibility, people and series you set here");

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {import("./upload.js").Details} Details */
/** @typedef {import("./texts.js").Status} Status */
/** URLs of a video's pages, with the placeholder VIDEO_ID; `publicUrl` is the one to share. */
/** @typedef {{ videoUrl: string, editUrl: string, publicUrl: string }} Addresses */

/** Return the URL of a video's page. @param {string} address @param {string} videoId */
const addressOf = (address, videoId) => address.replace("VIDEO_ID", encodeURIComponent(videoId));

/**
 * Set the links to a video's page and workshop, and the URL that is copied, which is returned.
 * @param {HTMLElement} root @param {Addresses} addresses @param {string} videoId
 */
export function linkVideo(root, { videoUrl, editUrl, publicUrl }, videoId) {
  const shared = addressOf(publicUrl, videoId);
  element(root, "[data-video]").setAttribute("href", addressOf(videoUrl, videoId));
  element(root, "[data-workshop]").setAttribute("href", addressOf(editUrl, videoId));
  element(root, "[data-copies]").dataset.copies = shared;
  return shared;
}

export class LineView {
  /** @param {HTMLElement} root @param {number} number @param {Addresses} addresses */
  constructor(root, number, addresses) {
    this.root = root;
    this.addresses = addresses;
    root.dataset.line = String(number);
  }

  /**
   * @param {Upload} upload @param {Upload | undefined} before the upload as it was drawn last
   * @param {boolean} isOpen @param {string} defaultVisibility
   */
  draw(upload, before, isOpen, defaultVisibility) {
    element(this.root, "[data-open]").setAttribute("aria-current", String(isOpen));
    this.root.classList.toggle("line--open", isOpen);
    if (upload === before) return;
    const { fileName, video, processing } = upload;
    const isPublished = upload.publishing === "published";
    const standing = statusOf(upload);
    const note = isPublished ? { text: "" } : noteOf(upload);
    this.root.setAttribute("aria-label", fileName);
    setTexts(this.root, {
      open: fileName,
      title: video?.title ?? "",
      visibility: visibilityText(upload, defaultVisibility),
      note: note.text,
      size: formatSize(upload.size_bytes),
      figure: standing.figure,
      rest: standing.rest ?? "",
      workshop: workshopText(processing?.stage === "failed"),
    });
    element(this.root, "[data-note]").classList.toggle("line__note--bad", Boolean(note.isBad));
    const isBad = standing.art === "bad";
    element(this.root, "[data-figure]").classList.toggle("line__figure--bad", isBad);
    this.#drawPicture(upload, standing);
    this.#drawProgress(fileName, standing);
    this.#drawButtons(isPublished, standing);
    if (video) linkVideo(this.root, this.addresses, video.id);
  }

  /**
   * Focus this line, or the button that replaced a removed one.
   * @param {Element | null} [lostButton] the removed button
   */
  focus(lostButton) {
    const replacement = REPLACEMENTS[lostButton?.getAttribute("data-action") ?? ""];
    const selectors = [`[data-action=${replacement}]`, "[data-open]", "[data-video]"];
    const elements = selectors.map((selector) =>
      this.root.querySelector(`${selector}:not([hidden])`),
    );
    elements.find((element) => element instanceof HTMLElement)?.focus();
  }

  /** @param {Upload} upload @param {Status} standing */
  #drawPicture({ picture, processing, video }, { art: kind = "file" }) {
    const art = element(this.root, "[data-art]");
    const hasPoster = processing?.hasPoster && video;
    const source = hasPoster
      ? `${addressOf(this.addresses.videoUrl, video.id)}/poster.jpg`
      : picture;
    const present = art.querySelector("img");
    art.dataset.art = kind;
    if (!source) return present?.remove();
    if (present?.getAttribute("src") === source) return;
    const image = present ?? art.appendChild(document.createElement("img"));
    image.className = "line__picture";
    image.alt = "";
    image.src = source;
  }

  /** @param {string} fileName @param {Status} standing */
  #drawProgress(fileName, { share }) {
    const meter = element(this.root, "progress");
    meter.hidden = share === undefined;
    meter.setAttribute("aria-label", gettext("Progress of %(name)s", { name: fileName }));
    if (typeof share === "number") meter.setAttribute("value", String(share));
    else meter.removeAttribute("value");
  }

  /** @param {boolean} isPublished @param {Status} standing */
  #drawButtons(isPublished, { unfinished, buttons }) {
    element(this.root, "[data-open]").hidden = isPublished;
    for (const name of ["title", "video", "workshop", "copies"]) {
      element(this.root, `[data-${name}]`).hidden = !isPublished;
    }
    for (const name of /** @type {const} */ (["pause", "resume", "retry", "cancel", "remove"])) {
      element(this.root, `[data-action=${name}]`).hidden = !buttons.includes(name);
    }
    const remove = element(this.root, "[data-action=remove]");
    remove.title = unfinished
      ? // Translators: button that gives up an unfinished upload.
        gettext("Discard")
      : // Translators: button that removes an upload from the list.
        gettext("Remove");
    setText(remove, ".visually-hidden", remove.title);
  }
}

export class DetailsView {
  /** Upload as it was drawn last. @type {Upload | undefined} */
  #drawn;

  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.pointers = FIELD_ORDER.filter((pointer) => this.#find(pointer));
  }

  /**
   * Store the details of the open upload while they are edited.
   * @param {Store} store @param {AbortSignal} signal
   */
  listen(store, signal) {
    const handleInput = (/** @type {Event} */ { target }) => {
      const pointer = closest(target, "[data-field]")?.dataset.field ?? "";
      if (pointer !== "/file" && !closest(target, "[data-trim]"))
        this.#storeDetails(store, pointer);
    };
    this.form.addEventListener("input", handleInput, { signal });
    this.form.addEventListener("submit", (event) => event.preventDefault(), { signal });
  }

  /** Publish the uploads of the page. @param {Store} store */
  submit(store) {
    allowSignInPrompt();
    // Browsers send no event for fields that they restore.
    this.#storeDetails(store, "");
    store.dispatch({ type: "submitted" });
  }

  /** @param {Store} store @param {string} pointer of the edited field */
  #storeDetails(store, pointer) {
    const { open: number } = store.state;
    store.dispatch({ type: "edited", number, details: this.#read(), pointer });
  }

  /** Return the details exactly as typed. @returns {Details} */
  #read() {
    const data = new FormData(this.form);
    const read = (/** @type {keyof Details} */ name) => String(data.get(name) ?? "");
    return {
      title: read("title"),
      description: read("description"),
      categoryIds: data.getAll("categoryIds").map(Number),
      tags: read("tags"),
      visibility: read("visibility"),
      share: read("share"),
      series: read("series"),
    };
  }

  /** @param {State} state */
  draw(state) {
    const upload = is.openOf(state);
    const before = this.#drawn;
    this.form.hidden = !upload;
    this.#drawCopying(state);
    this.#drawn = upload;
    if (!upload || upload === before) return;
    setTexts(this.form, { name: upload.fileName, facts: upload.inspection?.facts ?? "" });
    if (upload.inspection !== before?.inspection) this.#drawFindings(upload);
    this.#drawNotice(upload);
    element(this.form, "[data-fields]").hidden = upload.phase === "refused";
    if (upload.details !== before?.details) this.#write(upload.details);
    if (upload.faults !== before?.faults) this.#drawFaults(upload.faults);
    this.#drawSubmitTrouble(upload);
  }

  /** @param {State} state */
  #drawCopying(state) {
    const target = element(this.form, "[data-copy-to-all]");
    const { applied, open } = state;
    target.hidden = !is.othersOf(state, open).length;
    const copy = /** @type {HTMLButtonElement} */ (element(target, "[data-action=copy]"));
    copy.disabled = !Object.keys(is.sharedOf(state, open)).length;
    element(target, "[data-action=undo]").hidden = !applied.length;
    setText(target, "[data-copy-hint]", applied.length ? appliedText(applied) : COPY_HINT);
  }

  /** Focus the first invalid field. */
  focusFault() {
    const inputs = this.pointers.flatMap((pointer) => this.#inputs(pointer));
    inputs.find((input) => input.hasAttribute("aria-invalid"))?.focus();
  }

  /** @param {Upload} upload */
  #drawFindings({ inspection }) {
    const findings = (inspection?.findings ?? []).filter(({ weight }) => weight !== "refuse");
    const list = element(this.form, "[data-findings]");
    list.replaceChildren(...findings.map(findingItem));
    list.hidden = findings.length === 0;
  }

  /** @param {Upload} upload */
  #drawNotice(upload) {
    const { trouble, unfinished, canReplace } = statusOf(upload);
    const notice = element(this.form, "[data-notice]");
    notice.hidden = !(trouble || unfinished || canReplace);
    notice.classList.toggle("notice--bad", Boolean(trouble));
    element(notice, "[data-trouble]").hidden = !trouble;
    setTexts(notice, {
      "trouble-title": trouble?.title ?? "",
      "trouble-text": trouble?.text ?? "",
      again: unfinished ?? "",
      "pick-words": unfinished ? gettext("Choose the file again") : gettext("Replace file"),
    });
    element(notice, "[data-sign-in]").hidden = !trouble?.needsSignIn;
  }

  /** @param {Details} details */
  #write(details) {
    for (const name of TEXT_FIELDS) {
      /** @type {HTMLInputElement | null} */
      const input = this.form.querySelector(`[name=${name}]`);
      if (input && input.value !== details[name]) input.value = details[name];
    }
    for (const box of this.form.querySelectorAll("[name=categoryIds]")) {
      if (!(box instanceof HTMLInputElement)) continue;
      box.checked = details.categoryIds.includes(Number(box.value));
    }
    element(this.form, "[data-multi-select]").dispatchEvent(new Event(CHOICES_CHANGED));
  }

  /** @param {import("./upload.js").FieldFault[]} faults */
  #drawFaults(faults) {
    for (const pointer of this.pointers) {
      const own = faults.find(
        (fault) => fault.pointer === pointer || fault.pointer.startsWith(`${pointer}/`),
      );
      setText(this.form, `[data-error-for="${pointer}"]`, own?.message ?? "");
      for (const input of this.#inputs(pointer)) {
        if (own) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
    }
  }

  /** Return the field of a pointer, if the form has it. @param {string} pointer */
  #find(pointer) {
    return this.form.querySelector(`[data-field="${pointer}"]`);
  }

  /** @param {string} pointer @returns {HTMLInputElement[]} */
  #inputs(pointer) {
    const inputs = this.#find(pointer)?.querySelectorAll("input, textarea, select") ?? [];
    return /** @type {HTMLInputElement[]} */ ([...inputs]);
  }

  /** @param {Upload} upload */
  #drawSubmitTrouble({ publishError }) {
    const notice = element(this.form, "[data-submit-trouble]");
    setText(notice, "[data-text]", publishError);
    notice.hidden = !publishError;
    element(notice, "[data-sign-in]").hidden = !SIGN_IN_MESSAGES.has(publishError);
  }
}

/** Return the text of the link to a video's workshop. @param {boolean} hasFailed */
function workshopText(hasFailed) {
  // Translators: link to the page of a video that couldn't be processed.
  if (hasFailed) return gettext("What to do");
  // Translators: link to the page on which a video is edited.
  return gettext("Edit");
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
