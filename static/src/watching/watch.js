/**
 * Page of a video: its player, links to times in its description, and the check that the video
 * still exists.
 */

import { closest, opensNewTab } from "../dom.js";
import { clipOf, isInside } from "../player/clip.js";

/** Return the video element of the page's player. @returns {HTMLVideoElement | null} */
export function playerVideo() {
  const video = document.querySelector("video[data-player]");
  return video instanceof HTMLVideoElement ? video : null;
}

/**
 * Make links to times seek the page's player: <a href="?t=65" data-seek="65">. A time outside of
 * the page's clip opens the whole video there.
 * @param {HTMLElement} text @param {AbortSignal} signal
 */
export function startSeekLinks(text, signal) {
  /** @param {MouseEvent} event */
  const handleClick = (event) => {
    const link = closest(event.target, "[data-seek]");
    const video = playerVideo();
    if (!link || !video || opensNewTab(event)) return;
    const clip = clipOf(video);
    const at_s = Number(link.dataset.seek);
    if (clip && !isInside(clip, at_s)) return;
    event.preventDefault();
    video.currentTime = at_s;
    video.scrollIntoView({ block: "nearest" });
    // Browsers may refuse to play before a click on the player itself.
    video.play().catch(() => {});
  };
  text.addEventListener("click", handleClick, { signal });
}

/**
 * Let the page check that its video still exists when it is shown again, in its tab or by going
 * back.
 * @param {HTMLElement} page @param {AbortSignal} signal
 */
export function recheckOnReturn(page, signal) {
  const dispatchRevisited = () => page.dispatchEvent(new Event("revisited"));
  const handleVisibility = () => document.visibilityState === "visible" && dispatchRevisited();
  document.addEventListener("visibilitychange", handleVisibility, { signal });
  const [navigation] = performance.getEntriesByType("navigation");
  // After going back, a browser may show its own copy of the page.
  const isSupported = navigation instanceof PerformanceNavigationTiming;
  if (isSupported && navigation.type === "back_forward") dispatchRevisited();
}
