/**
 * Asks once to sign in again on a page whose session has ended, and lets all refused requests
 * continue afterwards. A person who closes the dialog isn't asked again until they act. The dialog
 * is <template data-sign-in-again>; a script sends its form, which is that of the sign-in page.
 */

import { contextOf, element, opensElsewhere } from "../dom.js";

/** Sent to the document when the person who opened the page has signed in again. */
export const SIGNED_IN = "signed-in-again";
export const SOMEONE_ELSE =
  "You’re signed in with a different account, and an upload belongs to the account that started it. Sign in with that account to continue. What you typed is kept.";

const TIMEOUT_MS = 30_000;
const UNREACHABLE = "The portal can’t be reached. Check your connection, then sign in again.";
const NOBODY = "You’re still signed out. Sign in here, or in the other tab first.";

/** @typedef {"same" | "other" | "closed"} Outcome who is signed in; `closed`: nobody */

/** Another person has signed in than the one who opened the page. */
export class SomeoneElse extends Error {}

/** @type {Promise<void> | null} */
let question = null;
/** @type {Outcome} of the last question */
let outcome = "same";
let signInCount = 0;

/** Return how often someone has signed in again on this page. */
export function signIns() {
  return signInCount;
}

/** Allow the dialog to be shown again, because the person acted. */
export function askAgain() {
  outcome = "same";
}

/** Keep automatic requests from being sent in another person's name. @throws {SomeoneElse} */
export function requireSamePerson() {
  if (outcome === "other") throw new SomeoneElse();
}

/**
 * Wait until the person has signed in again.
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
 * Return whether another person has signed in than the one who opened the page.
 * @throws {Error} without an answer
 */
export async function isSomeoneElse() {
  const { before, now } = await readPage();
  const isOther = before !== null && now !== null && before.id !== now.id;
  if (isOther) outcome = "other";
  return isOther;
}

/** Show the dialog, and wait until it closes. */
async function ask() {
  const template = document.querySelector("template[data-sign-in-again]");
  outcome =
    template instanceof HTMLTemplateElement ? await new SignInDialog(template).end : "closed";
  question = null;
  if (outcome !== "same") return;
  signInCount += 1;
  document.dispatchEvent(new CustomEvent(SIGNED_IN));
}

/**
 * Show the dialog for links that ask to sign in, and for htmx forms that were refused.
 * @param {HTMLElement} _template present on pages that can ask @param {AbortSignal} signal
 */
export function followRefusals(_template, signal) {
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
  const { status } = contextOf(event).response;
  if (status === 401 && event.target instanceof HTMLFormElement) goOn(event.target);
}

/** @param {HTMLFormElement | null} form sent again; requests that wait go on by themselves */
async function goOn(form) {
  askAgain();
  // The dialog itself reports another person.
  const isDone = await signedInAgain(signInCount).catch(() => false);
  if (isDone && form?.hasAttribute("hx-post")) form.requestSubmit();
}

/**
 * Return the account that opened the page and the present one; null for nobody.
 * @throws {Error} without an answer
 */
async function readPage() {
  const before = personOn(document);
  if (!before) return { before, now: null };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(before.address, { redirect: "manual", signal });
  // Without a session the portal redirects to the form.
  if (response.type === "opaqueredirect") return { before, now: null };
  if (!response.ok) throw new Error(`status ${response.status}`);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return { before, now: personOn(page) };
}

class SignInDialog {
  /** @type {Outcome} */
  #outcome = "closed";

  /** @param {HTMLTemplateElement} template */
  constructor(template) {
    document.body.append(document.importNode(template.content, true));
    const selector = "dialog[data-sign-in-dialog]";
    const dialog = /** @type {HTMLDialogElement} */ (element(document, selector));
    this.dialog = dialog;
    this.form = /** @type {HTMLFormElement} */ (element(dialog, "form"));
    /** @type {Promise<Outcome>} */
    this.end = new Promise((resolve) => {
      dialog.addEventListener("close", () => {
        dialog.remove();
        resolve(this.#outcome);
      });
    });
    this.form.addEventListener("submit", (event) => this.#submitted(event));
    const again = dialog.querySelector("[data-signed-in-elsewhere]");
    again?.addEventListener("click", () => this.#do(() => this.#settle(NOBODY)));
    showPassword(element(dialog, "[data-shows]"));
    dialog.showModal();
  }

  /** @param {SubmitEvent} event */
  #submitted(event) {
    const { submitter } = event;
    if (submitter instanceof HTMLButtonElement && submitter.formMethod === "dialog") return;
    event.preventDefault();
    this.#do(() => this.#send());
  }

  /** Run actions one after the other. @param {() => Promise<void>} action */
  async #do(action) {
    const button = element(this.form, "[data-sign-in-button]");
    if (button.hasAttribute("aria-disabled")) return;
    button.setAttribute("aria-disabled", "true");
    this.#say("");
    await action().catch(() => this.#say(UNREACHABLE));
    button.removeAttribute("aria-disabled");
  }

  async #send() {
    const { action } = this.form;
    const fields = [...new FormData(this.form)].map(([name, value]) => [name, String(value)]);
    const response = await fetch(action, {
      method: "POST",
      body: new URLSearchParams(fields),
      headers: { Accept: "application/problem+json" },
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    // With a session the portal redirects to another page.
    if (response.type === "opaqueredirect") return this.#settle(UNREACHABLE);
    const { detail } = await response.json().catch(() => ({}));
    this.#say(detail || `The portal can’t sign you in now (status ${response.status}). Try again.`);
    this.#emptyPassword();
  }

  /** Close the dialog if someone has signed in, or show this message. @param {string} otherwise */
  async #settle(otherwise) {
    const { before, now } = await readPage();
    if (!now) return this.#say(otherwise);
    this.#outcome = now.id === before?.id ? "same" : "other";
    if (this.#outcome === "same") return this.dialog.close();
    this.#emptyPassword();
    this.#say(
      `You are signed in as ${now.email} now, and what ${before?.email} began can’t go on like that. Sign in as ${before?.email}. What was typed stays.`,
    );
  }

  #emptyPassword() {
    const password = /** @type {HTMLInputElement} */ (element(this.form, "[name=password]"));
    password.value = "";
    password.focus();
  }

  /** @param {string} words */
  #say(words) {
    const place = element(this.dialog, "[data-fault]");
    element(place, "[data-text]").textContent = words;
    place.hidden = !words;
  }
}

/** @param {Document} page the link on it leads to the account's page, which only its owner gets */
function personOn(page) {
  const link = page.querySelector("a[data-account]");
  if (!(link instanceof HTMLAnchorElement)) return null;
  return { id: link.dataset.account, email: link.title, address: link.href };
}

/**
 * Show and hide a password: <button data-shows="id of the field" hidden>, which becomes visible.
 * Sending the form hides the password again, so that the browser offers to save it.
 * @param {HTMLElement} button @param {AbortSignal} [signal]
 */
export function showPassword(button, signal) {
  const field = document.getElementById(button.dataset.shows ?? "");
  if (!(field instanceof HTMLInputElement)) return;
  /** @param {boolean} isShown */
  const show = (isShown) => {
    field.type = isShown ? "text" : "password";
    button.setAttribute("aria-pressed", String(isShown));
  };
  button.addEventListener("click", () => show(field.type === "password"), { signal });
  field.form?.addEventListener("submit", () => show(false), { signal });
  button.hidden = false;
}
