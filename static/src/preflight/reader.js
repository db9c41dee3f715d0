/**
 * Looks at a chosen file before it is sent, which never waits for it: its facts and first frame.
 */

const FACTS_TIMEOUT_MS = 10_000;
const FRAME_TIMEOUT_MS = 8_000;
const WIDTH_PX = 192;

/**
 * Has a worker look into a file (`file-facts.js`), for as long as that is worth the while.
 * @param {string} url of the worker @param {File} file @param {AbortSignal} signal
 * @returns {Promise<import("./file-facts.js").Facts | null>} null when nothing was found in time
 */
export async function readFacts(url, file, signal) {
  const worker = new Worker(url, { type: "module", name: "preflight" });
  try {
    worker.postMessage(file);
    const failures = ["error", "messageerror"];
    return (await firstOf(worker, ["message"], failures, FACTS_TIMEOUT_MS, signal)).data;
  } catch {
    return null;
  } finally {
    worker.terminate();
  }
}

/**
 * @param {File} file @param {AbortSignal} signal
 * @returns {Promise<string>} the first frame as a `data:` address; empty where this browser can't
 *   show the file
 */
export async function firstFrame(file, signal) {
  const video = document.createElement("video");
  const address = URL.createObjectURL(file);
  video.muted = true;
  video.preload = "auto";
  video.src = address;
  try {
    await firstOf(video, ["loadeddata"], ["error"], FRAME_TIMEOUT_MS, signal);
    const canvas = document.createElement("canvas");
    const { videoWidth, videoHeight } = video;
    if (!videoWidth) return "";
    canvas.width = WIDTH_PX;
    canvas.height = Math.max(1, Math.round((WIDTH_PX * videoHeight) / videoWidth));
    canvas.getContext("2d")?.drawImage(video, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/jpeg", 0.7);
  } catch {
    return "";
  } finally {
    video.removeAttribute("src");
    video.load();
    URL.revokeObjectURL(address);
  }
}

/**
 * @param {EventTarget} target @param {string[]} ends @param {string[]} failures names of events
 * @param {number} timeout_ms @param {AbortSignal} stop
 * @returns {Promise<any>} the event that ended it @throws {unknown} by a failure, or too late
 */
async function firstOf(target, ends, failures, timeout_ms, stop) {
  const ended = new AbortController();
  const { signal } = ended;
  try {
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(reject, timeout_ms);
      signal.addEventListener("abort", () => clearTimeout(timer));
      stop.addEventListener("abort", reject, { signal });
      for (const name of ends) target.addEventListener(name, resolve, { signal });
      for (const name of failures) target.addEventListener(name, reject, { signal });
    });
  } finally {
    ended.abort();
  }
}
