/**
 * File of a recording in the browser's own file system (OPFS). Whatever is recorded is written to
 * it first, and sent from it.
 */

const FOLDER = "recordings";

/** @typedef {{ resolve: (result: any) => void, reject: (error: unknown) => void }} Request */

/** Return the files of all recordings. @returns {Promise<File[]>} */
export async function spooledFiles() {
  const folder = await openFolder();
  const files = [];
  // Types of iterators are missing in the library of tsc.
  for await (const handle of /** @type {any} */ (folder).values()) files.push(handle.getFile());
  return Promise.all(files);
}

/** Remove the file of a recording, which no page has open. @param {string} name */
export async function removeSpooled(name) {
  await (await openFolder()).removeEntry(name).catch(() => {});
}

async function openFolder() {
  const root = await navigator.storage.getDirectory();
  return root.getDirectoryHandle(FOLDER, { create: true });
}

export class Spool {
  /** Written bytes. */
  size_bytes = 0;
  /** Bytes on the disk, which a crash keeps. */
  #safe_bytes = 0;
  /** The whole file, when nothing more is written. @type {Promise<File> | null} */
  #end = null;
  #worker;
  /** Requests to the worker, by number. @type {Map<number, Request>} */
  #requests = new Map();
  #lastNumber = 0;
  /** Error for which the worker was ended. @type {Error | null} */
  #failure = null;
  #progress = new EventTarget();

  /** @param {string} name of the file @param {string} workerUrl */
  constructor(name, workerUrl) {
    this.name = name;
    this.#worker = new Worker(workerUrl, { type: "module", name: "spool" });
    this.#worker.addEventListener("message", ({ data }) => this.#handleMessage(data));
    // The script can't be loaded without a connection, or a flush by the worker's timer has failed.
    this.#worker.addEventListener("error", ({ message }) => this.#fail(new Error(message)));
  }

  /** Open the file, without the torn fragment that a crash leaves. */
  async open() {
    this.size_bytes = await this.#ask("open", { folder: FOLDER, name: this.name });
  }

  /**
   * Append bytes.
   * @param {Uint8Array} bytes @returns {Promise<void>} @throws {DOMException} the disk is full
   */
  async write(bytes) {
    await this.#ask("write", { bytes });
    this.size_bytes += bytes.length;
  }

  /** End the file with its last whole fragment. @returns {Promise<File>} */
  end() {
    this.#end ??= this.#close();
    return this.#end;
  }

  async #close() {
    try {
      this.size_bytes = await this.#ask("cut");
      await this.#ask("close");
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
    this.#worker.terminate();
    const handle = await (await openFolder()).getFileHandle(this.name);
    this.#wake();
    return handle.getFile();
  }

  /** Remove the file. */
  async remove() {
    await this.end().catch(() => {});
    await removeSpooled(this.name);
  }

  /**
   * Yield the content in parts, each when it is on the disk. The last one ends with the file.
   * @param {number} part_bytes @param {AbortSignal} signal @returns {AsyncGenerator<Blob>}
   */
  async *parts(part_bytes, signal) {
    signal.addEventListener("abort", () => this.#wake(), { once: true });
    for (let start = 0; ; start += part_bytes) {
      const end = start + part_bytes;
      while (!this.#end && this.#safe_bytes < end) {
        signal.throwIfAborted();
        if (this.#failure) throw this.#failure;
        await new Promise((resolve) => {
          this.#progress.addEventListener("progress", resolve, { once: true });
        });
      }
      // The worker answers until the end is asked for, which may be in any await.
      const file = this.#end && (await this.#end);
      if (file && start >= file.size) return;
      yield file?.slice(start, end) ?? new Blob([await this.#ask("read", { start, end })]);
    }
  }

  /** Let parts look again at what can be sent. */
  #wake() {
    this.#progress.dispatchEvent(new Event("progress"));
  }

  /** Ask the worker. @param {string} action @param {object} [message] @returns {Promise<any>} */
  #ask(action, message) {
    if (this.#failure) return Promise.reject(this.#failure);
    const number = ++this.#lastNumber;
    this.#worker.postMessage({ number, action, ...message });
    return new Promise((resolve, reject) => this.#requests.set(number, { resolve, reject }));
  }

  /** @param {Error} error */
  #fail(error) {
    this.#failure ??= error;
    // Else it would keep the file open.
    this.#worker.terminate();
    for (const { reject } of this.#requests.values()) reject(error);
    this.#wake();
  }

  /** @param {{ number?: number, result?: any, error?: any, safe_bytes?: number }} message */
  #handleMessage({ number, result, error, safe_bytes }) {
    if (safe_bytes !== undefined) {
      this.#safe_bytes = safe_bytes;
      return this.#wake();
    }
    const request = this.#requests.get(Number(number));
    this.#requests.delete(Number(number));
    if (error) request?.reject(error);
    else request?.resolve(result);
  }
}
