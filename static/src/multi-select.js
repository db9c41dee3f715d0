/**
 * Searchable combobox for several choices, after the ARIA Authoring Practices. It replaces a
 * fieldset of checkboxes (`_multi_select.html`), which the form still sends; scripts that change
 * the checkboxes send CHOICES_CHANGED to the fieldset.
 */

import { element } from "./dom.js";
import { foldText, formatNumber } from "./format.js";
import { gettext, ngettext } from "./messages.js";

/** Sent to the fieldset after a script has changed its checkboxes. */
export const CHOICES_CHANGED = "choices-changed";

/** @type {import("./lifecycle.js").Start} */
export const startMultiSelect = (root, signal) => new MultiSelect(root, signal);

/** @typedef {{ box: HTMLInputElement, label: string, option: HTMLElement }} Choice */

class MultiSelect {
  /** @type {Choice[]} */
  #choices;
  /** Choice selected by the arrow keys. @type {Choice | null} */
  #active = null;

  /** @param {HTMLElement} root @param {AbortSignal} signal */
  constructor(root, signal) {
    const checkboxes = element(root, "[data-multi-choices]");
    const hadFocus = checkboxes.contains(document.activeElement);
    this.root = root;
    this.query = /** @type {HTMLInputElement} */ (element(root, "[role=combobox]"));
    this.list = element(root, "[role=listbox]");
    this.chips = element(root, "[data-multi-chips]");
    const labels = [...checkboxes.querySelectorAll("label")];
    this.#choices = labels.map((label, index) => this.#choice(label, index));
    this.list.replaceChildren(...this.#choices.map(({ option }) => option));
    this.#listen(signal);
    this.#draw();
    checkboxes.hidden = true;
    element(root, "[data-multi-control]").hidden = false;
    root.dataset.ready = "";
    if (hadFocus) this.query.focus();
  }

  get isOpen() {
    return this.query.getAttribute("aria-expanded") === "true";
  }

  /** @param {HTMLElement} labelElement @param {number} at @returns {Choice} */
  #choice(labelElement, at) {
    const box = /** @type {HTMLInputElement} */ (element(labelElement, "input"));
    const label = labelElement.textContent?.trim() ?? "";
    const option = document.createElement("li");
    option.id = `${this.list.id}-${at}`;
    option.className = "multi__option";
    option.setAttribute("role", "option");
    option.textContent = label;
    return { box, label, option };
  }

  /** @param {AbortSignal} signal */
  #listen(signal) {
    const { root, query } = this;
    const control = element(root, "[data-multi-control]");
    root.addEventListener(CHOICES_CHANGED, () => this.#draw(), { signal });
    query.addEventListener("keydown", (event) => this.#handleKey(event), { signal });
    query.addEventListener("input", (event) => this.#handleInput(event), { signal });
    query.addEventListener("blur", () => this.#close(), { signal });
    control.addEventListener("click", (event) => this.#handleClick(event), { signal });
    // While the field keeps the focus, the keyboard of a phone stays open.
    const keepFocus = (/** @type {Event} */ event) =>
      event.target !== query && event.preventDefault();
    control.addEventListener("mousedown", keepFocus, { signal });
    document.addEventListener("pointerup", (event) => this.#handleTap(event), { signal });
  }

  /**
   * Handle a click on an option, on a chip's remove button, or on the box, which focuses the field.
   * @param {Event} event
   */
  #handleClick({ target }) {
    const button = target instanceof Element ? target.closest("button") : null;
    const isTarget = (/** @type {Choice} */ { box, option }) =>
      option === target || box.value === button?.value;
    this.#toggle(this.#choices.find(isTarget));
    this.query.focus();
    if (!button) this.#open();
  }

  /**
   * Close on a tap elsewhere, because Safari does not move the focus then. Scrolling does not send
   * this event.
   * @param {PointerEvent} event
   */
  #handleTap({ pointerType, target }) {
    const isInside = target instanceof Node && this.root.contains(target);
    if (pointerType !== "mouse" && !isInside) this.#close();
  }

  /** @param {KeyboardEvent} event */
  #handleKey(event) {
    const { key } = event;
    if (key === "Backspace" && !this.query.value) return this.#toggle(this.#chosen.at(-1));
    if (event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    /** @type {Record<string, () => void>} */
    const keyActions = {
      ArrowDown: () => this.#move(1),
      ArrowUp: () => this.#move(-1),
      Enter: () => (this.isOpen && this.#active ? this.#toggle(this.#active) : this.#open()),
      Escape: () => this.#close(),
    };
    if (!keyActions[key] || (key === "Escape" && !this.isOpen && !this.query.value)) return;
    event.preventDefault();
    // The surrounding dialog stays open.
    event.stopPropagation();
    keyActions[key]();
  }

  /** @param {Event} event */
  #handleInput(event) {
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
    const query = foldText(this.query.value.trim());
    for (const { option, label } of this.#choices) option.hidden = !foldText(label).includes(query);
    const isEmpty = this.#shown.length === 0;
    this.#show({ list: !isEmpty, none: isEmpty });
    if (isEmpty) this.#announce(gettext("No matches."));
    if (this.#active?.option.hidden) this.#activate(null);
    // If the list doesn't fit into the window, the field stays in view.
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
    const { box, label } = choice;
    box.checked = !box.checked;
    this.query.value = "";
    this.#draw();
    if (this.isOpen) this.#open();
    box.dispatchEvent(new Event("input", { bubbles: true }));
    this.#announce(resultText(label, box.checked, this.#chosen.length));
  }

  #draw() {
    for (const { box, option } of this.#choices) {
      option.setAttribute("aria-selected", String(box.checked));
    }
    this.chips.replaceChildren(...this.#chosen.map((choice) => this.#chip(choice)));
    this.chips.hidden = this.chips.childElementCount === 0;
  }

  /** @param {Choice} choice */
  #chip({ box, label }) {
    const template = /** @type {HTMLTemplateElement} */ (element(this.root, "[data-multi-chip]"));
    const copy = document.importNode(template.content, true);
    const button = /** @type {HTMLButtonElement} */ (element(copy, "button"));
    element(copy, "[data-words]").textContent = label;
    button.value = box.value;
    element(button, ".visually-hidden").textContent = gettext("Remove %(name)s", {
      name: label,
    });
    return copy;
  }

  /** Announce a text to screen readers. @param {string} text */
  #announce(text) {
    element(this.root, "[data-multi-live]").textContent = text;
  }
}

/**
 * Return the announcement that a choice was selected or removed.
 * @param {string} name @param {boolean} isSelected @param {number} chosen number of choices
 */
function resultText(name, isSelected, chosen) {
  const values = { name, count: formatNumber(chosen) };
  return isSelected
    ? ngettext(
        "%(name)s selected, %(count)s selected in total.",
        "%(name)s selected, %(count)s selected in total.",
        chosen,
        values,
      )
    : ngettext(
        "%(name)s removed, %(count)s selected in total.",
        "%(name)s removed, %(count)s selected in total.",
        chosen,
        values,
      );
}
