/**
 * Sign-in prompt for a page whose session has ended. It is shown once for all refused requests,
 * which continue afterwards. A person who closes the dialog isn't asked again until they act. The
 * dialog is <template data-sign-in-again>, and contains the form of the sign-in page.
 */

import { closest, contextOf, element, opensNewTab } from "../dom.js";
import { gettext } from "../messages.js";
import { FORM, fetchText, isRedirect, Refused, send } from "../requests.js";

/** Sent to the document when the person who opened the page has signed in again. */
export const SIGNED_IN = "signed-in-again";
export const ACCOUNT_CHANGED = gettext(
  "You’re signed in with a different account, and an upload belongs to the account that started it. Sign in with that account to continue. What you typed is kept.",
);

const UNREACHABLE = gettext(
  "The portal can’t be reached. Check your connection, then sign in again.",
);
const STILL_SIGNED_OUT = gettext(
  "You’re still signed out. Sign in here, or in the other tab first.",
);

/**
 * Account that is signed in after the prompt: the one that opened the page, or another one.
 * "closed" means that nobody signed in.
 * @typedef {"same" | "other" | "closed"} Outcome
 */

/** A different account is signed in than the one that opened the page. */
export class AccountChanged extends Error {}

/** @type {Promise<void> | null} */
let openPrompt = null;
/** Outcome of the last prompt. @type {Outcome} */
let outcome = "same";
let signInCount = 0;

/** Return the number of times that a person has signed in again on this page. */
export function countSignIns() {
  return signInCount;
}

/** Allow the dialog to be shown again, because the person has acted. */
export function allowSignInPrompt() {
  outcome = "same";
}

/** Prevent automatic requests in the name of another account. @throws {AccountChanged} */
export function requireSameAccount() {
  if (outcome === "other") throw new AccountChanged();
}

/**
 * Wait until the person has signed in again.
 * @param {number} signInsBefore result of `countSignIns()` before the refused request
 * @returns {Promise<boolean>} false if the person closed the dialog, or the page has none
 * @throws {AccountChanged}
 */
export async function waitForSignIn(signInsBefore) {
  if (signInsBefore < signInCount) return true;
  if (outcome === "same") {
    openPrompt ??= showPrompt();
    await openPrompt;
  }
  requireSameAccount();
  return outcome === "same";
}

/**
 * Return whether a different account is signed in than the one that opened the page.
 * @throws {Error} without a response
 */
export async function hasAccountChanged() {
  const { before, now } = await readPage();
  const isOther = before !== null && now !== null && before.id !== now.id;
  if (isOther) outcome = "other";
  return isOther;
}

/** Show the dialog, wait until it closes, and record the outcome. */
async function showPrompt() {
  const template = document.querySelector("template[data-sign-in-again]");
  outcome =
    template instanceof HTMLTemplateElement ? await new SignInDialog(template).end : "closed";
  openPrompt = null;
  if (outcome !== "same") return;
  signInCount += 1;
  document.dispatchEvent(new CustomEvent(SIGNED_IN));
}

/** Buttons by which forms were sent last. @type {WeakMap<EventTarget, HTMLElement | null>} */
const submitters = new WeakMap();

/**
 * Show the dialog after a click on a sign-in link, and after the refusal of an htmx form.
 * @param {HTMLElement} _template present on pages with a dialog @param {AbortSignal} signal
 */
export function startSignInPrompts(_template, signal) {
  const noteSubmitter = (/** @type {SubmitEvent} */ { target, submitter }) =>
    target && submitters.set(target, submitter);
  document.addEventListener("submit", noteSubmitter, { capture: true, signal });
  document.addEventListener("click", handleClick, { signal });
  document.addEventListener("htmx:response:error", handleResponseError, { signal });
}

/** @param {MouseEvent} event */
function handleClick(event) {
  const link = closest(event.target, "[data-sign-in]");
  if (!link || opensNewTab(event)) return;
  event.preventDefault();
  signInAndResend(link.closest("form"));
}

/** @param {Event} event */
function handleResponseError(event) {
  const { status } = contextOf(event).response;
  if (status === 401 && event.target instanceof HTMLFormElement) signInAndResend(event.target);
}

/**
 * Ask to sign in, then send the form again. Waiting requests of scripts continue by themselves.
 * @param {HTMLFormElement | null} form
 */
async function signInAndResend(form) {
  allowSignInPrompt();
  // The dialog reports a different account itself.
  const isDone = await waitForSignIn(signInCount).catch(() => false);
  if (!isDone || !form?.hasAttribute("hx-post")) return;
  // The name and value of the pressed button are part of the request.
  const submitter = submitters.get(form);
  form.requestSubmit(submitter?.isConnected ? submitter : undefined);
}

/**
 * Return the account that opened the page and the account that is signed in now; null for none.
 * @throws {Error} without a response
 */
async function readPage() {
  const before = accountOn(document);
  if (!before) return { before, now: null };
  try {
    const html = await fetchText(before.address, { redirect: "manual" });
    return { before, now: accountOn(new DOMParser().parseFromString(html, "text/html")) };
  } catch (error) {
    // Without a session the portal redirects to the form.
    if (isRedirect(error)) return { before, now: null };
    throw error;
  }
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
    this.form.addEventListener("submit", (event) => this.#handleSubmit(event));
    const again = dialog.querySelector("[data-signed-in-elsewhere]");
    again?.addEventListener("click", () =>
      this.#runExclusively(() => this.#closeIfSignedIn(STILL_SIGNED_OUT)),
    );
    startPasswordButton(element(dialog, "[data-shows]"));
    dialog.showModal();
  }

  /** @param {SubmitEvent} event */
  #handleSubmit(event) {
    const { submitter } = event;
    if (submitter instanceof HTMLButtonElement && submitter.formMethod === "dialog") return;
    event.preventDefault();
    this.#runExclusively(() => this.#send());
  }

  /** Run actions one after the other. @param {() => Promise<void>} action */
  async #runExclusively(action) {
    const button = element(this.form, "[data-sign-in-button]");
    if (button.hasAttribute("aria-disabled")) return;
    button.setAttribute("aria-disabled", "true");
    this.#showMessage("");
    await action().catch(() => this.#showMessage(UNREACHABLE));
    button.removeAttribute("aria-disabled");
  }

  async #send() {
    const { action } = this.form;
    const fields = [...new FormData(this.form)].map(([name, value]) => [name, String(value)]);
    try {
      await send("POST", action, () => null, {
        accept: "application/problem+json",
        body: new URLSearchParams(fields),
        contentType: FORM,
        redirect: "manual",
      });
    } catch (error) {
      // With a session the portal redirects to another page.
      if (isRedirect(error)) return this.#closeIfSignedIn(UNREACHABLE);
      if (!(error instanceof Refused)) throw error;
      const fallback = gettext("The portal can’t sign you in now (status %(status)s). Try again.", {
        status: error.status,
      });
      this.#showMessage(error.detail || fallback);
      this.#emptyPassword();
    }
  }

  /** Close the dialog if the person has signed in, else show a message. @param {string} fallback */
  async #closeIfSignedIn(fallback) {
    const { before, now } = await readPage();
    if (!now) return this.#showMessage(fallback);
    this.#outcome = now.id === before?.id ? "same" : "other";
    if (this.#outcome === "same") return this.dialog.close();
    this.#emptyPassword();
    this.#showMessage(
      // Translators: two different accounts.
      gettext(
        "You’re signed in as %(email)s, but %(owner)s opened this page. Sign in as %(owner)s to continue. What you typed is kept.",
        { email: now.email, owner: before?.email ?? "" },
      ),
    );
  }

  #emptyPassword() {
    const password = /** @type {HTMLInputElement} */ (element(this.form, "[name=password]"));
    password.value = "";
    password.focus();
  }

  /** @param {string} message */
  #showMessage(message) {
    const notice = element(this.dialog, "[data-fault]");
    element(notice, "[data-text]").textContent = message;
    notice.hidden = !message;
  }
}

/**
 * Return the account that a page was rendered for; null for none.
 * @param {Document} page its link to the account's page names the account
 */
function accountOn(page) {
  const link = page.querySelector("a[data-account]");
  if (!(link instanceof HTMLAnchorElement)) return null;
  return { id: link.dataset.account, email: link.title, address: link.href };
}

/**
 * Make a button show and hide a password: <button data-shows="id of the field" hidden>. Sending the
 * form hides the password again, so that the browser offers to save it.
 * @param {HTMLElement} button @param {AbortSignal} [signal]
 */
export function startPasswordButton(button, signal) {
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
