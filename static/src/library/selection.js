/** Which rows of a table are chosen: how many that is, and all of the page at once. */

/** @type {import("../lifecycle.js").Start} */
export function selection(table, signal) {
  const form = table.closest("form");
  const every = table.querySelector("[data-select-all]");
  const all = every?.querySelector("input");
  if (!form || !(every instanceof HTMLElement) || !all) return;
  const boxes = [...table.querySelectorAll("tbody input[type=checkbox]")].filter(
    (box) => box instanceof HTMLInputElement,
  );
  every.hidden = false;
  const count = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && !all.checked;
    write(form, "[data-count]", chosen ? `${chosen} selected` : "");
    write(form, "[data-question]", `Delete ${chosen === 1 ? "1 video" : `${chosen} videos`}?`);
  };
  table.addEventListener(
    "change",
    (event) => {
      if (event.target === all) for (const box of boxes) box.checked = all.checked;
      count();
    },
    { signal },
  );
  count();
}

/**
 * @param {HTMLElement} form
 * @param {string} selector
 * @param {string} words
 */
function write(form, selector, words) {
  const place = form.querySelector(selector);
  if (place) place.textContent = words;
}
