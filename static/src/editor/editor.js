/**
 * Base of editors: a value that people change step by step and save together. Buttons and their
 * keys run commands, each step can be undone, and a save finds out whether somebody else has saved
 * in the meantime.
 */

import { closest, element } from "../dom.js";
import { request } from "../people/session.js";
import { Refused } from "../requests.js";
import { History } from "./history.js";
import * as messages from "./messages.js";

/** @typedef {import("./messages.js").Message} Message */
/** Commands by the names in `data-does`. @typedef {Record<string, (data: DOMStringMap) => unknown>} Commands */
/**
 * Save of the value. `event` tells the page of it; `resolveConflict` combines the value with the
 * one that somebody else has saved; `accepts` checks the response, whose value may be of another
 * subject by now.
 * @typedef {import("../requests.js").Options & { event: string,
 *   resolveConflict: (refusal: Refused) => Promise<Message>, accepts?: (json: any) => boolean }} Save
 */

const CONFLICT = 412;

/**
 * Editor of an immutable value with an ETag, at the address in `data-api`.
 * @template T
 */
export class Editor {
  /** Value as it was saved last. @type {T} */
  saved;
  isBusy = false;

  /**
   * @param {HTMLElement} root @param {T} value as it is saved @param {string} etag
   * @param {AbortSignal} signal
   */
  constructor(root, value, etag, signal) {
    this.root = root;
    this.history = new History(value);
    this.saved = value;
    this.etag = etag;
    this.signal = signal;
    this.api = root.dataset.api ?? "";
  }

  get value() {
    return this.history.current;
  }

  get isDirty() {
    return this.value !== this.saved;
  }

  /** Redraw the page. */
  show() {}

  /** Let buttons run commands: <button data-does="undo" data-key="ctrl+z">. @param {Commands} commands */
  listenToButtons(commands) {
    /** @type {Commands} */
    const all = {
      undo: () => this.step(() => this.history.step(-1)),
      redo: () => this.step(() => this.history.step(1)),
      ...commands,
    };
    const handleClick = (/** @type {Event} */ { target }) => {
      const button = closest(target, "[data-does]");
      if (!button || button.ariaDisabled) return;
      all[button.dataset.does ?? ""]?.(button.dataset);
    };
    this.root.addEventListener("click", handleClick, { signal: this.signal });
  }

  /** Return the button of a pressed key. @param {KeyboardEvent} event @returns {HTMLElement | null} */
  buttonOfKey({ key, ctrlKey, metaKey, shiftKey }) {
    const modifiers = ctrlKey || metaKey ? `ctrl+${shiftKey ? "shift+" : ""}` : "";
    const name = modifiers + (key === " " ? "space" : key.toLowerCase());
    return this.root.querySelector(`[data-key="${CSS.escape(name)}"]`);
  }

  /** Show which commands are possible. @param {Record<string, boolean>} isPossible */
  showButtons(isPossible) {
    const all = { undo: this.history.canStep(-1), redo: this.history.canStep(1), ...isPossible };
    for (const [does, isEnabled] of Object.entries(all)) {
      element(this.root, `[data-does=${does}]`).ariaDisabled = isEnabled ? null : "true";
    }
  }

  /** @param {Message} message */
  showMessage(message) {
    messages.show(this.root, message);
  }

  /** @param {T} value @param {Message} [message] */
  change(value, message) {
    this.step(() => this.history.append(value), message);
  }

  /** Show another state of the history. @param {() => void} move @param {Message} [message] */
  step(move, message = messages.NONE) {
    move();
    this.showMessage(message);
    this.show();
  }

  /**
   * Save by a function that returns a message about the result, and show the message.
   * @param {() => Promise<Message>} save @param {(message: Message) => void} [show]
   */
  async runExclusively(save, show = (message) => this.showMessage(message)) {
    if (this.isBusy) return;
    this.isBusy = true;
    this.showMessage(messages.NONE);
    this.show();
    const message = await save().catch(messages.ofFailure);
    this.isBusy = false;
    this.showMessage(messages.NONE);
    show(message);
    this.show();
  }

  /** Send the value. @param {Save} save @returns {Promise<Message>} about the result */
  async put({ event, resolveConflict, accepts = () => true, ...options }) {
    const { value } = this;
    try {
      const { json, etag } = await request("PUT", this.api, { ...options, ifMatch: this.etag });
      if (!accepts(json)) return messages.NONE;
      this.setSaved(value, etag);
      document.body.dispatchEvent(new Event(event));
      return messages.SAVED;
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== CONFLICT) throw error;
      return resolveConflict(error);
    }
  }

  /** Note which value is saved. @param {T} value @param {string} etag */
  setSaved(value, etag) {
    this.saved = value;
    this.etag = etag;
  }
}
