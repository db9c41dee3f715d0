/**
 * Uploads that can be continued after a reload, a closed tab or a crash: what is known of each is
 * kept in localStorage, without the file, which has to be chosen again. A tab holds a lock for
 * each upload it works on, and the browser gives it back however the tab ends.
 *
 * Limits: outside secure contexts (plain http on another host) browsers have no locks, so there
 * other tabs' uploads are offered too. That does no harm but sending parts twice.
 */

import { uploadIdOf } from "./api.js";
import { isKept } from "./selectors.js";

/** An entry for each upload, so that tabs writing at once do not overwrite each other's. */
const PREFIX = "portal.uploads.";
const LOCK_PREFIX = "portal.upload.";
const SAMPLE_BYTES = 2 ** 20;
/** Typing is saved in its pauses. */
const SAVE_AFTER_MS = 300;
/** After this it is not continued any more, and its typed words are no one's business. */
const MAX_AGE_MS = 30 * 24 * 3600 * 1000;

/** @typedef {import("./upload.js").Upload} Upload */
/**
 * @typedef {object} Saved
 * @property {string} id
 * @property {string} key in storage
 * @property {string} uploadId the portal's own
 * @property {string} fileName
 * @property {number} size_bytes
 * @property {string} contentType
 * @property {string} fingerprint
 * @property {boolean} isStored storage has the whole file; it only waits to be published
 * @property {Upload["details"] | null} details what was typed about it
 * @property {Upload["request"]} request to publish it, which the portal may have done
 * @property {number} saved_at milliseconds since the epoch
 */

/** @type {Map<string, { upload: Upload, timer: ReturnType<typeof setTimeout> }>} */
const unsaved = new Map();
/** @type {Map<string, () => void>} gives back this page's lock of an upload */
const releases = new Map();

/**
 * @returns {Promise<{ found: Saved[], busy: string[] }>} those to be continued, oldest first, and
 *   the ids of those that another page works on
 */
export async function savedUploads() {
  const locked = await lockedIds();
  const oldest_ms = Date.now() - MAX_AGE_MS;
  const found = [];
  for (const name of storedNames()) {
    const saved = read(name);
    if (!saved || saved.saved_at < oldest_ms) localStorage.removeItem(name);
    else if (!locked.has(saved.id)) found.push(saved);
  }
  found.sort((one, other) => one.saved_at - other.saved_at);
  return { found, busy: [...locked].filter((id) => !releases.has(id)) };
}

/**
 * @param {string} id of an upload that another page works on
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>} true once it no longer does; false when waiting was broken off
 */
export async function isReleased(id, signal) {
  const wait = navigator.locks.request(LOCK_PREFIX + id, { signal }, () => true);
  return wait.catch(() => false);
}

/**
 * Saves what has changed: what was typed a little later, all else at once.
 * @param {Upload} was
 * @param {Upload} now
 */
export function keep(was, now) {
  if (!isKept(now)) return;
  const isSame =
    was.key === now.key &&
    was.request === now.request &&
    (was.phase === "sent") === (now.phase === "sent");
  if (isSame && was.details === now.details) return;
  clearTimeout(unsaved.get(now.id)?.timer);
  const timer = setTimeout(() => saveNow(now.id), SAVE_AFTER_MS);
  unsaved.set(now.id, { upload: now, timer });
  if (!isSame) saveNow(now.id);
}

/** Saves what was typed last: the page may be about to go. */
export function saveAll() {
  for (const id of unsaved.keys()) saveNow(id);
}

/** @param {string} id */
function saveNow(id) {
  const { upload, timer } = unsaved.get(id) ?? {};
  clearTimeout(timer);
  unsaved.delete(id);
  if (upload) write(upload);
}

/** @param {Upload} upload */
function write(upload) {
  const { id, key, fileName, size_bytes, contentType, fingerprint, phase } = upload;
  const { details, request, saved_at } = upload;
  const known = { id, key, uploadId: uploadIdOf(key), fileName, size_bytes, contentType };
  const saved = { ...known, fingerprint, isStored: phase === "sent", details, request, saved_at };
  try {
    storage()?.setItem(PREFIX + id, JSON.stringify(saved));
  } catch {
    // Full. The upload goes on; it only can't be continued after a reload.
  }
}

/** Published or given up: no longer to be continued. @param {string} id */
export function forget(id) {
  clearTimeout(unsaved.get(id)?.timer);
  unsaved.delete(id);
  storage()?.removeItem(PREFIX + id);
  releases.get(id)?.();
  releases.delete(id);
}

/**
 * Tells other tabs that this page works on the upload, until it is forgotten or the page is gone.
 * @param {string} id
 */
export function claim(id) {
  if (!navigator.locks || releases.has(id)) return;
  /** @type {Promise<void>} */
  const released = new Promise((resolve) => releases.set(id, resolve));
  navigator.locks.request(LOCK_PREFIX + id, () => released);
}

/** Unlike `crypto.randomUUID`, also there outside secure contexts. */
export function newId() {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}

/**
 * What tells one file from another of the same name and size.
 * @param {File} file
 * @returns {Promise<string>} SHA-256 over its size, its first and its last MiB
 * @throws {DOMException} the file can't be read (any more)
 */
export async function fingerprintOf(file) {
  const first = file.slice(0, SAMPLE_BYTES);
  const last = file.slice(Math.max(0, file.size - SAMPLE_BYTES));
  const sample = await new Blob([String(file.size), first, last]).arrayBuffer();
  // Only secure contexts have it; a weaker sum still tells files of equal name and size apart.
  if (!globalThis.crypto.subtle) return `fnv-${fnv1a(new Uint8Array(sample))}`;
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", sample)));
}

/**
 * @param {{ fileName: string, size_bytes: number, fingerprint: string }} known
 * @param {File} file
 * @returns {Promise<boolean>} whether this is the file that was being uploaded
 */
export async function matches({ fileName, size_bytes, fingerprint }, file) {
  if (fileName !== file.name || size_bytes !== file.size) return false;
  try {
    // Without one nothing was sent: the file could not be read from the beginning.
    return !fingerprint || fingerprint === (await fingerprintOf(file));
  } catch {
    // It can't be read; sending it will say so.
    return false;
  }
}

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** FNV-1a, twice with different starts. @param {Uint8Array} bytes */
function fnv1a(bytes) {
  let one = 0x811c9dc5;
  let other = 0x9747b28c;
  for (const byte of bytes) {
    one = Math.imul(one ^ byte, 0x01000193);
    other = Math.imul(other ^ byte, 0x01000193);
  }
  return `${(one >>> 0).toString(16)}${(other >>> 0).toString(16)}`;
}

/** @returns {Promise<Set<string>>} */
async function lockedIds() {
  const { held = [] } = (await navigator.locks?.query()) ?? {};
  const names = held.map((lock) => lock.name ?? "").filter((name) => name.startsWith(LOCK_PREFIX));
  return new Set(names.map((name) => name.slice(LOCK_PREFIX.length)));
}

/** @returns {Storage | null} null where the browser's settings forbid it */
function storage() {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

function storedNames() {
  return Object.keys(storage() ?? {}).filter((name) => name.startsWith(PREFIX));
}

/** @param {string} name @returns {Saved | null} */
function read(name) {
  try {
    return JSON.parse(storage()?.getItem(name) ?? "null");
  } catch {
    return null;
  }
}
