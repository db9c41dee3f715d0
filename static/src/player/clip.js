/**
 * Clips: the part of a video that a player shows, by <video data-clip-start data-clip-end>. The
 * player loads the whole stream and keeps the playhead inside the clip, so that positions,
 * captions, chapters and thumbnails have the times of the whole video.
 */

/** @typedef {{ start_s: number, end_s: number }} Clip */

// Playback pauses this long before the end of a clip, so that no frame after the end is shown.
const PAUSE_EARLY_S = 0.02;
// The playhead is at the end of a clip when it is this close.
const END_S = 0.05;
// Browsers round times by less than this.
const ROUNDING_S = 0.001;

/** Return the clip that a player shows. @param {HTMLVideoElement} video @returns {Clip | null} */
export function clipOf({ dataset: { clipStart, clipEnd } }) {
  return clipEnd === undefined ? null : { start_s: Number(clipStart), end_s: Number(clipEnd) };
}

/** Return the clip that a player shows, else the whole video. @param {HTMLVideoElement} video */
export function playedPart(video) {
  return clipOf(video) ?? { start_s: 0, end_s: video.duration };
}

/** Return whether a time is inside a clip. @param {Clip} clip @param {number | null} at_s */
export function isInside({ start_s, end_s }, at_s) {
  return at_s !== null && at_s >= start_s && at_s < end_s;
}

/**
 * Keep the playhead inside a clip: seeks end at its bounds, and playback after its end begins again.
 * @param {Clip} clip @param {HTMLVideoElement} video @param {AbortSignal} signal
 */
export function keepInside(clip, video, signal) {
  const { start_s, end_s } = clip;
  const clamp = () => {
    // The video has not been opened at its start position before it has metadata.
    if (video.readyState === 0) return;
    if (video.currentTime < start_s - ROUNDING_S) video.currentTime = start_s;
    else if (video.currentTime > end_s + ROUNDING_S) video.currentTime = end_s;
  };
  video.addEventListener("seeking", clamp, { signal });
  const restart = () => {
    if (video.currentTime >= end_s - END_S) video.currentTime = start_s;
    pauseAtEnd(clip, video, signal);
  };
  video.addEventListener("play", restart, { signal });
}

/**
 * Give the previews on the time bar of a clip their times in the video. media-chrome takes them for
 * those of a bar that begins at zero.
 * @param {Clip} clip @param {HTMLElement} bar @param {AbortSignal} signal
 */
export function correctPreviews({ start_s, end_s }, bar, signal) {
  const correct = (/** @type {any} */ event) => {
    // The pointer has left the bar.
    if (event.detail === null) return;
    event.stopPropagation();
    const detail = start_s + (event.detail / end_s) * (end_s - start_s);
    bar.parentElement?.dispatchEvent(new CustomEvent(event.type, { bubbles: true, detail }));
  };
  bar.addEventListener("mediapreviewrequest", correct, { signal });
}

/**
 * Pause the current playback once at the end of a clip. A seek past the end cancels that.
 * @param {Clip} clip @param {HTMLVideoElement} video @param {AbortSignal} signal
 */
export function pauseAtEnd({ end_s }, video, signal) {
  const isPast = () => video.currentTime > end_s + ROUNDING_S;
  if (isPast()) return;
  const stop = new AbortController();
  const options = { signal: AbortSignal.any([signal, stop.signal]) };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  options.signal.addEventListener("abort", () => clearTimeout(timer));
  const follow = () => {
    clearTimeout(timer);
    // The end of a seek is followed, too.
    if (video.seeking) return;
    const left_s = end_s - PAUSE_EARLY_S - video.currentTime;
    if (left_s <= 0) {
      video.pause();
      // A busy device is late.
      if (video.currentTime > end_s) video.currentTime = end_s;
      return;
    }
    // The event is sent four times a second, which alone would be too rare.
    timer = setTimeout(follow, (left_s / video.playbackRate) * 1000);
  };
  for (const name of ["timeupdate", "ratechange", "seeked"]) {
    video.addEventListener(name, follow, options);
  }
  video.addEventListener("pause", () => stop.abort(), options);
  video.addEventListener("seeking", () => isPast() && stop.abort(), options);
  follow();
}
