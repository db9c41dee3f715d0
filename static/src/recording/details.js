/**
 * Details of a recorded video, by the form and the store of the upload page: to them a recording is
 * an upload that has arrived, with a first request to publish that they repeat and change.
 */

import { announce, closest, element } from "../dom.js";
import { SIGNED_IN } from "../people/sign-in-again.js";
import * as is from "../publishing/selectors.js";
import { Store } from "../publishing/store.js";
import { DetailsView } from "../publishing/views.js";

/** @typedef {import("../publishing/upload.js").Upload} Upload */
/** @typedef {import("../publishing/upload.js").Details} Details */

export class DetailsForm {
  #stop = new AbortController();
  /** @type {Store | null} */
  #store = null;

  /**
   * @param {HTMLElement} root @param {import("../publishing/store.js").Urls} urls
   * @param {(title: string) => void} onPublished @param {AbortSignal} signal
   */
  constructor(root, urls, onPublished, signal) {
    this.urls = urls;
    this.onPublished = onPublished;
    this.signal = signal;
    this.button = element(root, "[data-action=publish]");
    this.form = /** @type {HTMLFormElement} */ (element(root, "[data-details]"));
    this.view = new DetailsView(this.form);
    this.form.addEventListener("submit", (event) => event.preventDefault(), { signal });
    this.form.addEventListener("input", ({ target }) => this.#read(target), { signal });
    const signedIn = () => this.#store?.dispatch({ type: "signedIn" });
    document.addEventListener(SIGNED_IN, signedIn, { signal });
  }

  /** @returns {Upload | undefined} */
  get #upload() {
    return this.#store?.state.uploads[0];
  }

  /** Whether leaving the page would lose typed details. */
  get holdsWork() {
    return Boolean(this.#upload && is.holdsWork(this.#upload));
  }

  get video() {
    return this.#upload?.video ?? null;
  }

  get categoryIds() {
    return this.#upload?.details.categoryIds ?? [];
  }

  /** @param {Element} element */
  contains(element) {
    return this.form.contains(element);
  }

  /**
   * Show the form for a recording that was sent.
   * @param {import("./recording.js").Recording} recording @param {number} size_bytes
   * @param {Details} details
   */
  open({ saved }, size_bytes, details) {
    this.#stop = new AbortController();
    const signal = AbortSignal.any([this.signal, this.#stop.signal]);
    const limits = { size_bytes: 0, duration_s: 0, pixels: 0, left: null };
    const page = { urls: this.urls, limits, blank: details };
    this.#store = new Store(page, (...states) => this.#draw(...states), signal);
    const { key, name: fileName, request, started_at: saved_at } = saved;
    const sizes = { size_bytes, file_bytes: size_bytes };
    const file = { fileName, ...sizes, contentType: "video/mp4", fingerprint: "", picture: "" };
    const asItIs = { repackedFrom: null, trim: null, still: "" };
    // Without an id it isn't saved for the upload page.
    const upload = { id: "", key, ...file, ...asItIs, isStored: true, details, request, saved_at };
    this.#store.dispatch({ type: "restored", saved: [upload] });
  }

  close() {
    this.#stop.abort();
    this.#store = null;
    this.form.hidden = true;
  }

  /** Publish the video with these details. */
  submit() {
    this.#read(null);
    this.#store?.dispatch({ type: "submitted" });
  }

  /** @param {EventTarget | null} target field that was edited */
  #read(target) {
    const number = this.#upload?.number ?? 0;
    const pointer = closest(target, "[data-field]")?.dataset.field ?? "";
    this.#store?.dispatch({ type: "edited", number, details: this.view.read(), pointer });
  }

  /**
   * @param {import("../publishing/state.js").State} state
   * @param {import("../publishing/state.js").State} before
   */
  #draw(state, before) {
    this.view.draw(state);
    const [upload] = state.uploads;
    this.button.setAttribute("aria-disabled", String(Boolean(upload?.publishing)));
    if (state.focus?.target === "fault") this.view.focusFault();
    for (const message of state.announcements) announce(message);
    if (!upload?.video || before.uploads[0]?.publishing === "published") return;
    if (upload.publishing === "published") this.onPublished(upload.video.title);
  }
}
