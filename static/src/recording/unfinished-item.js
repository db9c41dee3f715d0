/** Unfinished recording in the list of the page that records, with its facts and buttons. */

import { element, setTexts } from "../dom.js";
import { offerCopy } from "./result.js";
import { titleOf, unfinishedText } from "./texts.js";

/** @typedef {import("./recovery.js").Unfinished} Unfinished */

/**
 * Return the item of a recording.
 * @param {HTMLTemplateElement} template @param {Unfinished} unfinished
 */
export function createItem(template, unfinished) {
  const { saved, file } = unfinished;
  const item = element(document.importNode(template.content, true), "li");
  setTexts(item, { name: titleOf(saved.started_at), facts: unfinishedText(unfinished) });
  offerCopy(element(item, "[data-copy-file]"), URL.createObjectURL(file), saved.name);
  return item;
}

/**
 * Wait until one of the buttons of an item is pressed.
 * @param {HTMLElement} item @returns {Promise<"continue" | "discard">}
 */
export function pressedButton(item) {
  return new Promise((resolve) => {
    for (const name of /** @type {const} */ (["continue", "discard"])) {
      const button = element(item, `[data-${name}]`);
      button.addEventListener("click", () => resolve(name), { once: true });
    }
  });
}
