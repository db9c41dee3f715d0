/** The page of a video: its player, times in its description, and whether it is still there. */

import { opensElsewhere } from "../dom.js";

/** @returns {HTMLVideoElement | null} the video that plays on this page */
export function player() {
  const found = document.querySelector("video[data-player]");
  return found instanceof HTMLVideoElement ? found : null;
}

/**
 * Times in a description: <a href="?t=65" data-seek="65">, which the player on the page goes to.
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
    // Browsers may want a click on the player itself first.
    video.play().catch(() => {});
  };
  text.addEventListener("click", seek, { signal });
}

/**
 * Tells the page that someone looks at it again, in its tab or by going back: it asks whether the
 * video is still there.
 * @param {HTMLElement} page @param {AbortSignal} signal
 */
export function revisits(page, signal) {
  const tell = () => page.dispatchEvent(new Event("revisited"));
  const see = () => document.visibilityState === "visible" && tell();
  document.addEventListener("visibilitychange", see, { signal });
  const [navigation] = performance.getEntriesByType("navigation");
  // What a browser shows then may be a copy of its own.
  const isKnown = navigation instanceof PerformanceNavigationTiming;
  if (isKnown && navigation.type === "back_forward") tell();
}
