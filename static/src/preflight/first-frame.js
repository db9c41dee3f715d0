/** A small picture of a chosen video, read by the browser without sending anything. */

const WIDTH_PX = 192;
const TIMEOUT_MS = 8_000;

/**
 * @param {File} file
 * @param {AbortSignal} signal
 * @returns {Promise<string>} the first frame as a `data:` address; empty where this browser can't
 *   show the file
 */
export async function firstFrame(file, signal) {
  const video = document.createElement("video");
  const ended = new AbortController();
  const address = URL.createObjectURL(file);
  video.muted = true;
  video.preload = "auto";
  video.src = address;
  try {
    await hasFrame(video, signal, ended.signal);
    return drawn(video);
  } catch {
    return "";
  } finally {
    ended.abort();
    video.removeAttribute("src");
    video.load();
    URL.revokeObjectURL(address);
  }
}

/** @param {HTMLVideoElement} video @param {AbortSignal} stop @param {AbortSignal} signal */
function hasFrame(video, stop, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(reject, TIMEOUT_MS);
    signal.addEventListener("abort", () => clearTimeout(timer));
    stop.addEventListener("abort", reject, { signal });
    video.addEventListener("loadeddata", resolve, { signal });
    video.addEventListener("error", reject, { signal });
  });
}

/** @param {HTMLVideoElement} video */
function drawn(video) {
  const canvas = document.createElement("canvas");
  const { videoWidth, videoHeight } = video;
  if (!videoWidth) return "";
  canvas.width = WIDTH_PX;
  canvas.height = Math.max(1, Math.round((WIDTH_PX * videoHeight) / videoWidth));
  canvas.getContext("2d")?.drawImage(video, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.7);
}
