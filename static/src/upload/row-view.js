/** Shows one row: its file, progress, figures, findings, and what went wrong with what to do. */

import { formatSize, formatTimeLeft } from "../format.js";
import { element, stamp } from "./dom.js";
import { Rate } from "./rate.js";
import { findingInWords } from "./words.js";

/** @typedef {"pause" | "resume" | "retry" | "cancel" | "remove"} Action */
/** @typedef {"file" | "good" | "bad"} Art */

const ACTIONS = /** @type {Action[]} */ (["pause", "resume", "retry", "cancel", "remove"]);

export class RowView {
  #total_bytes = 0;
  #rate = new Rate(0, 0);

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.form = /** @type {HTMLFormElement} */ (element(root, "form"));
    this.panel = element(root, "[data-transfer]");
    this.meter = /** @type {HTMLProgressElement} */ (element(this.panel, "progress"));
    this.button = element(root, "button[type=submit]");
  }

  /** @param {{ name: string, size: number }} file */
  showFile({ name, size }) {
    this.#text("[data-name]", name);
    this.#text("[data-size]", formatSize(size));
    this.#total_bytes = size;
    this.form.setAttribute("aria-label", name);
    this.meter.setAttribute("aria-label", `Upload progress of ${name}`);
    this.meter.removeAttribute("value");
    this.#removeAgain();
    this.showFacts("", []);
    this.panel.hidden = false;
  }

  /** Without a file, as the page was opened. */
  showNothing() {
    this.panel.hidden = true;
    this.form.setAttribute("aria-label", "New video");
  }

  /**
   * @param {string} facts
   * @param {import("./findings.js").Finding[]} findings
   */
  showFacts(facts, findings) {
    this.#text("[data-facts]", facts);
    const list = element(this.panel, "[data-findings]");
    list.replaceChildren(...findings.map(findingItem));
    list.hidden = findings.length === 0;
  }

  /**
   * Where the upload stands, in words beside the bar.
   * @param {import("./states.js").Shown} shown
   */
  showState({ art = "file", figure, rest = "", actions }) {
    this.#art(art);
    element(this.panel, "[data-trouble]").hidden = true;
    element(this.panel, "[data-progress]").hidden = false;
    this.#figures(figure, rest);
    this.#buttons(actions);
  }

  /** Speed is measured from here. @param {number} sent_bytes */
  beginMeasuring(sent_bytes) {
    this.#rate = new Rate(sent_bytes, performance.now());
  }

  /** @param {number} sent_bytes */
  showProgress(sent_bytes) {
    const total = this.#total_bytes;
    const speed = this.#rate.update(sent_bytes, performance.now());
    const parts = [`${formatSize(sent_bytes)} of ${formatSize(total)}`];
    if (speed) parts.push(`${formatSize(speed)}/s`, formatTimeLeft((total - sent_bytes) / speed));
    this.showShare(sent_bytes);
    this.#figures(`${Math.floor((sent_bytes / total) * 100)} %`, parts.join(" · "));
  }

  /** The bar alone. @param {number} sent_bytes */
  showShare(sent_bytes) {
    this.meter.value = sent_bytes / this.#total_bytes;
  }

  /** @param {import("./words.js").Trouble} trouble */
  showTrouble({ title, text, canRetry }) {
    this.#art("bad");
    this.#text("[data-trouble-title]", title);
    this.#text("[data-trouble-text]", text);
    this.#buttons(canRetry ? ["retry", "remove"] : ["remove"]);
    element(this.panel, "[data-trouble]").hidden = false;
    element(this.panel, "[data-progress]").hidden = true;
  }

  /**
   * An upload of another visit, which needs its file again.
   * @param {string} text
   */
  showUnfinished(text) {
    this.#art("file");
    this.#buttons([]);
    element(this.panel, "[data-trouble]").hidden = true;
    element(this.panel, "[data-progress]").hidden = true;
    if (!this.panel.querySelector("[data-again]")) {
      const template = element(this.panel, "[data-again-template]");
      template.before(stamp(this.panel, "[data-again-template]", this.root.dataset.row ?? ""));
    }
    this.#text("[data-again-text]", text);
  }

  #removeAgain() {
    this.panel.querySelector("[data-again]")?.remove();
  }

  /**
   * An upload of another visit that is complete.
   * @param {number} size_bytes
   * @param {import("./states.js").Shown} shown
   */
  showStored(size_bytes, shown) {
    this.#removeAgain();
    this.showShare(size_bytes);
    this.showState(shown);
  }

  /**
   * @param {(file: File) => void} choose called with the file to go on with
   * @param {AbortSignal} signal
   */
  onFile(choose, signal) {
    const watch = (/** @type {Event} */ { target }) => {
      if (!(target instanceof HTMLInputElement) || target.type !== "file") return;
      const file = target.files?.[0];
      // Emptied, so that choosing the same file again counts as a change.
      target.value = "";
      if (file) choose(file);
    };
    this.panel.addEventListener("change", watch, { signal });
  }

  /**
   * @param {(action: string) => void} act
   * @param {AbortSignal} signal
   */
  onAction(act, signal) {
    const watch = (/** @type {Event} */ { target }) => {
      const button = target instanceof Element ? target.closest("[data-action]") : null;
      const action = button?.getAttribute("data-action");
      if (action) act(action);
    };
    this.form.addEventListener("click", watch, { signal });
  }

  /**
   * @param {boolean} isAlone
   * @param {boolean} canCopy
   */
  showCompany(isAlone, canCopy) {
    element(this.panel, "[data-action=remove]").textContent = isAlone
      ? "Choose another file"
      : "Remove";
    element(this.root, "[data-action=copy]").hidden = !canCopy;
  }

  /** Fields that nothing can come of are only in the way. @param {boolean} isHidden */
  hideDetails(isHidden) {
    for (const part of ["details", "end"]) element(this.root, `[data-${part}]`).hidden = isHidden;
  }

  /** @param {{ label: string, isBusy: boolean, words: string }} shown */
  showSubmit({ label, isBusy, words }) {
    this.button.textContent = label;
    this.button.setAttribute("aria-disabled", String(isBusy));
    const state = element(this.root, "[data-submit-state]");
    if (state.textContent !== words) state.textContent = words;
  }

  /** @param {string} message empty to remove */
  showSubmitTrouble(message) {
    const trouble = element(this.root, "[data-submit-trouble]");
    element(trouble, "[data-text]").textContent = message;
    trouble.hidden = !message;
  }

  /**
   * Published: the row shrinks to its file and a link.
   * @param {string} title
   * @param {string} address
   */
  showPublished(title, address) {
    const hadFocus = this.root.contains(document.activeElement);
    const link = /** @type {HTMLAnchorElement} */ (element(this.root, "[data-video]"));
    link.href = address;
    link.textContent = `View “${title}”`;
    element(this.root, "[data-done]").hidden = false;
    this.hideDetails(true);
    for (const part of ["progress", "findings", "trouble"]) {
      element(this.root, `[data-${part}]`).hidden = true;
    }
    this.#art("good");
    this.#buttons([]);
    if (hadFocus) link.focus();
  }

  /** @param {Art} art */
  #art(art) {
    element(this.panel, "[data-art]").dataset.art = art;
  }

  /** @param {Action[]} shown */
  #buttons(shown) {
    const focused = document.activeElement;
    for (const name of ACTIONS) {
      element(this.panel, `[data-action=${name}]`).hidden = !shown.includes(name);
    }
    // A button that went away must not take the keyboard's place in the page with it.
    if (focused instanceof HTMLElement && focused.hidden && this.panel.contains(focused)) {
      this.#successor(focused).focus();
    }
  }

  /** @param {HTMLElement} gone @returns {HTMLElement} */
  #successor(gone) {
    const swap = { pause: "resume", resume: "pause" }[gone.dataset.action ?? ""];
    const other = swap && element(this.panel, `[data-action=${swap}]`);
    return other && !other.hidden ? other : this.panel;
  }

  /**
   * @param {string} percent
   * @param {string} rest
   */
  #figures(percent, rest) {
    this.#text("[data-percent]", percent);
    this.#text("[data-rest]", rest);
  }

  /**
   * @param {string} selector
   * @param {string} words
   */
  #text(selector, words) {
    const place = element(this.panel, selector);
    if (place.textContent !== words) place.textContent = words;
  }
}

/** @param {import("./findings.js").Finding} finding */
function findingItem(finding) {
  const { title, text } = findingInWords(finding);
  const item = document.createElement("li");
  item.className = `finding finding--${finding.weight}`;
  const strong = document.createElement("strong");
  strong.textContent = title;
  item.append(strong, ` ${text}`);
  return item;
}
