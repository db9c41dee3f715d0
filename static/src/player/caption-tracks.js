/**
 * Captions of a video: <track> elements of the page, which are updated during playback, so that new
 * captions appear without a reload. hls.js ignores the captions of the playlist, which are the same
 * and meant for other players.
 */
import { fetchText } from "../requests.js";
import { isNative } from "./native-stream.js";
import { settings } from "./saved-state.js";

const CHECK_INTERVAL_MS = 30_000;
const TRACKS = "track[kind=captions]";

/**
 * Show the captions of the preferred language, and keep the tracks up to date.
 * @param {HTMLVideoElement} video @param {AbortSignal} signal
 */
export function startCaptionTracks(video, signal) {
  const address = video.dataset.captions;
  // The browser's own player shows the captions of the playlist.
  if (isNative(video)) for (const track of tracksIn(video)) track.remove();
  if (!address || isNative(video)) return;
  let checked_ms = performance.now();
  const checkTracks = async () => {
    checked_ms = performance.now();
    const html = await fetchText(address, { signal }).catch(() => null);
    if (html !== null) replaceTracks(video, html);
  };
  const checkRegularly = () => performance.now() - checked_ms > CHECK_INTERVAL_MS && checkTracks();
  video.addEventListener("timeupdate", checkRegularly, { signal });
  document.body.addEventListener("captions-changed", checkTracks, { signal });
  showTrack(video);
}

/** @param {ParentNode} root @returns {HTMLTrackElement[]} */
function tracksIn(root) {
  return [...root.querySelectorAll(TRACKS)].filter((track) => track instanceof HTMLTrackElement);
}

/**
 * Show the captions of a language: the last one chosen for any video, else the editor's default.
 * @param {HTMLVideoElement} video @param {string} [language] empty for no captions
 */
function showTrack(video, language = settings().captions) {
  const track = tracksIn(video).find(({ srclang, dataset }) =>
    language === undefined ? "shown" in dataset : srclang === language,
  );
  if (track) track.track.mode = "showing";
}

/**
 * Replace the tracks, unless they are the same.
 * @param {HTMLVideoElement} video @param {string} html
 */
function replaceTracks(video, html) {
  const page = document.createElement("template");
  page.innerHTML = html;
  const fetched = tracksIn(page.content);
  const present = tracksIn(video);
  const addresses = (/** @type {HTMLTrackElement[]} */ tracks) =>
    tracks.map(({ src }) => src).join();
  if (addresses(fetched) === addresses(present)) return;
  const shownLanguage = present.find(({ track }) => track.mode === "showing")?.srclang ?? "";
  for (const track of present) track.remove();
  video.append(...fetched);
  showTrack(video, present.length ? shownLanguage : undefined);
}
