/**
 * Form of a hand-in link: uploads a file as the upload page does, then hands it in with its title
 * and the sender's name. An upload that a reload has interrupted continues with the same file.
 */

import { announce, confirmLeaving, element, setText, setTexts } from "../dom.js";
import { gettext } from "../messages.js";
import { contentTypeOf, unsuitableReason } from "../preflight/findings.js";
import { FileUpload } from "../publishing/file-upload.js";
import { Refused } from "../requests.js";

/** Statuses of refusals after the end of a link. */
const ENDED = new Set([401, 404]);
const NO_REFUSAL = new Refused(0);
/** Refusals by the quota of the account that made the link. */
const NO_ROOM = new Set(["video_quota_exceeded", "storage_quota_exceeded"]);

/** @param {HTMLElement} form @param {AbortSignal} signal */
export function startHandIn(form, signal) {
  if (form instanceof HTMLFormElement) new HandIn(form, signal);
}

class HandIn {
  /** @param {HTMLFormElement} form @param {AbortSignal} signal */
  constructor(form, signal) {
    this.form = form;
    this.file = input(form, "file");
    this.title = input(form, "title");
    this.sender = input(form, "sender");
    this.pause = element(form, "[data-pause]");
    const { presignUrl = "", uploadsUrl = "", publishUrl = "" } = form.dataset;
    this.upload = new FileUpload(
      { presignUrl, uploadsUrl, publishUrl },
      (status) => this.#show(status),
      `portal.hand-in.${form.dataset.id}`,
    );
    this.#showUnfinished();
    form.hidden = false;
    form.noValidate = true;
    const handleSubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      if (!this.upload.isRunning) this.#handIn();
    };
    form.addEventListener("submit", handleSubmit, { signal });
    this.file.addEventListener("change", () => this.#prefillTitle(), { signal });
    this.pause.addEventListener("click", () => this.#pause(), { signal });
    element(form, "[data-cancel]").addEventListener("click", () => this.#cancel(), { signal });
    confirmLeaving(() => this.upload.isRunning, signal);
    signal.addEventListener("abort", () => this.upload.stop());
  }

  async #handIn() {
    const file = this.file.files?.[0];
    const contentType = file && contentTypeOf(file);
    const faults = {
      file: file
        ? unsuitableReason(file, contentType ?? "", Number(this.form.dataset.largest))
        : gettext("Choose a video file."),
      title: this.title.value.trim() ? "" : gettext("Give the video a title."),
      sender: this.sender.value.trim() ? "" : gettext("Enter your name."),
    };
    this.#showFaults(faults);
    if (!file || !contentType || Object.values(faults).some(Boolean)) return;
    const details = { title: this.title.value, sender: this.sender.value };
    const sending = this.upload.send(file, contentType, details);
    this.pause.focus();
    announce(gettext("Uploading %(name)s.", { name: file.name }));
    try {
      if (await sending) this.#confirm();
    } catch (error) {
      this.#showRefusal(/** @type {Error} */ (error));
    }
  }

  /** Empty the form, and let the page show the file among those that were received. */
  #confirm() {
    announce(gettext("“%(title)s” is received.", { title: this.title.value }));
    this.file.value = "";
    this.title.value = "";
    this.#showUnfinished();
    this.file.focus();
    document.body.dispatchEvent(new Event("handed-in"));
  }

  /** @param {Error} error */
  #showRefusal(error) {
    const { status, code, faults } = error.cause instanceof Refused ? error.cause : NO_REFUSAL;
    // The page says that the link has ended.
    if (ENDED.has(status)) return location.reload();
    // The answer to an earlier request was lost.
    if (code === "key_already_used") return this.#cancel();
    const named = Object.fromEntries(
      faults.map(({ pointer, message }) => [pointer.slice(1), message]),
    );
    const noRoom = gettext(
      "The person who asks for videos has no room for it now. Tell them, then try again later.",
    );
    const isNamed = named.title || named.sender;
    this.#showFaults({
      file: isNamed ? "" : NO_ROOM.has(code) ? noRoom : error.message,
      title: named.title ?? "",
      sender: named.sender ?? "",
    });
  }

  #pause() {
    this.upload.pause();
    this.#showUnfinished();
    element(this.form, "[data-send]").focus();
  }

  async #cancel() {
    const discarding = this.upload.discard();
    this.file.focus();
    this.#showUnfinished();
    // Else the file was received.
    if (!(await discarding)) this.#confirm();
  }

  /** Derive a title from the name of the file, unless there is one. */
  #prefillTitle() {
    const name = this.file.files?.[0]?.name ?? "";
    this.title.value ||= name.replace(/\.[^.]*$/, "").replaceAll("_", " ");
  }

  /** Ask for the file of an interrupted upload. */
  #showUnfinished() {
    const note = element(this.form, "[data-unfinished]");
    const name = this.upload.unfinishedName;
    note.hidden = !name || this.upload.isRunning;
    note.textContent = gettext(
      "The upload of “%(name)s” isn’t finished. Choose the same file and hand it in to continue.",
      { name },
    );
  }

  /** Show what is wrong beside the fields, and focus the first. @param {Record<string, string>} faults */
  #showFaults(faults) {
    for (const [name, fault] of Object.entries(faults).reverse()) {
      const field = input(this.form, name);
      setText(this.form, `#${name}-error`, fault);
      if (fault) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
      if (fault) field.focus();
    }
    announce(Object.values(faults).filter(Boolean).join(" "));
  }

  /** @param {{ figure: string, rest?: string, share?: number | null }} status of the upload */
  #show({ figure, rest = "", share }) {
    const isBusy = this.upload.isRunning;
    setTexts(this.form, { figure, rest });
    /** @type {HTMLProgressElement} */ (element(this.form, "progress")).value = share ?? 0;
    element(this.form, "[data-transfer]").hidden = !isBusy;
    element(this.form, "[data-send]").hidden = isBusy;
    element(this.form, "[data-unfinished]").hidden ||= isBusy;
    for (const name of ["file", "title", "sender"]) input(this.form, name).disabled = isBusy;
  }
}

/** @param {HTMLFormElement} form @param {string} name */
function input(form, name) {
  return /** @type {HTMLInputElement} */ (element(form, `#${name}`));
}
