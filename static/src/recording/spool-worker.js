/**
 * Worker that writes one recording to a file of the browser's own file system (OPFS), where only
 * workers can write at once and to the disk. Answers each message in order.
 */

import { wholeLength } from "./fragments.js";

/** Longest time that written bytes stay in memory: a crash loses no more. */
const FLUSH_MS = 1_000;

/**
 * @typedef {{ getSize: () => number, truncate: (size: number) => void, flush: () => void,
 *   close: () => void, read: (buffer: Uint8Array, options: { at: number }) => number,
 *   write: (buffer: Uint8Array, options: { at: number }) => number }} AccessHandle
 */

/** @type {AccessHandle} */
let file;
let size_bytes = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let flushTimer;

/** @type {Record<string, (message: any) => unknown>} */
const actions = {
  /** Open a file, without the torn end that a crash leaves, and return its size. */
  async open({ folder, name }) {
    const root = await navigator.storage.getDirectory();
    const directory = await root.getDirectoryHandle(folder, { create: true });
    const handle = /** @type {any} */ (await directory.getFileHandle(name, { create: true }));
    file = await handle.createSyncAccessHandle();
    return actions.cut?.({});
  },

  /** Remove what follows the last whole fragment, and return the size. */
  cut() {
    size_bytes = wholeLength(file.getSize(), read);
    file.truncate(size_bytes);
    flush();
    return size_bytes;
  },

  write({ bytes }) {
    let isWhole = false;
    try {
      isWhole = file.write(bytes, { at: size_bytes }) === bytes.length;
    } finally {
      if (!isWhole) file.truncate(size_bytes);
    }
    if (!isWhole) throw new DOMException("the disk is full", "QuotaExceededError");
    size_bytes += bytes.length;
    flushTimer ??= setTimeout(flush, FLUSH_MS);
  },

  read: ({ start, end }) => read(start, end),

  close: () => file.close(),
};

/** @param {number} start @param {number} end */
function read(start, end) {
  const bytes = new Uint8Array(end - start);
  return bytes.subarray(0, file.read(bytes, { at: start }));
}

/** Write all bytes to the disk, and tell the page how many can be sent. */
function flush() {
  clearTimeout(flushTimer);
  flushTimer = undefined;
  file.flush();
  postMessage({ safe_bytes: size_bytes });
}

globalThis.addEventListener("message", async ({ data: { number, action, ...message } }) => {
  try {
    postMessage({ number, result: await actions[action]?.(message) });
  } catch (error) {
    postMessage({ number, error });
  }
});
