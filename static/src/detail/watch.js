/**
 * The page of a video: its player, times in its description, and a check that the video still
 * exists.
 */

import { opensElsewhere } from "../dom.js";

/** @returns {HTMLVideoElement | null} the video that plays on this page */
export function player() {
  const found = document.querySelector("video[data-player]");
  return found instanceof HTMLVideoElement ? found : null;
}

/**
 * Links to times in a description: <a href="?t=65" data-seek="65"> seeks the player on the page.
 * @param {HTMLElement} text @param {AbortSignal} signal
 */
export function seekLinks(text, signal) {
  /** @param {MouseEvent} event */
  const seek = (event) => {
    const link = event.target instanceof Element && event.target.closest("[data-seek]");
    const video = player();
    if (!(link instanceof HTMLElement) || !video || opensElsewhere(event)) return;
    event.preventDefault();
    video.currentTime = Number(link.dataset.seek);
    video.scrollIntoView({ block: "nearest" });
    // Browsers may require a click on the player first.
    video.play().catch(() => {});
  };
  text.addEventListener("click", seek, { signal });
}

/**
 * Check that the video still exists when the page is shown again, in its tab or by going back.
 * @param {HTMLElement} page @param {AbortSignal} signal
 */
export function revisits(page, signal) {
  const tell = () => page.dispatchEvent(new Event("revisited"));
  const see = () => document.visibilityState === "visible" && tell();
  document.addEventListener("visibilitychange", see, { signal });
  const [navigation] = performance.getEntriesByType("navigation");
  // A browser may show its own copy of the page.
  const isKnown = navigation instanceof PerformanceNavigationTiming;
  if (isKnown && navigation.type === "back_forward") tell();
}
