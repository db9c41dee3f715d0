/**
 * The upload page: a row for each file, which uploads while its details are filled in. Everything
 * shown is drawn from the store's state, and everything done is told to it as an event.
 */

import { askAgain, SIGNED_IN } from "../accounts/sign-in-again.js";
import { element } from "../dom.js";
import { RowView, setText, stamp } from "./row-view.js";
import * as is from "./selectors.js";
import { Store } from "./store.js";
import { NO_DETAILS } from "./upload.js";
import { batchOf } from "./words.js";

/** What is said to screen readers within this time is said at once. */
const GATHER_MS = 300;

/** @typedef {import("./state.js").State} State */

/** @type {import("../lifecycle.js").Start} */
export const startUploadPage = (root, signal) => new UploadPage(root, signal);

class UploadPage {
  /** @type {Map<number, RowView>} by number */
  #rows = new Map();
  /** @type {string[]} */
  #unsaid = [];

  /** @param {HTMLElement} root @param {AbortSignal} signal */
  constructor(root, signal) {
    this.root = root;
    this.signal = signal;
    this.drop = element(root, "[data-drop]");
    this.input = /** @type {HTMLInputElement} */ (element(this.drop, "input"));
    this.list = element(root, "[data-rows]");
    this.batch = element(root, "[data-batch]");
    const first = this.#adopt(1, element(this.list, "[data-row]"));
    this.store = new Store(settingsOf(root, first), signal);
    this.store.subscribe((state, before) => this.#draw(state, before));
    this.#listen();
    this.store.restore();
    root.dataset.ready = "";
  }

  #listen() {
    const { store, list, signal } = this;
    acceptDrops(this.drop, (files) => store.choose(files), signal);
    const take = () => takeFiles(this.input, (files) => store.choose(files));
    this.input.addEventListener("change", take, { signal });
    // Someone may have been faster than this script.
    take();
    list.addEventListener("click", (event) => this.#pressed(event), { signal });
    list.addEventListener("input", (event) => this.#edited(event), { signal });
    list.addEventListener("change", (event) => this.#fileChosen(event), { signal });
    list.addEventListener("submit", (event) => this.#submitted(event), { signal });
    element(this.batch, "button").addEventListener("click", () => this.#submit(), { signal });
    const ask = (/** @type {Event} */ event) => {
      if (store.state.uploads.some(is.holdsWork)) event.preventDefault();
    };
    window.addEventListener("beforeunload", ask, { signal });
    document.addEventListener(SIGNED_IN, () => store.dispatch({ type: "signedIn" }), { signal });
  }

  /** @param {Event} event */
  #pressed({ target }) {
    const action = closest(target, "[data-action]")?.getAttribute("data-action");
    const type = /** @type {"remove"} */ (action === "discard" ? "remove" : action);
    if (!action) return;
    askAgain();
    this.store.dispatch({ type, number: rowNumber(target) });
  }

  /** @param {Event} event */
  #edited({ target }) {
    const number = rowNumber(target);
    const pointer = closest(target, "[data-field]")?.getAttribute("data-field") ?? "";
    const details = this.#rows.get(number)?.read();
    if (details) this.store.dispatch({ type: "edited", number, details, pointer });
  }

  /** An unfinished upload gets its file. @param {Event} event */
  #fileChosen({ target }) {
    if (!(target instanceof HTMLInputElement) || target.type !== "file") return;
    const asking = is.uploadOf(this.store.state, rowNumber(target));
    takeFiles(target, (files) => this.store.choose(files, asking));
  }

  /** @param {Event} event */
  #submitted(event) {
    event.preventDefault();
    this.#submit(rowNumber(event.target));
  }

  /** @param {number} [number] of the row; all without one */
  #submit(number) {
    askAgain();
    // Browsers fill in fields without an event when they restore a page.
    for (const [number, view] of this.#rows) {
      this.store.dispatch({ type: "edited", number, details: view.read(), pointer: "" });
    }
    this.store.dispatch({ type: "submitted", number });
  }

  /** @param {State} state @param {State} before */
  #draw(state, before) {
    const { uploads, destination } = state;
    for (const [number, view] of this.#rows) {
      if (is.uploadOf(state, number)) continue;
      view.root.remove();
      this.#rows.delete(number);
    }
    for (const upload of uploads) {
      const { number } = upload;
      const add = () => this.#adopt(number, stamp(this.root, "[data-row-template]", number));
      (this.#rows.get(number) ?? add()).draw(upload, is.uploadOf(before, number), state);
    }
    this.root.classList.toggle("upload--several", uploads.length > 1);
    this.root.classList.toggle(
      "upload--filled",
      uploads.some((it) => it.phase !== "empty"),
    );
    if (state.fileFaults !== before.fileFaults) this.#drawFaults(state.fileFaults);
    this.#drawBatch(state);
    if (state.focus) this.#focus(state.focus);
    this.#say(state.news);
    if (destination && !before.destination) {
      const url = this.root.dataset.videoUrl ?? "";
      location.assign(url.replace("VIDEO_ID", encodeURIComponent(destination)));
    }
  }

  /** @param {number} number @param {HTMLElement} row */
  #adopt(number, row) {
    const view = new RowView(row, this.root.dataset.videoUrl ?? "");
    if (!row.isConnected) this.list.append(row);
    this.#rows.set(number, view);
    return view;
  }

  /** @param {string[]} faults */
  #drawFaults(faults) {
    const lines = faults.map((fault) => {
      const line = document.createElement("p");
      line.textContent = fault;
      return line;
    });
    element(this.root, "#file-error").replaceChildren(...lines);
    if (faults.length) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
  }

  /** @param {State} state */
  #drawBatch(state) {
    const { isHidden, share, percent, count, rest, canPublish, isWaiting } = batchOf(state);
    this.batch.hidden = isHidden;
    if (isHidden) return;
    const button = element(this.batch, "button");
    /** @type {HTMLProgressElement} */ (element(this.batch, "progress")).value = share;
    setText(this.batch, "[data-percent]", percent);
    setText(this.batch, "[data-count]", count);
    setText(this.batch, "[data-rest]", rest);
    if (!canPublish && document.activeElement === button) this.batch.focus();
    button.hidden = !canPublish;
    button.setAttribute("aria-disabled", String(isWaiting));
    setText(this.batch, "button", isWaiting ? "Waiting…" : "Publish all");
  }

  /** @param {NonNullable<State["focus"]>} focus */
  #focus({ number, target }) {
    const view = this.#rows.get(number ?? 0);
    (view ? (target === "fault" ? view.atFault : view.panel) : this.input).focus();
  }

  /** In turn and without flooding. @param {string[]} news */
  #say(news) {
    const isIdle = this.#unsaid.length === 0;
    this.#unsaid.push(...news.filter((words) => !this.#unsaid.includes(words)));
    if (!isIdle || !this.#unsaid.length) return;
    setTimeout(() => {
      element(this.root, "[data-upload-live]").textContent = this.#unsaid.join(" ");
      this.#unsaid = [];
    }, GATHER_MS);
  }
}

/** @param {HTMLElement} root @param {RowView} first @returns {import("./store.js").Page} */
function settingsOf({ dataset }, first) {
  return {
    urls: /** @type {import("./store.js").Urls} */ ({ ...dataset }),
    limits: {
      size_bytes: Number(dataset.maxSizeBytes),
      duration_s: Number(dataset.maxDurationS),
      pixels: Number(dataset.maxPixels),
      left: {
        videos: Number(dataset.leftVideos || Number.POSITIVE_INFINITY),
        size_bytes: Number(dataset.leftBytes || Number.POSITIVE_INFINITY),
      },
    },
    details: first.read(),
    blank: { ...NO_DETAILS, visibility: dataset.defaultVisibility ?? "" },
  };
}

/** @param {EventTarget | null} target @param {string} selector */
function closest(target, selector) {
  return target instanceof Element ? target.closest(selector) : null;
}

/** @param {EventTarget | null} target in a row */
function rowNumber(target) {
  return Number(closest(target, "[data-row]")?.getAttribute("data-row"));
}

/** @param {HTMLInputElement} input @param {(files: File[]) => void} onFiles */
function takeFiles(input, onFiles) {
  const files = [...(input.files ?? [])];
  // Emptied, so that choosing the same file again counts as a change.
  input.value = "";
  if (files.length) onFiles(files);
}

/**
 * A near miss of the drop zone must not make the browser leave the page to open the file.
 * @param {HTMLElement} zone
 * @param {(files: File[]) => void} onFiles
 * @param {AbortSignal} signal
 */
function acceptDrops(zone, onFiles, signal) {
  /** @param {DragEvent} event */
  const follow = (event) => {
    if (event.type === "dragleave") {
      if (!event.relatedTarget) zone.classList.remove("drop--over");
      return;
    }
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    zone.classList.toggle("drop--over", event.type === "dragover");
    const files = event.type === "drop" ? [...event.dataTransfer.files] : [];
    if (files.length) onFiles(files);
  };
  for (const type of /** @type {const} */ (["dragover", "dragleave", "drop"])) {
    window.addEventListener(type, follow, { signal });
  }
}
