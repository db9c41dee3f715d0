/**
 * Tells the page of a video that someone looks at it again, in its tab or by going back: it asks
 * whether the video is still there.
 */

/**
 * @param {HTMLElement} page
 * @param {AbortSignal} signal
 */
export function revisits(page, signal) {
  const tell = () => page.dispatchEvent(new Event("revisited"));
  document.addEventListener(
    "visibilitychange",
    () => document.visibilityState === "visible" && tell(),
    { signal },
  );
  const [navigation] = performance.getEntriesByType("navigation");
  // What a browser shows then may be a copy of its own.
  const isKnown = navigation instanceof PerformanceNavigationTiming;
  if (isKnown && navigation.type === "back_forward") tell();
}
