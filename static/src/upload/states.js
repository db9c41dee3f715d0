/** How a transfer's state is shown: figure, words, and what can be done. Pure. */

import { uploadTrouble } from "./words.js";

/** @typedef {import("./row-view.js").Action} Action */
/**
 * `say` is for screen readers, which are not read the figures out.
 * @typedef {{ art?: import("./row-view.js").Art, figure: string, rest?: string,
 *   actions: Action[], say?: string }} Shown
 */

/**
 * @param {import("./transfer.js").Transfer} transfer
 * @returns {Shown | null} null for failures, which have words of their own
 */
export function shownState({ state, file, sent_bytes, trouble }) {
  const percent = `${Math.floor((sent_bytes / file.size) * 100)} %`;
  switch (state) {
    case "waiting":
      return {
        figure: "Waiting",
        rest: "starts when another upload has finished",
        actions: ["cancel"],
      };
    case "sending":
      return sending(percent, trouble, sent_bytes);
    case "paused":
      return {
        figure: `Paused at ${percent}`,
        actions: ["resume", "cancel"],
        say: `${file.name} is paused.`,
      };
    case "offline":
      return {
        figure: `Offline at ${percent}`,
        rest: "goes on by itself once you are connected again",
        actions: ["cancel"],
        say: "You are offline. The upload goes on by itself once you are connected again.",
      };
    case "confirming":
      return {
        figure: percent,
        rest: "checking that everything has arrived…",
        actions: ["cancel"],
      };
    case "sent":
      return {
        art: "good",
        figure: "Uploaded",
        actions: ["remove"],
        say: `${file.name} is uploaded.`,
      };
    case "cancelled":
      return { figure: "Cancelled", actions: ["retry", "remove"] };
    default:
      return null;
  }
}

/**
 * @param {string} percent
 * @param {Error | null} trouble that is being overcome
 * @param {number} sent_bytes
 * @returns {Shown}
 */
function sending(percent, trouble, sent_bytes) {
  const figure = sent_bytes ? percent : "Starting…";
  const rest = trouble ? `${uploadTrouble(trouble).title}; trying again by itself…` : "";
  return { figure, rest, actions: ["pause", "cancel"] };
}

/** An upload of another visit that is complete. @type {Shown} */
export const STORED = {
  art: "good",
  figure: "Uploaded",
  rest: "only publishing is missing",
  actions: ["remove"],
};

/**
 * The publish button and the words beside it.
 * @param {object} row
 * @param {boolean} row.isBusy publishing, or published
 * @param {boolean} row.isRefused
 * @param {boolean} row.isWaiting for the upload
 * @param {boolean} row.isStuck waiting for an upload that waits for the editor
 * @returns {{ label: string, isBusy: boolean, words: string }}
 */
export function shownSubmit({ isBusy, isRefused, isWaiting, isStuck }) {
  if (isRefused) {
    return { label: "Publish video", isBusy: true, words: "This file can’t be published." };
  }
  if (isBusy) return { label: "Publishing…", isBusy: true, words: "" };
  if (isStuck) {
    const words = "The upload needs your attention; publishing goes on after it.";
    return { label: "Publish video", isBusy: false, words };
  }
  if (!isWaiting) return { label: "Publish video", isBusy: false, words: "" };
  const words = "Your video is published as soon as the upload finishes. Keep this page open.";
  return { label: "Waiting for the upload…", isBusy: true, words };
}
