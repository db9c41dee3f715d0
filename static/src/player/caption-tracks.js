/**
 * The captions that a video offers: <track> elements of the page, which are looked up again while it
 * plays, so that captions that are saved meanwhile appear without a reload. hls.js leaves those of
 * the playlist, which are the same, to other players.
 */
import { isNative } from "./native-stream.js";
import { settings } from "./saved-state.js";

const LOOK_EVERY_MS = 30_000;
const TRACKS = "track[kind=captions]";

/** @param {HTMLVideoElement} video @param {AbortSignal} signal */
export function offerCaptions(video, signal) {
  const address = video.dataset.captions;
  // The browser's own player shows those of the playlist.
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
 * Shows the language that was chosen last, in any video; else what its editor wants shown.
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
