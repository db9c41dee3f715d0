/**
 * Signing in again on a page whose session has ended: one question for all that was refused, which
 * goes on afterwards. Who closes it is left alone until they do something.
 */

import { opensElsewhere } from "../dom.js";
import { askToSignIn, readPage } from "./sign-in-dialog.js";

/** Sent to the document once the person who opened the page is signed in again. */
export const SIGNED_IN = "signed-in-again";
export const SOMEONE_ELSE =
  "You are signed in as someone else than before, and an upload belongs to who began it. Sign in as that person to go on. What you typed stays.";

/** The page was opened by another person than the one who is signed in by now. */
export class SomeoneElse extends Error {}

/** @type {Promise<void> | null} */
let question = null;
/** @type {import("./sign-in-dialog.js").Outcome} of the last question */
let outcome = "same";
let signInCount = 0;

/** How often someone has signed in again on this page. */
export function signIns() {
  return signInCount;
}

/** Someone did something that is worth another question. */
export function askAgain() {
  outcome = "same";
}

/** What goes on by itself is not done in another person's name. @throws {SomeoneElse} */
export function requireSamePerson() {
  if (outcome === "other") throw new SomeoneElse();
}

/**
 * Waits until the person is signed in again.
 * @param {number} since `signIns()` before what was refused
 * @returns {Promise<boolean>} false when they don't want to, or the page can't ask
 * @throws {SomeoneElse}
 */
export async function signedInAgain(since) {
  if (since < signInCount) return true;
  if (outcome === "same") {
    question ??= ask();
    await question;
  }
  requireSamePerson();
  return outcome === "same";
}

/**
 * Whether another person is signed in by now than the one who opened the page.
 * @throws {Error} without an answer
 */
export async function isSomeoneElse() {
  const { before, now } = await readPage();
  const isOther = before !== null && now !== null && before.id !== now.id;
  if (isOther) outcome = "other";
  return isOther;
}

async function ask() {
  outcome = await askToSignIn();
  question = null;
  if (outcome !== "same") return;
  signInCount += 1;
  document.dispatchEvent(new CustomEvent(SIGNED_IN));
}

/**
 * What was refused to who is signed out: links that ask in this tab, and forms sent by scripts.
 * @param {HTMLElement} _dialog there on pages that can ask @param {AbortSignal} signal
 */
export function followRefusals(_dialog, signal) {
  document.addEventListener("click", linkClicked, { signal });
  document.addEventListener("htmx:response:error", answered, { signal });
}

/** @param {MouseEvent} event */
function linkClicked(event) {
  const link = event.target instanceof Element ? event.target.closest("[data-sign-in]") : null;
  if (!link || opensElsewhere(event)) return;
  event.preventDefault();
  goOn(link.closest("form"));
}

/** @param {Event} event */
function answered(event) {
  const status = event instanceof CustomEvent ? event.detail.ctx.response.status : 0;
  if (status === 401 && event.target instanceof HTMLFormElement) goOn(event.target);
}

/** @param {HTMLFormElement | null} form sent again; what waits otherwise goes on by itself */
async function goOn(form) {
  askAgain();
  // Of another person the dialog tells already.
  const isDone = await signedInAgain(signInCount).catch(() => false);
  if (isDone && form?.hasAttribute("hx-post")) form.requestSubmit();
}
