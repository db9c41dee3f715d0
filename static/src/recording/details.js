/**
 * Details of a recorded video, by the form and the store of the upload page: to them a recording is
 * an upload that has arrived, with a first request to publish that they repeat and change.
 */

import { element } from "../dom.js";
import * as is from "../publishing/selectors.js";
import { Store } from "../publishing/store.js";
import { DetailsView } from "../publishing/views.js";

/** @typedef {import("../publishing/store.js").Urls} Urls */
/** @typedef {import("../publishing/state.js").State} State */
/** @typedef {import("../publishing/upload.js").Details} Details */
/** @typedef {import("../publishing/publication.js").Video} Video */

export class DetailsForm {
  /** @type {Store | null} */
  #store = null;

  /** @param {HTMLElement} root @param {Urls} urls */
  constructor(root, urls) {
    this.urls = urls;
    this.button = element(root, "[data-action=publish]");
    this.form = /** @type {HTMLFormElement} */ (element(root, "[data-details]"));
    this.view = new DetailsView(this.form);
  }

  get #upload() {
    return this.#store?.state.uploads[0];
  }

  /** Whether leaving the page would lose typed details. */
  get holdsWork() {
    return Boolean(this.#upload && is.holdsWork(this.#upload));
  }

  get categoryIds() {
    return this.#upload?.details.categoryIds ?? [];
  }

  /** @param {Element} element */
  contains(element) {
    return this.form.contains(element);
  }

  /**
   * Show the form for a recording that was sent, until its video is published.
   * @param {import("./recording.js").Recording} recording @param {number} size_bytes
   * @param {Details} details
   * @param {typeof import("../publishing/publication.js").publish} publish
   * @param {AbortSignal} signal closes the form
   * @returns {Promise<Video | null>} null if the form was closed
   */
  fill({ saved }, size_bytes, details, publish, signal) {
    const limits = { size_bytes: 0, duration_s: 0, pixels: 0, left: null };
    const page = { urls: this.urls, limits, blank: details };
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        this.#store = null;
        this.form.hidden = true;
        resolve(null);
      });
      const handleChange = (/** @type {State} */ state) => {
        this.#draw(state);
        const [upload] = state.uploads;
        if (upload?.publishing === "published") resolve(upload.video);
      };
      this.#store = new Store(page, handleChange, signal, publish);
      this.view.listen(this.#store, signal);
      const { key, name: fileName, request, started_at: saved_at } = saved;
      const sizes = { size_bytes, file_bytes: size_bytes };
      const file = { fileName, ...sizes, contentType: "video/mp4", fingerprint: "", picture: "" };
      const asItIs = { repackedFrom: null, trim: null, still: "" };
      // Without an id it isn't saved for the upload page.
      const upload = {
        id: "",
        key,
        ...file,
        ...asItIs,
        isStored: true,
        details,
        request,
        saved_at,
      };
      this.#store.dispatch({ type: "restored", saved: [upload] });
    });
  }

  /** Publish the video with these details. */
  submit() {
    if (this.#store) this.view.submit(this.#store);
  }

  /** @param {State} state */
  #draw(state) {
    this.view.draw(state);
    this.button.setAttribute("aria-disabled", String(Boolean(state.uploads[0]?.publishing)));
    if (state.focus?.target === "fault") this.view.focusFault();
  }
}
