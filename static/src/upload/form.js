/**
 * The upload page: the file uploads while the form is filled in, and publishing waits for both.
 * Nothing typed is lost whatever fails.
 */

import { NoAnswer, postJson, Refused } from "../api.js";
import { element } from "./dom.js";
import { watchDropZone } from "./drop-zone.js";
import { Fields } from "./fields.js";
import { contentTypeOf } from "./media-type.js";
import { Panel } from "./panel.js";
import { Upload } from "./upload.js";
import { publishTrouble, uploadTrouble } from "./words.js";

/** Refusals that only another upload of the file can cure. */
const NEEDS_UPLOAD = new Set(["upload_not_found", "key_already_used"]);

/** @type {import("../lifecycle.js").Behaviour} */
export const uploadForm = {
  selector: "form[data-upload-form]",
  start(element, signal) {
    if (element instanceof HTMLFormElement) new UploadForm(element, signal);
  },
};

class UploadForm {
  /** @type {Upload | null} */
  #upload = null;
  /** The editor has pressed Publish; it happens as soon as the file has arrived. */
  #wantsPublish = false;
  #isPublishing = false;
  #isDone = false;
  #prefilledTitle = "";
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #countdown;

  /**
   * @param {HTMLFormElement} form
   * @param {AbortSignal} signal
   */
  constructor(form, signal) {
    this.form = form;
    this.fields = new Fields(form);
    this.panel = new Panel(form);
    this.title = /** @type {HTMLInputElement} */ (element(form, "[name=title]"));
    this.submitState = element(form, "[data-submit-state]");
    this.submitTrouble = element(form, "[data-submit-trouble]");
    this.button = element(form, "button[type=submit]");
    this.#listen(signal);
  }

  /** @param {AbortSignal} signal */
  #listen(signal) {
    const { form } = this;
    watchDropZone(this.panel.drop, (file) => this.#choose(file), signal);
    form.addEventListener("input", (event) => this.fields.edited(event), { signal });
    form.addEventListener("submit", (event) => this.#submit(event), { signal });
    /** @type {[string, () => void][]} */
    const actions = [
      ["cancel", () => this.#discard()],
      ["replace", () => this.#discard()],
      ["retry", () => this.#send()],
    ];
    for (const [name, act] of actions) {
      element(form, `[data-action=${name}]`).addEventListener("click", act, { signal });
    }
    window.addEventListener("beforeunload", (event) => this.#beforeUnload(event), { signal });
    signal.addEventListener("abort", () => this.#stop());
  }

  /** @param {File} file */
  #choose(file) {
    const contentType = contentTypeOf(file);
    const message = !contentType
      ? `“${file.name}” is not an MP4 or QuickTime video. Choose a file ending in .mp4, .m4v or .mov.`
      : file.size === 0
        ? `“${file.name}” is empty. Choose another file.`
        : "";
    if (!contentType || message) {
      this.fields.show([{ pointer: "/file", message }]);
      return;
    }
    this.fields.clear("/file");
    this.#prefillTitle(file.name);
    this.#upload = new Upload(file, contentType, this.#address("presignUrl"));
    this.panel.showFile(file);
    this.#send();
  }

  /** @param {string} fileName */
  #prefillTitle(fileName) {
    if (this.title.value !== this.#prefilledTitle) return;
    this.#prefilledTitle = fileName
      .replace(/\.[^.]+$/, "")
      .replace(/[_\s]+/g, " ")
      .trim();
    this.title.value = this.#prefilledTitle;
    this.fields.clear("/title");
  }

  async #send() {
    const upload = this.#upload;
    if (!upload) return;
    clearInterval(this.#countdown);
    this.panel.showStart();
    this.#showSubmitState();
    try {
      await upload.send((sent_bytes) => {
        if (!upload.cancelled) this.panel.showProgress(sent_bytes);
      });
      if (upload.cancelled) return;
      this.panel.showSent();
      if (this.#wantsPublish) await this.#publish();
    } catch (error) {
      if (!upload.cancelled) this.#uploadFailed(error);
    }
  }

  /** @param {unknown} error */
  #uploadFailed(error) {
    this.panel.showTrouble(uploadTrouble(error));
    this.#showSubmitState();
    if (error instanceof Refused && error.retryAfter_s) {
      this.#retryAfter(error.retryAfter_s, () => this.#send());
    }
  }

  /** Counts down where the editor sees it, then tries again. The button need not wait.
   * @param {number} seconds
   * @param {() => void} retry
   */
  #retryAfter(seconds, retry) {
    let left = seconds;
    this.panel.showWait(left);
    this.#countdown = setInterval(() => {
      left -= 1;
      if (left > 0) this.panel.showWait(left);
      else {
        clearInterval(this.#countdown);
        retry();
      }
    }, 1000);
  }

  #discard() {
    this.#stop();
    this.#upload = null;
    this.#wantsPublish = false;
    this.panel.reset();
    this.#showSubmitState();
  }

  #stop() {
    clearInterval(this.#countdown);
    this.#upload?.cancel();
  }

  /** @param {SubmitEvent} event */
  #submit(event) {
    event.preventDefault();
    if (this.#isPublishing || this.#isDone) return;
    const faults = this.fields.check();
    if (!this.#upload) {
      faults.unshift({ pointer: "/file", message: "Choose the video file to publish." });
    }
    this.#showSubmitTrouble("");
    this.fields.show(faults);
    this.#wantsPublish = faults.length === 0;
    if (this.#wantsPublish && this.#upload?.state === "sent") this.#publish();
    else this.#showSubmitState();
  }

  async #publish() {
    const upload = this.#upload;
    if (!upload) return;
    this.#isPublishing = true;
    this.#showSubmitState();
    try {
      const video = await postJson(this.#address("publishUrl"), {
        ...this.fields.read(),
        fileName: upload.file.name,
        key: upload.key,
      });
      this.#isDone = true;
      location.assign(this.#address("videoUrl").replace("VIDEO_ID", encodeURIComponent(video.id)));
    } catch (error) {
      this.#wantsPublish = false;
      this.#publishFailed(error, upload);
    } finally {
      this.#isPublishing = false;
      this.#showSubmitState();
    }
  }

  /**
   * @param {unknown} error
   * @param {Upload} upload
   */
  #publishFailed(error, upload) {
    if (!(error instanceof Refused || error instanceof NoAnswer)) throw error;
    const faults = error instanceof Refused ? error.faults : [];
    const homeless = this.fields.show(faults);
    const needsUpload = error instanceof Refused && NEEDS_UPLOAD.has(error.code);
    if (needsUpload || homeless.length) {
      upload.state = "failed";
      this.panel.showTrouble({
        title: "This file has to be uploaded again",
        text: homeless.join(" ") || publishTrouble(error),
        canRetry: true,
      });
    }
    if (faults.length && !homeless.length) {
      this.#showSubmitTrouble("Some details need another look; each is marked above.");
    } else if (!needsUpload) this.#showSubmitTrouble(publishTrouble(error));
  }

  /** @param {string} message */
  #showSubmitTrouble(message) {
    element(this.submitTrouble, "[data-text]").textContent = message;
    this.submitTrouble.hidden = !message;
  }

  #showSubmitState() {
    const { button, submitState } = this;
    const isWaiting = this.#wantsPublish && this.#upload?.state === "sending";
    const isBusy = this.#isPublishing || this.#isDone || isWaiting;
    button.setAttribute("aria-disabled", String(isBusy));
    button.textContent = isWaiting
      ? "Waiting for the upload…"
      : isBusy
        ? "Publishing…"
        : "Publish video";
    const words = isWaiting
      ? "Your video is published as soon as the upload finishes. Keep this page open."
      : this.#wantsPublish && this.#upload?.state === "failed"
        ? "The upload needs your attention; publishing goes on after it."
        : "";
    if (submitState.textContent !== words) submitState.textContent = words;
  }

  /** @param {BeforeUnloadEvent} event */
  #beforeUnload(event) {
    // An uploaded file that is not yet published would be lost as well.
    if (this.#upload && !this.#isDone) event.preventDefault();
  }

  /** @param {"presignUrl" | "publishUrl" | "videoUrl"} name */
  #address(name) {
    return this.form.dataset[name] ?? "";
  }
}
