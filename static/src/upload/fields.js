/** One row's fields: what they hold, and the messages beside them. */

import { element } from "./dom.js";

/** The order of the fields on the page; the first one at fault gets the focus. */
const POINTERS = ["/file", "/title", "/description", "/tags", "/categoryIds"];

/** @typedef {{ title: string, description: string, categoryIds: number[], tags: string }} Details */

export class Fields {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
  }

  /** @returns {Details} exactly as typed */
  read() {
    const data = new FormData(this.form);
    return {
      title: String(data.get("title") ?? ""),
      description: String(data.get("description") ?? ""),
      categoryIds: data.getAll("categoryIds").map(Number),
      tags: String(data.get("tags") ?? ""),
    };
  }

  /** @param {Partial<Details>} details only what is given is changed */
  write({ title, description, categoryIds, tags }) {
    if (title !== undefined) this.#input("title").value = title;
    if (description !== undefined) this.#input("description").value = description;
    if (tags !== undefined) this.#input("tags").value = tags;
    if (!categoryIds) return;
    for (const box of this.form.querySelectorAll("[name=categoryIds]")) {
      if (box instanceof HTMLInputElement) box.checked = categoryIds.includes(Number(box.value));
    }
  }

  /**
   * What can be said at once, without asking the portal, whose word is final.
   * @returns {import("../api.js").FieldFault[]}
   */
  check() {
    const { title, categoryIds } = this.read();
    const faults = [];
    if (!title.trim()) faults.push({ pointer: "/title", message: "Give the video a title." });
    if (!categoryIds.length) {
      faults.push({ pointer: "/categoryIds", message: "Choose at least one category." });
    }
    return faults;
  }

  /**
   * Shows each fault beside its field.
   * @param {import("../api.js").FieldFault[]} faults
   * @returns {HTMLElement | null} the first input at fault
   */
  show(faults) {
    this.clear();
    /** @type {Set<string>} */
    const shown = new Set();
    for (const { pointer, message } of faults) {
      const field = POINTERS.find((known) => pointer === known || pointer.startsWith(`${known}/`));
      if (!field || shown.has(field)) continue;
      this.#mark(field, message);
      shown.add(field);
    }
    const pointer = POINTERS.find((known) => shown.has(known));
    return (pointer && this.#inputs(pointer)[0]) || null;
  }

  /** Removes the messages of one field, or of all. @param {string} [pointer] */
  clear(pointer) {
    for (const field of pointer ? [pointer] : POINTERS) this.#mark(field, "");
  }

  /** @param {Event} event an edit; its field's message has served its purpose */
  edited(event) {
    if (!(event.target instanceof Element)) return;
    const pointer = event.target.closest("[data-field]")?.getAttribute("data-field");
    if (pointer) this.clear(pointer);
  }

  /**
   * @param {string} pointer
   * @param {string} message empty to remove
   */
  #mark(pointer, message) {
    const place = this.form.querySelector(`[data-error-for="${pointer}"]`);
    if (place) place.textContent = message;
    for (const input of this.#inputs(pointer)) {
      if (message) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }

  /**
   * @param {string} pointer
   * @returns {HTMLElement[]}
   */
  #inputs(pointer) {
    const place = this.form.querySelector(`[data-field="${pointer}"]`);
    return [...(place?.querySelectorAll("input, textarea") ?? [])].filter(
      (input) => input instanceof HTMLElement,
    );
  }

  /** @param {string} name */
  #input(name) {
    return /** @type {HTMLInputElement} */ (element(this.form, `[name=${name}]`));
  }
}
