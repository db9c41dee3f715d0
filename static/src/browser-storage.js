/**
 * JSON values in this browser's storage. Storage may be full, blocked or missing (in a frame on
 * another site); then values are not kept, without an error.
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
    // A value that can't be saved is not worth an error.
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
