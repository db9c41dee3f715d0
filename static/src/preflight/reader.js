/** Has a worker look into a file (`file-facts.js`), for as long as that is worth the while. */

const TIMEOUT_MS = 10_000;

/**
 * Sending never waits for it.
 * @param {string} url of the worker
 * @param {File} file
 * @param {AbortSignal} signal
 * @returns {Promise<import("./file-facts.js").Facts | null>} null when nothing was found in time
 */
export function readFacts(url, file, signal) {
  return new Promise((resolve) => {
    const worker = new Worker(url, { type: "module", name: "preflight" });
    /** @param {import("./file-facts.js").Facts | null} facts */
    const end = (facts) => {
      clearTimeout(timer);
      worker.terminate();
      resolve(facts);
    };
    const timer = setTimeout(() => end(null), TIMEOUT_MS);
    worker.addEventListener("message", (event) => end(event.data));
    for (const type of ["error", "messageerror"]) worker.addEventListener(type, () => end(null));
    signal.addEventListener("abort", () => end(null));
    worker.postMessage(file);
  });
}
