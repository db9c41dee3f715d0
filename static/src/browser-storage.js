/**
 * JSON values in this browser's storage. If storage is full, blocked or missing (in a frame on
 * another site), values are lost without an error.
 */

/** Return a stored value. @param {string} key @returns {any} null if there is none */
export function readStored(key) {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** Store a value; undefined removes it. @param {string} key @param {unknown} value */
export function writeStored(key, value) {
  try {
    if (value === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Stored values are a convenience; the page works without them.
  }
}

/** Return the stored keys with this prefix. @param {string} prefix @returns {string[]} */
export function storedKeys(prefix) {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  } catch {
    return [];
  }
}
