/** Part of a film that people choose by its bounds, each with a handle on a line and a field. */

import { announce, element, setText } from "./dom.js";
import { parseStartTime_s } from "./format.js";
import { gettext } from "./messages.js";

/**
 * Part as the API has it. It ends before the frame at its end.
 * @typedef {{ readonly startSeconds: number, readonly endSeconds: number }} Part
 * @typedef {"startSeconds" | "endSeconds"} Bound
 */

const NO_TIME = gettext("Enter a time such as 1:02.5.");
/** @type {Bound[]} */
export const BOUNDS = ["startSeconds", "endSeconds"];
/** @type {Record<string, number>} */
const DIRECTIONS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 };

/**
 * Call `move` with the times that people give to bounds. It has to show the bounds, which removes
 * the fault of an earlier time. Arrow keys move a handle by a step, and by another one with Shift.
 * @param {ParentNode} root
 * @param {{ move: (bound: Bound, to_s: number) => void, step_s: number, shiftStep_s: number }} options
 * @param {AbortSignal} signal
 */
export function listenToBounds(root, { move, step_s, shiftStep_s }, signal) {
  for (const bound of BOUNDS) {
    const [handle, field] = inputsOf(root, bound);
    const readHandle = () => move(bound, Number(handle.value));
    const handleKey = (/** @type {KeyboardEvent} */ event) => {
      const direction = DIRECTIONS[event.key];
      if (!direction) return;
      event.preventDefault();
      move(bound, Number(handle.value) + direction * (event.shiftKey ? shiftStep_s : step_s));
    };
    const readField = () => {
      const to_s = parseStartTime_s(field.value);
      delete field.dataset.typed;
      if (to_s !== null) return move(bound, to_s);
      field.ariaInvalid = "true";
      setText(root, `[data-bound-fault=${bound}]`, NO_TIME);
      announce(NO_TIME);
    };
    handle.addEventListener("input", readHandle, { signal });
    handle.addEventListener("keydown", handleKey, { signal });
    const noteTyping = () => {
      field.dataset.typed = "";
    };
    field.addEventListener("input", noteTyping, { signal });
    field.addEventListener("change", readField, { signal });
  }
}

/**
 * Show the bounds of a part, or that none is chosen.
 * @param {ParentNode} root @param {Part | null} part @param {(at_s: number) => string} format
 */
export function showBounds(root, part, format) {
  for (const bound of BOUNDS) {
    const [handle, field] = inputsOf(root, bound);
    handle.hidden = !part;
    handle.value = String(part?.[bound] ?? 0);
    const text = part ? format(part[bound]) : "";
    handle.ariaValueText = text;
    // A time that is being typed stays.
    if (field.dataset.typed !== undefined) continue;
    field.value = text;
    field.ariaInvalid = null;
    setText(root, `[data-bound-fault=${bound}]`, "");
  }
}

/**
 * Return a part with a bound moved, inside the film, and at least as long as the shortest part.
 * @param {Part} part @param {Bound} bound @param {number} to_s
 * @param {number} shortest_s @param {number} film_s @returns {Part}
 */
export function moveBound({ startSeconds, endSeconds }, bound, to_s, shortest_s, film_s) {
  return bound === "startSeconds"
    ? { startSeconds: Math.max(Math.min(to_s, endSeconds - shortest_s), 0), endSeconds }
    : { startSeconds, endSeconds: Math.min(Math.max(to_s, startSeconds + shortest_s), film_s) };
}

/** Return the handle and the field. @param {ParentNode} root @param {Bound} bound */
function inputsOf(root, bound) {
  const inputs = [`[data-handle=${bound}]`, `[data-field=${bound}]`];
  return /** @type {[HTMLInputElement, HTMLInputElement]} */ (
    inputs.map((selector) => element(root, selector))
  );
}
