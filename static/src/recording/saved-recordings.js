/**
 * Recordings that can be continued after a crash. localStorage has what is known of each, its file
 * the rest (`spool.js`). A tab holds a lock for each of its recordings, which the browser releases
 * however the tab ends.
 */

import { readStored, storedKeys, writeStored } from "../browser-storage.js";

const PREFIX = "portal.recordings.";
const LOCK_PREFIX = "portal.recording.";

/**
 * Saved recording. `key` is that of its upload, empty before the upload begins; `request` the first
 * request to publish it, and `isSafe` means that it became a video.
 * @typedef {{ id: string, key: string, name: string, started_at: number, duration_s: number,
 *   request: import("../publishing/upload.js").Upload["request"], isSafe: boolean }} Saved
 */

/** Functions that release this page's locks, by recording. @type {Map<string, () => void>} */
const releases = new Map();

/** Return the name of the file of a recording. @param {string} id */
export const fileNameOf = (id) => `${id}.mp4`;

/** Return what is known of the recordings. @returns {Saved[]} */
export function savedRecordings() {
  return storedKeys(PREFIX).map(readStored).filter(Boolean);
}

/** @param {Saved} saved */
export function saveRecording(saved) {
  writeStored(PREFIX + saved.id, saved);
}

/** Forget a recording whose file was removed. @param {string} id */
export function removeRecording(id) {
  writeStored(PREFIX + id, undefined);
  releases.get(id)?.();
  releases.delete(id);
}

/**
 * Lock a recording for this page, until it is removed or the page closes.
 * @param {string} id @returns {Promise<boolean>} false if another page has locked it
 */
export function lockRecording(id) {
  return new Promise((resolve) => {
    /** @param {Lock | null} lock */
    const hold = (lock) => {
      resolve(lock !== null);
      return lock && new Promise((release) => releases.set(id, () => release(null)));
    };
    navigator.locks.request(LOCK_PREFIX + id, { ifAvailable: true }, hold);
  });
}

/**
 * Wait until no page has locked a recording.
 * @param {string} id @param {AbortSignal} signal @returns {Promise<boolean>} false if stopped
 */
export async function waitForRelease(id, signal) {
  return navigator.locks.request(LOCK_PREFIX + id, { signal }, () => true).catch(() => false);
}
