/**
 * Saved uploads, which can be continued after a reload, a closed tab or a crash: localStorage keeps
 * their state, but not the file, which has to be chosen again. A tab holds a lock for each of its
 * uploads, which the browser releases however the tab ends.
 *
 * Limit: insecure contexts (plain http on another host) have no locks, so that uploads of other
 * tabs are also offered. The only harm is that parts are sent twice.
 */

import { readStored, storedKeys, writeStored } from "../browser-storage.js";
import { isKept } from "./selectors.js";

/**
 * Prefix of an entry. Each upload has its own, so that tabs do not overwrite each other's state.
 */
const PREFIX = "portal.uploads.";
const LOCK_PREFIX = "portal.upload.";
const SAMPLE_BYTES = 2 ** 20;
/** Age at which an entry is removed with its details. */
const MAX_AGE_MS = 30 * 24 * 3600 * 1000;

/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {ReturnType<typeof toSaved>} Saved */

/** Functions that release this page's locks, by upload. @type {Map<string, () => void>} */
const releases = new Map();

/** Return the saved uploads, oldest first. @returns {Saved[]} */
export function savedUploads() {
  const oldest_ms = Date.now() - MAX_AGE_MS;
  const uploads = [];
  for (const name of storedKeys(PREFIX)) {
    const saved = readStored(name);
    if (!saved || saved.saved_at < oldest_ms) writeStored(name, undefined);
    else uploads.push(saved);
  }
  return uploads.sort((upload, other) => upload.saved_at - other.saved_at);
}

/**
 * Wait until no other page uses an upload, and return its state. A page that was just left may hold
 * its locks for a moment.
 * @param {string} id @param {AbortSignal} signal
 * @returns {Promise<Saved | null>} null if the upload was published or discarded in the meantime
 */
export async function waitForRelease(id, signal) {
  const read = () => readStored(PREFIX + id);
  if (!navigator.locks) return read();
  return navigator.locks.request(LOCK_PREFIX + id, { signal }, read).catch(() => null);
}

/** Save a changed upload. @param {Upload} before @param {Upload} now */
export function saveChanges(before, now) {
  const saved = toSaved(now);
  if (!isKept(now) || JSON.stringify(saved) === JSON.stringify(toSaved(before))) return;
  // If the browser can't save it, the upload can't continue after a reload.
  writeStored(PREFIX + now.id, saved);
}

/** Return the state that is saved of an upload. @param {Upload} upload */
function toSaved({ phase, ...upload }) {
  const { id, key, fileName, size_bytes, contentType, fingerprint } = upload;
  const { details, request, picture, saved_at, file_bytes, repackedFrom, trim, still } = upload;
  const made = { repackedFrom, trim, still };
  const file = { fileName, size_bytes, file_bytes, contentType, fingerprint, picture, ...made };
  /** Whether storage has the whole file, which then waits to be published. */
  const isStored = phase === "sent";
  return { id, key, ...file, isStored, details, request, saved_at };
}

/** Remove a published or discarded upload. @param {string} id */
export function removeSaved(id) {
  writeStored(PREFIX + id, undefined);
  releases.get(id)?.();
  releases.delete(id);
}

/** Lock an upload for this page until it is removed or the page closes. @param {string} id */
export function lockUpload(id) {
  if (!navigator.locks || releases.has(id)) return;
  /** @type {Promise<void>} */
  const lockEnd = new Promise((resolve) => releases.set(id, resolve));
  navigator.locks.request(LOCK_PREFIX + id, () => lockEnd);
}

/** Return a random id. Insecure contexts have no `crypto.randomUUID`. */
export function newId() {
  return toHex(crypto.getRandomValues(new Uint8Array(16)));
}

/**
 * Return a value that distinguishes files of the same name and size.
 * @param {File} file @returns {Promise<string>} SHA-256 over its size, its first and its last MiB
 * @throws {DOMException} the file can't be read (any more)
 */
export async function fingerprintOf(file) {
  const first = file.slice(0, SAMPLE_BYTES);
  const last = file.slice(Math.max(0, file.size - SAMPLE_BYTES));
  const sample = await new Blob([String(file.size), first, last]).arrayBuffer();
  // Insecure contexts have no digest, so they compare the time of the last change.
  if (!globalThis.crypto.subtle) return `modified-${file.lastModified}`;
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", sample)));
}

/**
 * Return whether a file is that of an upload.
 * @param {{ fileName: string, size_bytes: number, file_bytes?: number, fingerprint: string }} upload
 * @param {File} file
 * @returns {Promise<boolean>}
 */
export async function isSameFile({ fileName, size_bytes, file_bytes, fingerprint }, file) {
  if (fileName !== file.name || (file_bytes ?? size_bytes) !== file.size) return false;
  try {
    // Without a fingerprint nothing was sent, because the file could not be read.
    return !fingerprint || fingerprint === (await fingerprintOf(file));
  } catch {
    // The file can't be read; sending it reports the error.
    return false;
  }
}

/** @param {Uint8Array} bytes */
function toHex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
