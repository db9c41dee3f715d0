/** Order of a series: rows that people drag by a handle. Buttons move them without scripts, too. */

import { announce, closest, element } from "../dom.js";

/**
 * Let people drag the rows of a list, and announce the change that has brought this list.
 * @param {HTMLElement} list @param {AbortSignal} signal
 */
export function startOrder(list, signal) {
  if (list.dataset.announce) announce(list.dataset.announce);
  for (const handle of list.querySelectorAll("[data-handle]")) {
    if (!(handle instanceof HTMLElement)) continue;
    handle.hidden = false;
    const start = (/** @type {PointerEvent} */ event) => drag(list, handle, event);
    handle.addEventListener("pointerdown", start, { signal });
  }
}

/**
 * Move the row of a handle with the pointer; send its new place when the pointer is released.
 * @param {HTMLElement} list @param {HTMLElement} handle @param {PointerEvent} start
 */
function drag(list, handle, start) {
  const row = closest(handle, "[data-row]");
  if (!row || start.button !== 0) return;
  start.preventDefault();
  const former = rowsOf(list);
  const ended = new AbortController();
  const { signal } = ended;
  row.dataset.dragged = "";

  const end = () => {
    ended.abort();
    delete row.dataset.dragged;
  };
  const cancel = () => {
    end();
    for (const one of former) one.parentElement?.append(one);
  };
  const follow = (/** @type {PointerEvent} */ { clientY }) => {
    const others = rowsOf(list).filter((one) => one !== row);
    const below = others.find((one) => clientY < middleOf(one));
    row.parentElement?.insertBefore(row, below ?? null);
  };
  const drop = () => {
    end();
    const index = rowsOf(list).indexOf(row);
    if (index !== former.indexOf(row)) send(row, index);
  };
  // A row that moves in the page would lose the capture of the pointer.
  document.addEventListener("pointermove", follow, { signal });
  document.addEventListener("pointerup", drop, { signal });
  document.addEventListener("pointercancel", cancel, { signal });
  const handleKey = (/** @type {KeyboardEvent} */ { key }) => key === "Escape" && cancel();
  document.addEventListener("keydown", handleKey, { signal });
}

/** @param {HTMLElement} list @returns {HTMLElement[]} */
function rowsOf(list) {
  return [...list.querySelectorAll("[data-row]")].filter((row) => row instanceof HTMLElement);
}

/** @param {HTMLElement} row */
function middleOf(row) {
  const { top, height } = row.getBoundingClientRect();
  return top + height / 2;
}

/** Send the form that moves a row. @param {HTMLElement} row @param {number} index */
function send(row, index) {
  const form = element(row, "[data-move]");
  const field = form.querySelector("[name=to]");
  if (!(form instanceof HTMLFormElement) || !(field instanceof HTMLInputElement)) return;
  field.disabled = false;
  field.value = String(index);
  form.requestSubmit();
}
