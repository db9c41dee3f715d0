/** Tells screen readers what happens, in turn and without flooding: what comes together is one. */

const GATHER_MS = 300;

export class Announcer {
  /** @type {string[]} */
  #pending = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {HTMLElement} region a live region */
  constructor(region) {
    this.region = region;
  }

  /** @param {string} words */
  say(words) {
    if (!this.#pending.includes(words)) this.#pending.push(words);
    this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
  }

  #flush() {
    this.#timer = undefined;
    this.region.textContent = this.#pending.join(" ");
    this.#pending = [];
  }
}
