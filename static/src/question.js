/** Question in the dialog of a page, with a button for yes and one for no. */

import { setTexts } from "./dom.js";

/** @typedef {{ title: string, text: string, yes: string, no: string }} Question */

/**
 * Ask a question, and return whether the answer is yes.
 * @param {HTMLDialogElement} dialog @param {Question} question @param {AbortSignal} signal
 * @returns {Promise<boolean>}
 */
export function ask(dialog, question, signal) {
  setTexts(dialog, question);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    const resolveAnswer = () => resolve(dialog.returnValue === "yes");
    dialog.addEventListener("close", resolveAnswer, { signal, once: true });
  });
}
