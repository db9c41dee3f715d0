/**
 * Uploads that can be continued after a reload, a closed tab or a crash: localStorage keeps their
 * state, without the file, which has to be chosen again. A tab holds a lock for each of its
 * uploads, and the browser releases it however the tab ends.
 *
 * Limits: insecure contexts (plain http on another host) have no locks, so uploads of other tabs
 * are offered, too. The only harm is that parts are sent twice.
 */

import { readStored, storedKeys, writeStored } from "../browser-storage.js";
import { isKept } from "./selectors.js";

/** One entry for each upload, so that tabs do not overwrite each other's entries. */
const PREFIX = "portal.uploads.";
const LOCK_PREFIX = "portal.upload.";
const SAMPLE_BYTES = 2 ** 20;
/** Age at which an entry is removed with its details. */
const MAX_AGE_MS = 30 * 24 * 3600 * 1000;

/** @typedef {import("./upload.js").Upload} Upload */
/** @typedef {ReturnType<typeof savedOf>} Saved */

/** @type {Map<string, () => void>} gives back this page's lock of an upload */
const releases = new Map();

/** @returns {Saved[]} oldest first */
export function savedUploads() {
  const oldest_ms = Date.now() - MAX_AGE_MS;
  const found = [];
  for (const name of storedKeys(PREFIX)) {
    const saved = readStored(name);
    if (!saved || saved.saved_at < oldest_ms) writeStored(name, undefined);
    else found.push(saved);
  }
  return found.sort((one, other) => one.saved_at - other.saved_at);
}

/**
 * Wait until no other page uses an upload. A page that was just left may keep its locks for a
 * moment.
 * @param {string} id @param {AbortSignal} signal
 * @returns {Promise<Saved | null>} null when there is nothing to continue any more
 */
export async function released(id, signal) {
  const read = () => readStored(PREFIX + id);
  if (!navigator.locks) return read();
  return navigator.locks.request(LOCK_PREFIX + id, { signal }, read).catch(() => null);
}

/** Save a changed upload. @param {Upload} was @param {Upload} now */
export function keep(was, now) {
  const saved = savedOf(now);
  if (!isKept(now) || JSON.stringify(saved) === JSON.stringify(savedOf(was))) return;
  // An upload that can't be saved continues, but not after a reload.
  writeStored(PREFIX + now.id, saved);
}

/** @param {Upload} upload */
function savedOf({ phase, ...upload }) {
  const { id, key, fileName, size_bytes, contentType, fingerprint } = upload;
  const { details, request, picture, saved_at } = upload;
  const file = { fileName, size_bytes, contentType, fingerprint, picture };
  /** Whether storage has the whole file, which then waits to be published. */
  const isStored = phase === "sent";
  return { id, key, ...file, isStored, details, request, saved_at };
}

/** Remove a published or discarded upload. @param {string} id */
export function forget(id) {
  writeStored(PREFIX + id, undefined);
  releases.get(id)?.();
  releases.delete(id);
}

/** Lock an upload for this page until it is removed or the page closes. @param {string} id */
export function claim(id) {
  if (!navigator.locks || releases.has(id)) return;
  /** @type {Promise<void>} */
  const end = new Promise((resolve) => releases.set(id, resolve));
  navigator.locks.request(LOCK_PREFIX + id, () => end);
}

/** `crypto.randomUUID` is missing in insecure contexts. */
export function newId() {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
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
  // Insecure contexts have no digest; they use the time of the last change.
  if (!globalThis.crypto.subtle) return `modified-${file.lastModified}`;
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", sample)));
}

/**
 * @param {{ fileName: string, size_bytes: number, fingerprint: string }} known @param {File} file
 * @returns {Promise<boolean>} whether this is the file that was being uploaded
 */
export async function matches({ fileName, size_bytes, fingerprint }, file) {
  if (fileName !== file.name || size_bytes !== file.size) return false;
  try {
    // Without a fingerprint nothing was sent, because the file could not be read.
    return !fingerprint || fingerprint === (await fingerprintOf(file));
  } catch {
    // The file can't be read; sending it reports the error.
    return false;
  }
}

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
