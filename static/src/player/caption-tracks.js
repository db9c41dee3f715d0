/**
 * The captions that a video offers: <track> elements of the page, which are looked up again while it
 * plays, so that captions that are saved meanwhile appear without a reload. hls.js leaves those of
 * the playlist, which are the same, to other players.
 */
import { isCaptions } from "./captions.js";
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
  showChosen(video);
}

/** @param {ParentNode} root @returns {HTMLTrackElement[]} */
function tracksIn(root) {
  return [...root.querySelectorAll(TRACKS)].filter((it) => it instanceof HTMLTrackElement);
}

/** The language that was chosen last, in any video; else what its editor wants shown. @param {HTMLVideoElement} video */
function showChosen(video) {
  const { captions } = settings();
  const tracks = tracksIn(video);
  const chosen =
    captions === undefined
      ? tracks.find(({ dataset }) => "shown" in dataset)
      : tracks.find(({ srclang }) => srclang === captions);
  if (chosen) chosen.track.mode = "showing";
}

/** What is the same stays as it is, also on the picture. @param {HTMLVideoElement} video @param {string} html */
function replace(video, html) {
  const page = document.createElement("template");
  page.innerHTML = html;
  const wanted = tracksIn(page.content);
  const present = tracksIn(video);
  const hadAny = [...video.textTracks].some(isCaptions);
  for (const old of present) {
    if (wanted.some((it) => it.src === old.src && it.label === old.label)) continue;
    const next = wanted.find(({ srclang }) => srclang === old.srclang);
    const { mode } = old.track;
    old.remove();
    if (!next) continue;
    video.append(next);
    next.track.mode = mode;
  }
  const known = new Set(tracksIn(video).map(({ src }) => src));
  for (const track of wanted) if (!known.has(track.src)) video.append(track);
  if (!hadAny) showChosen(video);
}
