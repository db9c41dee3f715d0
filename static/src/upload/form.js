/**
 * The upload page: a row for each file, which uploads while its details are filled in. Here is what
 * concerns all rows: choosing files, the overall bar, publishing all, leaving the page.
 */

import { Announcer } from "./announcer.js";
import { Batch } from "./batch.js";
import { element, stamp } from "./dom.js";
import { watchDropZone } from "./drop-zone.js";
import { contentTypeOf } from "./media-type.js";
import { Preflight } from "./preflight.js";
import { Row } from "./row.js";
import { savedUploads } from "./saved.js";
import { abandon, askProgress } from "./unfinished.js";
import { unsuitable } from "./words.js";

const RESTORE_AGAIN_MS = 1_500;

/** @type {import("../lifecycle.js").Behaviour} */
export const uploadForm = {
  selector: "[data-upload-form]",
  start: (root, signal) => new UploadPage(root, signal),
};

class UploadPage {
  /** @type {Row[]} */
  #rows = [];
  #number = 1;
  /** Ids of uploads of earlier visits. @type {Set<string>} */
  #restored = new Set();

  /**
   * @param {HTMLElement} root
   * @param {AbortSignal} signal
   */
  constructor(root, signal) {
    this.root = root;
    this.drop = element(root, "[data-drop]");
    this.input = element(this.drop, "input");
    this.list = element(root, "[data-rows]");
    this.announcer = new Announcer(element(root, "[data-upload-live]"));
    this.batch = new Batch(element(root, "[data-batch]"), this.announcer);
    this.surroundings = this.#surroundings();
    this.#adopt(element(this.list, "[data-row]"));
    this.#listen(signal);
    this.#restore();
    // A page that has just been left may hold on to its uploads for a moment.
    const again = setTimeout(() => this.#restore(), RESTORE_AGAIN_MS);
    signal.addEventListener("abort", () => clearTimeout(again));
    root.dataset.ready = "";
  }

  /** @returns {import("./row.js").Surroundings} */
  #surroundings() {
    const { dataset } = this.root;
    const urls = {
      presign: dataset.presignUrl ?? "",
      uploads: dataset.uploadsUrl ?? "",
      storage: dataset.storageUrl ?? "",
      publish: dataset.publishUrl ?? "",
      video: dataset.videoUrl ?? "",
    };
    return {
      urls,
      limits: {
        size_bytes: Number(dataset.maxSizeBytes),
        duration_s: Number(dataset.maxDurationS),
        pixels: Number(dataset.maxPixels),
      },
      preflight: new Preflight(dataset.preflightUrl ?? ""),
      announcer: this.announcer,
      askProgress: (saved) => askProgress(urls.uploads, saved),
      abandon: (saved) => abandon(urls.uploads, saved),
      changed: () => this.#changed(),
      isAlone: (row) => this.#isAlone(row),
      remove: (row) => this.#remove(row),
      copy: (row) => this.#copy(row),
    };
  }

  /** @param {AbortSignal} signal */
  #listen(signal) {
    watchDropZone(this.drop, (files) => this.#add(files), signal);
    element(this.root, "[data-action=publish-all]").addEventListener(
      "click",
      () => this.#publishAll(),
      { signal },
    );
    // Nothing chosen yet: what is typed may stay, but there is nothing to publish.
    this.root.addEventListener("submit", () => this.#askForFile(), { signal });
    window.addEventListener("beforeunload", (event) => this.#beforeUnload(event), { signal });
    window.addEventListener("pagehide", () => this.#save(), { signal });
    signal.addEventListener("abort", () => this.#stop());
  }

  /** @param {HTMLElement} element @returns {Row} */
  #adopt(element) {
    const row = new Row(element, this.surroundings);
    this.#rows.push(row);
    return row;
  }

  #newRow() {
    this.#number += 1;
    const copy = stamp(this.root, "[data-row-template]", String(this.#number));
    this.list.append(copy);
    return this.#adopt(copy);
  }

  /** Offers what earlier visits left unfinished. */
  async #restore() {
    const kept = await savedUploads();
    // Where there are no locks, this page's own uploads are among them.
    const own = new Set(this.#rows.map((row) => row.source.id));
    const found = kept.filter(({ id }) => !this.#restored.has(id) && !own.has(id));
    const [first] = this.#rows;
    if (found.length && first?.source.isEmpty && !first.holdsWork) this.#drop(first);
    for (const saved of found) {
      this.#restored.add(saved.id);
      this.#newRow().restore(saved);
    }
    this.#changed();
  }

  /** @param {File[]} files */
  async #add(files) {
    const faults = [];
    const taken = [];
    for (const file of files) {
      const contentType = contentTypeOf(file);
      const fault = this.#faultOf(file, contentType);
      if (fault || !contentType) faults.push(fault);
      else {
        await this.#rowFor(file).then((row) => row.take(file, contentType));
        taken.push(file.name);
      }
    }
    this.#showFaults(faults);
    if (taken.length) {
      const what = taken.length > 1 ? `${taken.length} files` : taken[0];
      this.announcer.say(`Uploading ${what}.`);
    }
    this.#changed();
  }

  /**
   * @param {File} file
   * @param {string | null} contentType
   */
  #faultOf(file, contentType) {
    if (this.#rows.some((row) => !row.isPublished && row.source.holds(file)))
      return `“${file.name}” is in the list already.`;
    return unsuitable(file, contentType, this.surroundings.limits.size_bytes);
  }

  /** @param {File} file @returns {Promise<Row>} the one that waits for it, the empty one, or new */
  async #rowFor(file) {
    for (const row of this.#rows) if (await row.source.awaits(file)) return row;
    return this.#rows.find((row) => row.source.isEmpty) ?? this.#newRow();
  }

  /** @param {string[]} faults */
  #showFaults(faults) {
    const lines = faults.map((fault) => {
      const line = document.createElement("p");
      line.textContent = fault;
      return line;
    });
    element(this.root, "#file-error").replaceChildren(...lines);
    if (faults.length) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
    for (const fault of faults) this.announcer.say(fault);
  }

  #askForFile() {
    if (!this.#rows.every((row) => row.source.isEmpty)) return;
    this.#showFaults(["Choose the video file to publish."]);
    this.input.focus();
  }

  #publishAll() {
    const first = this.#rows
      .filter((row) => row.isPublishable && !row.wantsPublish)
      .map((row) => row.submit())
      .find((input) => input !== null);
    first?.focus();
  }

  /** @param {Row} row whose categories and tags all others get */
  #copy(row) {
    const { categoryIds, tags } = row.fields.read();
    const others = this.#rows.filter((other) => other !== row && !other.isPublished);
    for (const other of others) other.setDetails({ categoryIds, tags });
    const count = others.length === 1 ? "the other video" : `${others.length} other videos`;
    this.announcer.say(`Categories and tags are used for ${count}, too.`);
  }

  /** @param {Row} row */
  #isAlone(row) {
    return this.#rows.every(
      (other) => other === row || other.source.isDormant || other.source.isEmpty,
    );
  }

  /** @param {Row} row that has given up its file */
  #remove(row) {
    const at = this.#rows.indexOf(row);
    // The last one stays, and so does what was typed where no other file shares the page.
    if (this.#rows.length > 1 && !(this.#isAlone(row) && row.holdsWork)) this.#drop(row);
    const next = this.#rows[Math.min(at, this.#rows.length - 1)];
    if (next && !next.source.isEmpty) next.view.panel.focus();
    else this.input.focus();
    this.#changed();
  }

  /** @param {Row} row */
  #drop(row) {
    row.close();
    row.root.remove();
    this.#rows = this.#rows.filter((other) => other !== row);
  }

  #changed() {
    this.batch.show(this.#rows.filter((row) => row.isCounted));
    const others = this.#rows.filter((row) => !row.isPublished).length;
    for (const row of this.#rows) row.view.showCompany(this.#isAlone(row), others > 1);
    this.root.classList.toggle("upload--several", this.#rows.length > 1);
    this.root.classList.toggle(
      "upload--filled",
      this.#rows.some((row) => !row.source.isEmpty),
    );
  }

  /** @param {BeforeUnloadEvent} event */
  #beforeUnload(event) {
    if (this.#rows.some((row) => row.holdsWork)) event.preventDefault();
  }

  #save() {
    for (const row of this.#rows) row.details.save();
  }

  #stop() {
    this.#save();
    this.surroundings.preflight.stop();
    for (const row of this.#rows) row.close();
  }
}
