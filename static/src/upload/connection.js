/**
 * Whether uploads get through where the browser says that it is offline. It means by that a
 * machine without any network; a portal and its storage on that very machine are there all the same.
 */

import { anySignal } from "../any-signal.js";

const TIMEOUT_MS = 5_000;

/**
 * @param {string[]} urls
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>} whether each of them is answered, in whatever way
 */
export async function areReachable(urls, signal) {
  const init = /** @type {RequestInit} */ ({
    method: "HEAD",
    mode: "no-cors",
    cache: "no-store",
    signal: anySignal([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  try {
    await Promise.all(urls.map((url) => fetch(url, init)));
    return true;
  } catch {
    return false;
  }
}
