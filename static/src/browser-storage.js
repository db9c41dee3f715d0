/**
 * What is kept in this browser, as JSON. Storage may be full, blocked or not there at all (a frame
 * on another site): then nothing is kept, and nothing else changes.
 */

/** @param {string} key @returns {any} null where nothing is kept */
export function readStored(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} key @param {unknown} value undefined removes it */
export function writeStored(key, value) {
  try {
    if (value === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Remembering is a comfort, not worth a word when it can't be had.
  }
}

/** @param {string} prefix @returns {string[]} */
export function storedKeys(prefix) {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  } catch {
    return [];
  }
}
