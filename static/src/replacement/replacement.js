/**
 * Section that replaces a video's file: uploads the chosen file to storage as the upload page does,
 * then asks the portal to replace the file, and shows the progress of its processing.
 */

import { announce, confirmLeaving, element, setText, setTexts } from "../dom.js";
import { gettext } from "../messages.js";
import { allowSignInPrompt } from "../people/sign-in-again.js";
import { sentTypeOf, unsuitableReason } from "../preflight/findings.js";
import { FileUpload } from "../publishing/file-upload.js";

/** @type {string | null} */
let lastState = null;

/** @param {HTMLElement} section @param {AbortSignal} signal */
export function startReplacement(section, signal) {
  const { state = "", words = "" } = section.dataset;
  if (lastState !== null && state !== lastState && words) announce(words);
  lastState = state;
  signal.addEventListener("abort", () => {
    // The focused button may be gone from the next state of the section.
    const next = document.getElementById("replacement");
    const isLost = document.activeElement === document.body;
    if (next && isLost && next.dataset.state !== state) element(next, "h2").focus();
  });
  const form = section.querySelector("form[data-new-file]");
  if (form instanceof HTMLFormElement) new NewFile(form, signal);
}

/** Form with the new file. */
class NewFile {
  /** @param {HTMLFormElement} form @param {AbortSignal} signal */
  constructor(form, signal) {
    this.form = form;
    this.input = /** @type {HTMLInputElement} */ (element(form, "input[type=file]"));
    this.cancel = element(form, "[data-cancel]");
    const { presignUrl = "", uploadsUrl = "", publishUrl = "", repackUrl = "" } = form.dataset;
    const urls = { presignUrl, uploadsUrl, publishUrl, repackUrl };
    this.upload = new FileUpload(urls, (status) => this.#show(status));
    form.hidden = false;
    const handleSubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      if (!this.upload.isRunning) this.#replace();
    };
    form.addEventListener("submit", handleSubmit, { signal });
    this.cancel.addEventListener("click", () => this.#cancel(), { signal });
    confirmLeaving(() => this.upload.isRunning, signal);
    signal.addEventListener("abort", () => this.upload.stop());
  }

  async #replace() {
    const file = this.input.files?.[0];
    if (!file) return;
    const contentType = sentTypeOf(file);
    const fault = unsuitableReason(file, contentType, Number(this.form.dataset.largest), true);
    if (!contentType || fault) return this.#showFault(fault);
    allowSignInPrompt();
    const sending = this.upload.send(file, contentType);
    this.cancel.focus();
    announce(gettext("Uploading %(name)s.", { name: file.name }));
    try {
      if (await sending) this.#announceBegin();
    } catch (error) {
      this.#showFault(/** @type {Error} */ (error).message);
    }
  }

  /** Let the section show the replacement instead of this form. */
  #announceBegin() {
    this.form.dispatchEvent(new Event("replacement-begun", { bubbles: true }));
  }

  async #cancel() {
    const discarding = this.upload.discard();
    this.input.focus();
    // Else the portal has begun the replacement.
    if (!(await discarding)) this.#announceBegin();
  }

  /** Show why the file is not uploaded. @param {string} fault */
  #showFault(fault) {
    setText(this.form, ".field__error", fault);
    this.input.setAttribute("aria-invalid", "true");
    this.input.focus();
    announce(fault);
  }

  /** @param {{ figure: string, rest?: string, share?: number | null }} status of the upload */
  #show({ figure, rest = "", share }) {
    const isBusy = this.upload.isRunning;
    setTexts(this.form, { figure, rest });
    /** @type {HTMLProgressElement} */ (element(this.form, "progress")).value = share ?? 0;
    element(this.form, "[data-transfer]").hidden = !isBusy;
    element(this.form, "[data-send]").hidden = isBusy;
    this.input.disabled = isBusy;
    setText(this.form, ".field__error", "");
    this.input.removeAttribute("aria-invalid");
  }
}
