/**
 * Uploads that can be continued after a reload, a closed tab or a crash: what is known of each is
 * kept in localStorage, without the file, which has to be chosen again. A tab holds a lock for
 * each upload it works on, and the browser gives it back however the tab ends.
 *
 * Limits: outside secure contexts (plain http on another host) browsers have no locks, so there
 * other tabs' uploads are offered too. That does no harm but sending parts twice.
 */

import { uploadIdOf } from "./upload-api.js";

/** An entry for each upload, so that tabs writing at once do not overwrite each other's. */
const PREFIX = "portal.uploads.";
const LOCK_PREFIX = "portal.upload.";
const SAMPLE_BYTES = 2 ** 20;
/** What lies about for longer is not continued any more, and its typed words are no one's business. */
const MAX_AGE_MS = 30 * 24 * 3600 * 1000;

/**
 * @typedef {object} Saved
 * @property {string} id of the Transfer
 * @property {string} key in storage
 * @property {string} uploadId
 * @property {string} fileName
 * @property {number} size_bytes
 * @property {string} contentType
 * @property {string} fingerprint
 * @property {boolean} isStored storage has the whole file; it only waits to be published
 * @property {any} details what was typed about it, or null
 * @property {any} request to publish it, which the portal may have done; or null
 * @property {number} saved_at milliseconds since the epoch
 */

/** What a Transfer itself knows. @typedef {Omit<Saved, "uploadId" | "details" | "request" | "saved_at">} Begun */

/** @type {Map<string, () => void>} gives back this page's lock of an upload */
const releases = new Map();
/** @type {Map<string, any>} details typed before the upload was saved for the first time */
const early = new Map();

/**
 * What tells one file from another of the same name and size.
 * @param {File} file
 * @returns {Promise<string>} SHA-256 over its size, its first and its last MiB
 * @throws {DOMException} the file can't be read (any more)
 */
export async function fingerprint(file) {
  const first = file.slice(0, SAMPLE_BYTES);
  const last = file.slice(Math.max(0, file.size - SAMPLE_BYTES));
  const sample = await new Blob([String(file.size), first, last]).arrayBuffer();
  // Only secure contexts have it; a weaker sum still tells files of equal name and size apart.
  if (!globalThis.crypto.subtle) return `fnv-${fnv1a(new Uint8Array(sample))}`;
  const digest = await crypto.subtle.digest("SHA-256", sample);
  return hex(new Uint8Array(digest));
}

/** @returns {Promise<Saved[]>} oldest first, without those that an open page is working on */
export async function savedUploads() {
  const busy = await lockedIds();
  const oldest_ms = Date.now() - MAX_AGE_MS;
  const found = [];
  for (const name of storedNames()) {
    const saved = read(name.slice(PREFIX.length));
    if (!saved || saved.saved_at < oldest_ms) localStorage.removeItem(name);
    else if (!busy.has(saved.id)) found.push(saved);
  }
  return found.sort((one, other) => one.saved_at - other.saved_at);
}

/**
 * Keeps what was typed with the upload.
 * @param {string} id
 * @param {unknown} details anything JSON can hold
 */
export function saveDetails(id, details) {
  const saved = read(id);
  if (saved) write({ ...saved, details });
  else early.set(id, details);
}

/**
 * Keeps a request to publish until its answer is there.
 * @param {string} id
 * @param {unknown} request anything JSON can hold; null for none
 */
export function saveRequest(id, request) {
  const saved = read(id);
  if (saved) write({ ...saved, request });
}

/**
 * Published or discarded: no longer to be continued.
 * @param {string} id
 */
export function forget(id) {
  early.delete(id);
  storage()?.removeItem(PREFIX + id);
  releases.get(id)?.();
  releases.delete(id);
}

/**
 * @param {Begun} saved
 * @param {File} file
 * @returns {Promise<boolean>} whether this is the file that was being uploaded
 */
export async function matches(saved, file) {
  if (saved.fileName !== file.name || saved.size_bytes !== file.size) return false;
  // Without one nothing was sent: the file could not be read from the beginning.
  return !saved.fingerprint || saved.fingerprint === (await fingerprint(file));
}

/**
 * Writes down how far a Transfer is; the rest stays as it was.
 * @param {Begun} state
 */
export function save(state) {
  const before = read(state.id);
  const details = before?.details ?? early.get(state.id) ?? null;
  early.delete(state.id);
  const saved_at = before?.saved_at ?? Date.now();
  const request = before?.request ?? null;
  write({ ...state, uploadId: uploadIdOf(state.key), details, request, saved_at });
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

/** @param {Uint8Array} bytes */
function hex(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
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

/**
 * @param {string} id
 * @returns {Saved | null}
 */
function read(id) {
  try {
    return JSON.parse(storage()?.getItem(PREFIX + id) ?? "null");
  } catch {
    return null;
  }
}

/** @param {Saved} saved */
function write(saved) {
  try {
    storage()?.setItem(PREFIX + saved.id, JSON.stringify(saved));
  } catch {
    // Full. The upload goes on; it only can't be continued after a reload.
  }
}

/**
 * FNV-1a, twice with different starts.
 * @param {Uint8Array} bytes
 */
function fnv1a(bytes) {
  let one = 0x811c9dc5;
  let other = 0x9747b28c;
  for (const byte of bytes) {
    one = Math.imul(one ^ byte, 0x01000193);
    other = Math.imul(other ^ byte, 0x01000193);
  }
  return `${(one >>> 0).toString(16)}${(other >>> 0).toString(16)}`;
}
