/**
 * Has files examined before or while they upload, one after the other, in a thread of its own that
 * is only fetched once there is a file. Whatever happens to it, an upload never waits for it.
 */

const TIME_LIMIT_MS = 10_000;

/** @typedef {import("./examine.js").Facts} Facts */

export class Preflight {
  /** @type {Worker | null} */
  #worker = null;
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();

  /** @param {string} url of the worker */
  constructor(url) {
    this.url = url;
  }

  /**
   * @param {File} file
   * @returns {Promise<Facts | null>} null when nothing could be found out in time
   */
  examine(file) {
    const answer = this.#last.then(() => this.#ask(file));
    this.#last = answer;
    return answer;
  }

  stop() {
    this.#worker?.terminate();
    this.#worker = null;
  }

  /**
   * @param {File} file
   * @returns {Promise<Facts | null>}
   */
  #ask(file) {
    return new Promise((resolve) => {
      const worker = this.#started();
      if (!worker) return resolve(null);
      const ended = new AbortController();
      /** @param {Facts | null} facts */
      const end = (facts) => {
        clearTimeout(timer);
        ended.abort();
        if (!facts) this.stop();
        resolve(facts);
      };
      const timer = setTimeout(() => end(null), TIME_LIMIT_MS);
      const { signal } = ended;
      worker.addEventListener("message", (event) => end(event.data), { signal });
      worker.addEventListener("error", () => end(null), { signal });
      worker.addEventListener("messageerror", () => end(null), { signal });
      worker.postMessage(file);
    });
  }

  /** @returns {Worker | null} */
  #started() {
    try {
      this.#worker ??= new Worker(this.url, { type: "module", name: "preflight" });
    } catch {
      // A browser without module workers uploads without a preflight.
      this.#worker = null;
    }
    return this.#worker;
  }
}
