/** What several rows have in common: the overall bar, its figures, and publishing all of them. */

import { formatSize, formatTimeLeft } from "../format.js";
import { element } from "./dom.js";
import { Overall } from "./overall.js";
import { Rate } from "./rate.js";

export class Batch {
  #overall = new Overall();
  #rate = new Rate(0, performance.now());
  #isMeasuring = false;
  #announced = 0;

  /**
   * @param {HTMLElement} root
   * @param {import("./announcer.js").Announcer} announcer
   */
  constructor(root, announcer) {
    this.root = root;
    this.announcer = announcer;
    this.meter = /** @type {HTMLProgressElement} */ (element(root, "progress"));
    this.button = element(root, "button");
  }

  /** @param {import("./row.js").Row[]} rows those with a file */
  show(rows) {
    const loads = rows.flatMap((row) => row.source.load ?? []);
    const sent_bytes = loads.reduce((sum, load) => sum + load.sent_bytes, 0);
    const total_bytes = loads.reduce((sum, load) => sum + load.total_bytes, 0);
    const sent = this.#overall.update(sent_bytes, total_bytes);
    this.#announce(sent, loads.length);
    this.root.hidden = rows.length < 2;
    if (this.root.hidden) return;
    // What an earlier visit has sent adds no bytes, but is there.
    const share = rows.every((row) => row.source.isSent) ? 1 : sent;
    this.meter.value = share;
    this.#text("[data-percent]", share < 1 ? `${Math.floor(share * 100)} %` : "Uploaded");
    this.#text("[data-count]", countInWords(rows));
    this.#text("[data-rest]", this.#rest(rows, sent_bytes, total_bytes));
    this.#showButton(rows);
  }

  /**
   * @param {import("./row.js").Row[]} rows
   * @param {number} sent_bytes
   * @param {number} total_bytes
   */
  #rest(rows, sent_bytes, total_bytes) {
    const isSending = rows.some((row) => row.source.isSending);
    const speed = this.#speed(isSending, sent_bytes);
    if (sent_bytes >= total_bytes) return "";
    const parts = ["", `${formatSize(sent_bytes)} of ${formatSize(total_bytes)}`];
    if (speed) parts.push(formatTimeLeft((total_bytes - sent_bytes) / speed));
    return parts.join(" · ");
  }

  /**
   * @param {boolean} isSending
   * @param {number} sent_bytes
   */
  #speed(isSending, sent_bytes) {
    const now_ms = performance.now();
    if (isSending && !this.#isMeasuring) this.#rate = new Rate(sent_bytes, now_ms);
    this.#isMeasuring = isSending;
    return isSending ? this.#rate.update(sent_bytes, now_ms) : null;
  }

  /** @param {import("./row.js").Row[]} rows */
  #showButton(rows) {
    const open = rows.filter((row) => row.isPublishable);
    const areWaiting = open.every((row) => row.wantsPublish);
    if (open.length === 0 && document.activeElement === this.button) this.root.focus();
    this.button.hidden = open.length === 0;
    this.button.setAttribute("aria-disabled", String(areWaiting));
    this.button.textContent = areWaiting ? "Waiting…" : "Publish all";
  }

  /**
   * Quarters alone, whatever the number of files.
   * @param {number} share
   * @param {number} count
   */
  #announce(share, count) {
    const quarter = Math.floor(share * 4) * 25;
    if (quarter < this.#announced) this.#announced = quarter;
    if (quarter === this.#announced) return;
    this.#announced = quarter;
    if (quarter < 100) this.announcer.say(`${quarter} % uploaded.`);
    else if (count > 1) this.announcer.say(`All ${count} files are uploaded.`);
  }

  /**
   * @param {string} selector
   * @param {string} words
   */
  #text(selector, words) {
    const place = element(this.root, selector);
    if (place.textContent !== words) place.textContent = words;
  }
}

/** @param {import("./row.js").Row[]} rows */
function countInWords(rows) {
  const published = rows.filter((row) => row.isPublished).length;
  if (published === rows.length) return `All ${rows.length} videos are published.`;
  if (published) return `${published} of ${rows.length} published`;
  const sent = rows.filter((row) => row.source.isSent).length;
  return `${sent} of ${rows.length} uploaded`;
}
