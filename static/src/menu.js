/** A <details> that is a menu: Escape closes it, and so does a press elsewhere. */

/** @type {import("./lifecycle.js").Start} */
export function menu(details, signal) {
  if (!(details instanceof HTMLDetailsElement)) return;
  details.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !details.open) return;
      event.stopPropagation();
      details.open = false;
      details.querySelector("summary")?.focus();
    },
    { signal },
  );
  document.addEventListener(
    "click",
    (event) => {
      const isInside = event.target instanceof Node && details.contains(event.target);
      // A choice was made, which leads elsewhere.
      const isLink = event.target instanceof Element && event.target.closest("[data-opens]");
      if (!isInside || isLink) details.open = false;
    },
    { signal },
  );
}
