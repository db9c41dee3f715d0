/** Undo and redo in editors. */

const HISTORY_LIMIT = 500;

/**
 * Undo history of an immutable value. Consecutive changes with the same key are a single step.
 * @template T
 */
export class History {
  /** @type {T[]} */
  #states;
  #at = 0;
  #lastKey = "";

  /** @param {T} state */
  constructor(state) {
    this.#states = [state];
  }

  /** @returns {T} */
  get current() {
    return /** @type {T} */ (this.#states[this.#at]);
  }

  /**
   * Append a state, or replace the last one while the same thing is edited.
   * @param {T} state @param {string} [key] of the edited field, for example
   */
  append(state, key = "") {
    const isSameStep = key !== "" && key === this.#lastKey;
    this.#states.splice(this.#at + (isSameStep ? 0 : 1), Infinity, state);
    if (this.#states.length > HISTORY_LIMIT) this.#states.shift();
    this.#at = this.#states.length - 1;
    this.#lastKey = key;
  }

  /** Return whether there is a state to go to. @param {number} direction 1 to redo, -1 to undo */
  canStep(direction) {
    return this.#states[this.#at + direction] !== undefined;
  }

  /** Go to the next or previous state. @param {number} direction 1 to redo, -1 to undo */
  step(direction) {
    if (!this.canStep(direction)) return;
    this.#at += direction;
    this.#lastKey = "";
  }
}
