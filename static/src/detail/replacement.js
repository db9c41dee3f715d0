/**
 * Section that replaces a video's file: uploads the chosen file to storage as the upload page does,
 * then asks the portal to replace the file, and shows the progress of its processing.
 */

import { requestJson } from "../accounts/session.js";
import { allowSignInPrompt } from "../accounts/sign-in-again.js";
import { announce, confirmLeaving, element, setText, setTexts } from "../dom.js";
import { contentTypeOf, unsuitableReason } from "../preflight/findings.js";
import { Refused } from "../requests.js";
import { Api } from "../upload/api.js";
import { describeTransferError, retryTransfer } from "../upload/failures.js";
import { isRunning } from "../upload/selectors.js";
import { statusOf } from "../upload/texts.js";
import { Transfer } from "../upload/transfer.js";
import { newUpload, withFile, withTransferUpdate } from "../upload/upload.js";

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
  /** Transfer of the chosen file, which continues after a failure. @type {Transfer | null} */
  #transfer = null;
  #stop = new AbortController();
  #upload = newUpload(1);

  /** @param {HTMLFormElement} form @param {AbortSignal} signal */
  constructor(form, signal) {
    this.form = form;
    this.input = /** @type {HTMLInputElement} */ (element(form, "input[type=file]"));
    this.cancel = element(form, "[data-cancel]");
    const { presignUrl = "", uploadsUrl = "", publishUrl = "" } = form.dataset;
    this.api = new Api({ presignUrl, uploadsUrl, publishUrl });
    form.hidden = false;
    const handleSubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      if (!isRunning(this.#upload)) this.#replace();
    };
    form.addEventListener("submit", handleSubmit, { signal });
    this.cancel.addEventListener("click", () => this.#cancel(), { signal });
    confirmLeaving(() => isRunning(this.#upload), signal);
    signal.addEventListener("abort", () => this.#stop.abort());
  }

  async #replace() {
    const file = this.input.files?.[0];
    if (!file) return;
    const contentType = contentTypeOf(file);
    const fault = unsuitableReason(file, contentType, Number(this.form.dataset.largest));
    if (!contentType || fault) return this.#showFault(fault);
    allowSignInPrompt();
    if (this.#transfer?.file !== file) {
      this.#transfer = new Transfer({ file, contentType, key: "", fingerprint: "" }, this.api);
    }
    const transfer = this.#transfer;
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.#show({ ...withFile(newUpload(1), { file, id: "", saved_at: 0 }), phase: "sending" });
    this.cancel.focus();
    announce(`Uploading ${file.name}.`);
    try {
      await transfer.run((update) => {
        if (!signal.aborted) {
          this.#show(withTransferUpdate(this.#upload, update, performance.now()));
        }
      }, signal);
      const body = { key: transfer.key, fileName: file.name };
      const send = () => requestJson("POST", this.api.urls.publishUrl, { body, signal });
      await retryTransfer(send, { signal });
      this.#show({ ...this.#upload, phase: "sent" });
      this.#announceBegin();
    } catch (error) {
      if (signal.aborted) return;
      const failure = /** @type {Error} */ (error);
      const [title, text] = describeTransferError(failure);
      this.#show({ ...this.#upload, phase: "failed", failure });
      this.#showFault(`${title}. ${text}`);
    }
  }

  /** Let the section show the replacement instead of this form. */
  #announceBegin() {
    this.form.dispatchEvent(new Event("replacement-begun", { bubbles: true }));
  }

  #cancel() {
    this.#stop.abort();
    if (this.#transfer?.key)
      this.api.remove(this.#transfer.key).catch((error) => {
        // The portal has begun the replacement, which the section now shows. After another error, the
        // portal's janitor removes the data later.
        if (error instanceof Refused && error.status === 409) this.#announceBegin();
      });
    this.#transfer = null;
    this.#show({ ...this.#upload, phase: "cancelled" });
    this.input.focus();
  }

  /** Show why the file is not uploaded. @param {string} fault */
  #showFault(fault) {
    setText(this.form, ".field__error", fault);
    this.input.setAttribute("aria-invalid", "true");
    this.input.focus();
    announce(fault);
  }

  /** Show the state of an upload. @param {import("../upload/upload.js").Upload} upload */
  #show(upload) {
    this.#upload = upload;
    const isBusy = isRunning(upload);
    const { figure, rest = "", share } = statusOf(upload);
    setTexts(this.form, { figure, rest });
    /** @type {HTMLProgressElement} */ (element(this.form, "progress")).value = share ?? 0;
    element(this.form, "[data-transfer]").hidden = !isBusy;
    element(this.form, "[data-send]").hidden = isBusy;
    this.input.disabled = isBusy;
    setText(this.form, ".field__error", "");
    this.input.removeAttribute("aria-invalid");
  }
}
