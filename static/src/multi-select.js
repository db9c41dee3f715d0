/**
 * Turns a fieldset of checkboxes (`_multi_select.html`) into a searchable combobox for several
 * choices, after the ARIA Authoring Practices. The form still sends the checkboxes; scripts that
 * change them send CHOICES_CHANGED to the fieldset.
 */

import { element } from "./dom.js";

/** Sent to the fieldset after a script has changed its checkboxes. */
export const CHOICES_CHANGED = "choices-changed";

/** @type {import("./lifecycle.js").Start} */
export const multiSelect = (root, signal) => new MultiSelect(root, signal);

/** @typedef {{ box: HTMLInputElement, words: string, option: HTMLElement }} Choice */

class MultiSelect {
  /** @type {Choice[]} */
  #choices;
  /** Option that the arrow keys have reached. @type {Choice | null} */
  #active = null;

  /** @param {HTMLElement} root @param {AbortSignal} signal */
  constructor(root, signal) {
    const plain = element(root, "[data-multi-choices]");
    const hadFocus = plain.contains(document.activeElement);
    this.root = root;
    this.query = /** @type {HTMLInputElement} */ (element(root, "[role=combobox]"));
    this.list = element(root, "[role=listbox]");
    this.chips = element(root, "[data-multi-chips]");
    this.#choices = [...plain.querySelectorAll("label")].map((label, n) => this.#choice(label, n));
    this.list.replaceChildren(...this.#choices.map(({ option }) => option));
    this.#listen(signal);
    this.#draw();
    plain.hidden = true;
    element(root, "[data-multi-control]").hidden = false;
    root.dataset.ready = "";
    if (hadFocus) this.query.focus();
  }

  get isOpen() {
    return this.query.getAttribute("aria-expanded") === "true";
  }

  /** @param {HTMLElement} label @param {number} at @returns {Choice} */
  #choice(label, at) {
    const box = /** @type {HTMLInputElement} */ (element(label, "input"));
    const words = label.textContent?.trim() ?? "";
    const option = document.createElement("li");
    option.id = `${this.list.id}-${at}`;
    option.className = "multi__option";
    option.setAttribute("role", "option");
    option.textContent = words;
    return { box, words, option };
  }

  /** @param {AbortSignal} signal */
  #listen(signal) {
    const { root, query } = this;
    const control = element(root, "[data-multi-control]");
    root.addEventListener(CHOICES_CHANGED, () => this.#draw(), { signal });
    query.addEventListener("keydown", (event) => this.#pressed(event), { signal });
    query.addEventListener("input", (event) => this.#typed(event), { signal });
    query.addEventListener("blur", () => this.#close(), { signal });
    control.addEventListener("click", (event) => this.#clicked(event), { signal });
    // The field keeps the focus, and the keyboard of a phone stays open.
    const keep = (/** @type {Event} */ event) => event.target !== query && event.preventDefault();
    control.addEventListener("mousedown", keep, { signal });
    document.addEventListener("pointerup", (event) => this.#tapped(event), { signal });
  }

  /**
   * Handle a click on an option, on a chip's remove button, or on the box, which focuses the field.
   * @param {Event} event
   */
  #clicked({ target }) {
    const button = target instanceof Element ? target.closest("button") : null;
    const isMeant = (/** @type {Choice} */ { box, option }) =>
      option === target || box.value === button?.value;
    this.#toggle(this.#choices.find(isMeant));
    this.query.focus();
    if (!button) this.#open();
  }

  /**
   * Close on a tap elsewhere, because Safari does not move the focus then. Scrolling does not send
   * this event.
   * @param {PointerEvent} event
   */
  #tapped({ pointerType, target }) {
    const isInside = target instanceof Node && this.root.contains(target);
    if (pointerType !== "mouse" && !isInside) this.#close();
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const { key } = event;
    if (key === "Backspace" && !this.query.value) return this.#toggle(this.#chosen.at(-1));
    if (event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    /** @type {Record<string, () => void>} */
    const does = {
      ArrowDown: () => this.#move(1),
      ArrowUp: () => this.#move(-1),
      Enter: () => (this.isOpen && this.#active ? this.#toggle(this.#active) : this.#open()),
      Escape: () => this.#close(),
    };
    if (!does[key] || (key === "Escape" && !this.isOpen && !this.query.value)) return;
    event.preventDefault();
    // The surrounding dialog stays open.
    event.stopPropagation();
    does[key]();
  }

  /** @param {Event} event */
  #typed(event) {
    // The search text does not count as a change of the form.
    event.stopPropagation();
    this.#open();
    this.#activate(this.query.value ? (this.#shown[0] ?? null) : null);
  }

  get #chosen() {
    return this.#choices.filter(({ box }) => box.checked);
  }

  get #shown() {
    return this.#choices.filter(({ option }) => !option.hidden);
  }

  #open() {
    const wanted = plain(this.query.value);
    for (const { option, words } of this.#choices) option.hidden = !plain(words).includes(wanted);
    const isEmpty = this.#shown.length === 0;
    this.#show({ list: !isEmpty, none: isEmpty });
    if (isEmpty) this.#say("No matches.");
    if (this.#active?.option.hidden) this.#activate(null);
    // The whole list is scrolled into view, or at least the field.
    this.list.scrollIntoView({ block: "nearest" });
    this.query.scrollIntoView({ block: "nearest" });
  }

  #close() {
    this.query.value = "";
    this.#show({ list: false, none: false });
    this.#activate(null);
  }

  /** @param {{ list: boolean, none: boolean }} shown */
  #show({ list, none }) {
    this.list.hidden = !list;
    element(this.root, "[data-multi-none]").hidden = !none;
    this.query.setAttribute("aria-expanded", String(list));
  }

  /** @param {1 | -1} step */
  #move(step) {
    if (!this.isOpen) this.#open();
    const shown = this.#shown;
    const at = this.#active ? shown.indexOf(this.#active) : step > 0 ? -1 : 0;
    this.#activate(shown.at((at + step) % shown.length) ?? null);
  }

  /** @param {Choice | null} choice */
  #activate(choice) {
    this.#active?.option.classList.remove("multi__option--active");
    this.#active = choice;
    choice?.option.classList.add("multi__option--active");
    choice?.option.scrollIntoView({ block: "nearest" });
    if (choice) this.query.setAttribute("aria-activedescendant", choice.option.id);
    else this.query.removeAttribute("aria-activedescendant");
  }

  /** @param {Choice | undefined} choice */
  #toggle(choice) {
    if (!choice) return;
    const { box, words } = choice;
    box.checked = !box.checked;
    this.query.value = "";
    this.#draw();
    if (this.isOpen) this.#open();
    box.dispatchEvent(new Event("input", { bubbles: true }));
    this.#say(`${words} ${box.checked ? "chosen" : "removed"}, ${this.#chosen.length} altogether.`);
  }

  #draw() {
    for (const { box, option } of this.#choices) {
      option.setAttribute("aria-selected", String(box.checked));
    }
    this.chips.replaceChildren(...this.#chosen.map((choice) => this.#chip(choice)));
    this.chips.hidden = this.chips.childElementCount === 0;
  }

  /** @param {Choice} choice */
  #chip({ box, words }) {
    const template = /** @type {HTMLTemplateElement} */ (element(this.root, "[data-multi-chip]"));
    const copy = document.importNode(template.content, true);
    const button = /** @type {HTMLButtonElement} */ (element(copy, "button"));
    element(copy, "[data-words]").textContent = words;
    button.value = box.value;
    element(button, ".visually-hidden").textContent = `Remove ${words}`;
    return copy;
  }

  /** @param {string} words for screen readers */
  #say(words) {
    element(this.root, "[data-multi-live]").textContent = words;
  }
}

/** @param {string} words @returns {string} without case and accents */
function plain(words) {
  return words.trim().toLowerCase().normalize("NFD").replace(/\p{M}/gu, "");
}
