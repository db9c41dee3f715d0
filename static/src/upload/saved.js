/**
 * Uploads that can be continued after a reload, a closed tab or a crash: what is known of each is
 * kept in localStorage, without the file, which has to be chosen again. A tab holds a lock for
 * each upload it works on, and the browser gives it back however the tab ends.
 *
 * Limits: outside secure contexts (plain http on another host) browsers have no locks, so there
 * other tabs' uploads are offered too. That does no harm but sending parts twice.
 */

import { readStored, storedKeys, writeStored } from "../browser-storage.js";
import { isKept } from "./selectors.js";

/** One entry an upload, so that tabs that write at once do not overwrite each other's. */
const PREFIX = "portal.uploads.";
const LOCK_PREFIX = "portal.upload.";
const SAMPLE_BYTES = 2 ** 20;
/** Then the entry is removed, with the words that were typed. */
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
 * Waits until no other page works on an upload. One that has just been left may hold on to its
 * uploads for a moment.
 * @param {string} id @param {AbortSignal} signal
 * @returns {Promise<Saved | null>} null when there is nothing to continue any more
 */
export async function released(id, signal) {
  const read = () => readStored(PREFIX + id);
  if (!navigator.locks) return read();
  return navigator.locks.request(LOCK_PREFIX + id, { signal }, read).catch(() => null);
}

/** Saves what has changed. @param {Upload} was @param {Upload} now */
export function keep(was, now) {
  const saved = savedOf(now);
  if (!isKept(now) || JSON.stringify(saved) === JSON.stringify(savedOf(was))) return;
  // Where it can't be kept the upload goes on; it only can't be continued after a reload.
  writeStored(PREFIX + now.id, saved);
}

/** @param {Upload} upload */
function savedOf({ phase, ...upload }) {
  const { id, key, fileName, size_bytes, contentType, fingerprint } = upload;
  const { details, request, picture, saved_at } = upload;
  const file = { fileName, size_bytes, contentType, fingerprint, picture };
  /** Storage has the whole file, which only waits to be published. */
  const isStored = phase === "sent";
  return { id, key, ...file, isStored, details, request, saved_at };
}

/** Published or discarded: no longer to be continued. @param {string} id */
export function forget(id) {
  writeStored(PREFIX + id, undefined);
  releases.get(id)?.();
  releases.delete(id);
}

/** This page works on the upload, until it is forgotten or the page is gone. @param {string} id */
export function claim(id) {
  if (!navigator.locks || releases.has(id)) return;
  /** @type {Promise<void>} */
  const end = new Promise((resolve) => releases.set(id, resolve));
  navigator.locks.request(LOCK_PREFIX + id, () => end);
}

/** Unlike `crypto.randomUUID`, also there outside secure contexts. */
export function newId() {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}

/**
 * What tells one file from another of the same name and size.
 * @param {File} file @returns {Promise<string>} SHA-256 over its size, its first and its last MiB
 * @throws {DOMException} the file can't be read (any more)
 */
export async function fingerprintOf(file) {
  const first = file.slice(0, SAMPLE_BYTES);
  const last = file.slice(Math.max(0, file.size - SAMPLE_BYTES));
  const sample = await new Blob([String(file.size), first, last]).arrayBuffer();
  // Only secure contexts have it; elsewhere the time of the last change has to do.
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
