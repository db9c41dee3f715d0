/**
 * Shows what is typed as a password: <button data-shows="id of the field" hidden>, which is there
 * from now on. A form that is sent hides it again, so that the browser offers to keep it.
 */

/** @type {import("../lifecycle.js").Start} */
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
