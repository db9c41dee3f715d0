/**
 * Pages that poll do what a busy portal asks of them: after an answer with 429 or 503 they wait
 * as long as its Retry-After says. What someone does by hand is sent at once all the same.
 */

const BUSY_STATUSES = new Set([429, 503]);
const LONGEST_PAUSE_S = 60;
/** Pages that were turned away together must not come back together. */
const SPREAD_S = 1;

let paused_until = 0;

/** Follows all the requests that htmx makes for this page. */
export function pollPolitely() {
  document.addEventListener("htmx:before:request", (event) => {
    const isPoll = contextOf(event).sourceEvent?.type === "every";
    if (isPoll && performance.now() < paused_until) event.preventDefault();
  });
  document.addEventListener("htmx:after:request", (event) => {
    const { status, headers } = contextOf(event).response;
    if (!BUSY_STATUSES.has(status)) return;
    const asked_s = Number.parseInt(headers.get("Retry-After") ?? "", 10) || 0;
    const pause_s = Math.min(asked_s, LONGEST_PAUSE_S) + Math.random() * SPREAD_S;
    paused_until = performance.now() + pause_s * 1000;
  });
}

/**
 * What htmx tells of a request; it has no types for that.
 * @param {Event} event
 * @returns {any}
 */
function contextOf(event) {
  return /** @type {CustomEvent} */ (event).detail.ctx;
}
