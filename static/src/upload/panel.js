/** Shows one upload: file, progress, figures, and what went wrong with what to do about it. */

import { formatSize, formatTimeLeft } from "../format.js";
import { element } from "./dom.js";
import { Rate } from "./rate.js";

/** @typedef {{ title: string, text: string, canRetry: boolean }} Trouble */

export class Panel {
  #total_bytes = 0;
  #rate = new Rate(0);
  #announced = 0;

  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.drop = element(form, "[data-drop]");
    this.root = element(form, "[data-transfer]");
    this.meter = /** @type {HTMLProgressElement} */ (element(this.root, "progress"));
    this.live = element(form, "[data-upload-live]");
  }

  /** @param {File} file */
  showFile(file) {
    this.#text("[data-name]", file.name);
    this.#text("[data-size]", formatSize(file.size));
    this.#total_bytes = file.size;
    this.drop.hidden = true;
    this.root.hidden = false;
    this.root.focus();
  }

  showStart() {
    this.#state("sending");
    this.#rate = new Rate(performance.now());
    this.#announced = 0;
    this.meter.removeAttribute("value");
    this.#figures("Starting…", "");
    this.#buttons({ cancel: true });
    this.#say(`Uploading ${element(this.root, "[data-name]").textContent}`);
  }

  /** @param {number} sent_bytes */
  showProgress(sent_bytes) {
    const total = this.#total_bytes;
    const sent = Math.min(sent_bytes, total);
    const percent = Math.floor((sent / total) * 100);
    const speed = this.#rate.update(sent, performance.now());
    this.meter.value = sent / total;
    const parts = [`${formatSize(sent)} of ${formatSize(total)}`];
    if (sent === total) parts.push("finishing…");
    else if (speed) parts.push(`${formatSize(speed)}/s`, formatTimeLeft((total - sent) / speed));
    this.#figures(`${percent} %`, parts.join(" · "));
    this.#sayQuarter(percent);
  }

  showSent() {
    this.#state("sent");
    this.meter.value = 1;
    this.#figures("Uploaded", "");
    this.#buttons({ replace: true });
    this.#say("Upload finished.");
  }

  /** @param {Trouble} trouble */
  showTrouble({ title, text, canRetry }) {
    this.#state("failed");
    this.#text("[data-trouble-title]", title);
    this.#text("[data-trouble-text]", text);
    this.#buttons({ retry: canRetry, replace: true });
    element(this.root, "[data-trouble]").hidden = false;
    element(this.root, "[data-progress]").hidden = true;
  }

  /** @param {number} seconds until the portal is asked again by itself */
  showWait(seconds) {
    this.#text("[data-trouble-text]", `Trying again in ${seconds} s.`);
  }

  /** Back to choosing a file. */
  reset() {
    this.root.hidden = true;
    this.drop.hidden = false;
    this.live.textContent = "";
    element(this.drop, "input").focus();
  }

  /** @param {import("./upload.js").UploadState} state */
  #state(state) {
    element(this.root, "[data-state]").dataset.state = state;
    element(this.root, "[data-trouble]").hidden = true;
    element(this.root, "[data-progress]").hidden = false;
  }

  /** @param {{ cancel?: boolean, retry?: boolean, replace?: boolean }} shown */
  #buttons({ cancel = false, retry = false, replace = false }) {
    const focused = document.activeElement;
    for (const [name, isShown] of Object.entries({ cancel, retry, replace })) {
      element(this.root, `[data-action=${name}]`).hidden = !isShown;
    }
    // A button that went away must not take the keyboard's place in the page with it.
    if (focused instanceof HTMLElement && focused.hidden) this.root.focus();
  }

  /**
   * @param {string} percent
   * @param {string} rest
   */
  #figures(percent, rest) {
    this.#text("[data-percent]", percent);
    this.#text("[data-rest]", rest);
  }

  /** @param {number} percent */
  #sayQuarter(percent) {
    const quarter = Math.floor(percent / 25) * 25;
    if (quarter <= this.#announced || quarter === 100) return;
    this.#announced = quarter;
    this.#say(`${quarter} % uploaded`);
  }

  /** @param {string} words for screen readers */
  #say(words) {
    this.live.textContent = words;
  }

  /**
   * @param {string} selector
   * @param {string} words
   */
  #text(selector, words) {
    element(this.root, selector).textContent = words;
  }
}
