/** Reasons why a video can't be played, with their messages. */

import { gettext } from "../messages.js";
import { Refused, send } from "../requests.js";

/** @typedef {"network" | "decode" | "gone" | "unsupported"} Trouble */

const TIMEOUT_MS = 10_000;
/** Statuses of a stream that doesn't exist, or that the viewer must not watch. */
export const GONE_STATUSES = [403, 404, 410];

/** @type {Record<Trouble, { title: string, text: string }>} */
export const MESSAGES = {
  network: {
    title: gettext("The connection was lost"),
    text: gettext("The video can’t be loaded. Playback will resume when the connection is back."),
  },
  decode: {
    title: gettext("Your browser couldn’t decode the video"),
    text: gettext("Try again, or use another quality or browser."),
  },
  gone: {
    title: gettext("This video isn’t available"),
    text: gettext("It was deleted or made private, or it isn’t ready yet."),
  },
  unsupported: {
    title: gettext("This browser can’t play the video"),
    text: gettext(
      "It doesn’t support streaming. Use a current browser, or open the stream in a media player.",
    ),
  },
};

/**
 * Return whether the stream doesn't exist, as opposed to one that can't be reached.
 * @param {string} source @param {AbortSignal} stop
 */
export async function isGone(source, stop) {
  /** @type {import("../requests.js").Options} */
  const options = { signal: stop, timeout_ms: TIMEOUT_MS, cache: "no-store" };
  const isRefusal = (/** @type {unknown} */ error) =>
    error instanceof Refused && GONE_STATUSES.includes(error.status);
  return send("GET", source, () => false, options).catch(isRefusal);
}
