/** List of the warnings about a recording, one of each kind. */

export class Warnings {
  /** Items by the kind of their warning. @type {Map<string, HTMLLIElement>} */
  #items = new Map();

  /** @param {HTMLElement} list */
  constructor(list) {
    this.list = list;
  }

  /** Show a warning, or end it with an empty text. @param {string} kind @param {string} text */
  set(kind, text) {
    const present = this.#items.get(kind);
    if ((present?.textContent ?? "") === text) return;
    present?.remove();
    this.#items.delete(kind);
    if (!text) return;
    const item = document.createElement("li");
    item.className = "notice notice--busy";
    item.textContent = text;
    this.list.append(item);
    this.#items.set(kind, item);
  }

  clear() {
    this.list.replaceChildren();
    this.#items.clear();
  }
}
