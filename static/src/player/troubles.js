/** What can keep a video from playing, how the kinds are told apart, and what people are told. */

/** @typedef {"network" | "decode" | "gone" | "unsupported"} Trouble */

const TIMEOUT_MS = 10_000;
/** Answers that say that there is no such stream for who asks. */
export const REFUSALS = [403, 404, 410];

/** @type {Record<Trouble, { title: string, text: string }>} */
export const WORDS = {
  network: {
    title: "The connection was lost",
    text: "The video can’t be loaded. Playback will resume when the connection is back.",
  },
  decode: {
    title: "Your browser couldn’t decode the video",
    text: "Try again, or use another quality or browser.",
  },
  gone: {
    title: "This video isn’t available",
    text: "It was deleted or made private, or it isn’t ready yet.",
  },
  unsupported: {
    title: "This browser can’t play the video",
    text: "It doesn’t support streaming. Use a current browser, or open the stream in a media player.",
  },
};

/**
 * Whether there is no such stream, as opposed to one that can't be reached.
 * @param {string} source @param {AbortSignal} stop
 */
export async function isGone(source, stop) {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(TIMEOUT_MS)]);
  const response = await fetch(source, { cache: "no-store", signal }).catch(() => null);
  return response !== null && REFUSALS.includes(response.status);
}
