/** Facts and first frame of a chosen file. The upload doesn't wait for them. */

const FACTS_TIMEOUT_MS = 10_000;
const FRAME_TIMEOUT_MS = 8_000;
const WIDTH_PX = 192;

/**
 * Inspect a file in a worker (`file-facts.js`), with a time limit.
 * @param {string} url of the worker @param {File} file @param {boolean} isRepacked whether the page
 *   repacks the file
 * @param {AbortSignal} signal
 * @returns {Promise<import("./file-facts.js").Facts | null>} null after an error or the time limit
 */
export async function readFacts(url, file, isRepacked, signal) {
  const worker = new Worker(url, { type: "module", name: "preflight" });
  try {
    worker.postMessage({ file, isRepacked });
    return (await waitForEvent(worker, "message", FACTS_TIMEOUT_MS, signal)).data;
  } catch {
    return null;
  } finally {
    worker.terminate();
  }
}

/**
 * Return the first frame of a file as a `data:` address.
 * @param {File} file @param {AbortSignal} signal
 * @returns {Promise<string>} empty if the browser can't show the file
 */
export async function firstFrame(file, signal) {
  const video = document.createElement("video");
  const address = URL.createObjectURL(file);
  video.muted = true;
  video.preload = "auto";
  video.src = address;
  try {
    await waitForEvent(video, "loadeddata", FRAME_TIMEOUT_MS, signal);
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
 * Wait for an event.
 * @param {EventTarget} target @param {string} name of the event @param {number} timeout_ms
 * @param {AbortSignal} stop
 * @returns {Promise<any>} the event @throws {Event} that of an error, or of the timeout
 */
function waitForEvent(target, name, timeout_ms, stop) {
  return new Promise((resolve, reject) => {
    target.addEventListener(name, resolve);
    for (const failure of ["error", "messageerror"]) target.addEventListener(failure, reject);
    const timeout = AbortSignal.any([stop, AbortSignal.timeout(timeout_ms)]);
    timeout.addEventListener("abort", reject);
  });
}
