/**
 * Notice on the upload page of recordings that a crash has interrupted, hidden until there are any.
 */

import { findUnfinished } from "./recovery.js";

/** @type {import("../lifecycle.js").Start} */
export function startUnfinishedNotice(notice, signal) {
  if (!navigator.locks) return;
  findUnfinished(() => {
    notice.hidden = false;
  }, signal);
}
