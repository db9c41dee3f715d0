/** The panel that says who may see the video: tells what came of it, and what got in the way. */

import { followRequests } from "./form-requests.js";
import { announce } from "./live.js";

/**
 * @param {HTMLElement} panel
 * @param {AbortSignal} signal
 */
export function accessPanel(panel, signal) {
  const form = panel.querySelector("form");
  if (form) followRequests(form, signal);
  const state = panel.querySelector("[data-state]")?.textContent?.trim();
  if ("saved" in panel.dataset) announce(`Saved. ${state}`);
}
