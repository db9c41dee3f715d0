/**
 * Constant gain of a video's sound, by Web Audio. Sound plays as it is until an audio context runs,
 * because one that waits for a gesture would silence it.
 */

/**
 * Return whether the browser can change the sound of the stream. iPhones, which have no
 * MediaSource, silence Web Audio in the background.
 */
export const canChangeSound = () => "AudioContext" in window && "MediaSource" in window;

/**
 * Apply the gain from when the video is first heard. The volume control stays the element's own.
 * @param {HTMLVideoElement} video @param {AbortSignal} signal
 */
export function startGain(video, signal) {
  /** @type {AudioContext | undefined} */
  let context;
  const connect = (/** @type {AudioContext} */ running) => {
    const node = running.createGain();
    node.gain.value = 10 ** (Number(video.dataset.gainDb) / 20);
    running.createMediaElementSource(video).connect(node).connect(running.destination);
    video.dataset.gainApplied = "";
  };
  const update = () => {
    // Sound that was never heard needs no context, such as that of muted previews.
    if (video.paused || video.muted) return;
    if (!context) {
      context = new AudioContext();
      context.addEventListener("statechange", update, { signal });
    }
    // Calls and other devices can interrupt a context, also once the video depends on it.
    if (context.state !== "running") context.resume().catch(() => {});
    else if (!("gainApplied" in video.dataset)) connect(context);
  };
  for (const name of ["play", "volumechange"]) video.addEventListener(name, update, { signal });
  signal.addEventListener("abort", () => context?.close(), { once: true });
  update();
}
