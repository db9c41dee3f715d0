/**
 * Captions of a video: <track> elements of the page, which are updated while it plays, so that new
 * captions appear without a reload. hls.js ignores those of the playlist, which are the same and
 * meant for other players.
 */
import { isNative } from "./native-stream.js";
import { settings } from "./saved-state.js";

const LOOK_EVERY_MS = 30_000;
const TRACKS = "track[kind=captions]";

/** @param {HTMLVideoElement} video @param {AbortSignal} signal */
export function offerCaptions(video, signal) {
  const address = video.dataset.captions;
  // The browser's player shows those of the playlist.
  if (isNative(video)) for (const track of tracksIn(video)) track.remove();
  if (!address || isNative(video)) return;
  let looked_ms = performance.now();
  const look = async () => {
    looked_ms = performance.now();
    const answer = await fetch(address, { signal }).catch(() => null);
    if (answer?.ok) replace(video, await answer.text());
  };
  const lookNowAndThen = () => performance.now() - looked_ms > LOOK_EVERY_MS && look();
  video.addEventListener("timeupdate", lookNowAndThen, { signal });
  document.body.addEventListener("captions-changed", look, { signal });
  show(video);
}

/** @param {ParentNode} root @returns {HTMLTrackElement[]} */
function tracksIn(root) {
  return [...root.querySelectorAll(TRACKS)].filter((it) => it instanceof HTMLTrackElement);
}

/**
 * Show the language that was chosen last for any video, else the editor's default.
 * @param {HTMLVideoElement} video @param {string} [chosen]
 */
function show(video, chosen = settings().captions) {
  const found = tracksIn(video).find(({ srclang, dataset }) =>
    chosen === undefined ? "shown" in dataset : srclang === chosen,
  );
  if (found) found.track.mode = "showing";
}

/** @param {HTMLVideoElement} video @param {string} html */
function replace(video, html) {
  const page = document.createElement("template");
  page.innerHTML = html;
  const [wanted, present] = [tracksIn(page.content), tracksIn(video)];
  const addresses = (/** @type {HTMLTrackElement[]} */ tracks) =>
    tracks.map(({ src }) => src).join();
  if (addresses(wanted) === addresses(present)) return;
  const shown = present.find(({ track }) => track.mode === "showing")?.srclang ?? "";
  for (const track of present) track.remove();
  video.append(...wanted);
  show(video, present.length ? shown : undefined);
}
