/**
 * Captions drawn above the controls, because browsers draw them below, and some can't move them.
 * The tracks stay "showing" for the menus, and for the browser's own players (fullscreen on a
 * phone, Picture-in-Picture), which draw captions themselves. The style sheet hides the browser's
 * captions while these are visible.
 */

// Rows of the grid: those of CEA-608, the most common format with positions.
const ROWS = 15;
// Events of the browser's own player, with whether it is open afterwards.
const NATIVE_PLAYER_EVENTS = {
  webkitbeginfullscreen: true,
  webkitendfullscreen: false,
  enterpictureinpicture: true,
  leavepictureinpicture: false,
};
const ANCHORS = { start: 0, left: 0, center: 0.5, end: 1, right: 1 };

/** Return whether a track has captions or subtitles. @param {TextTrack} track */
export function isCaptions({ kind }) {
  return kind === "subtitles" || kind === "captions";
}

/** Return the language of the shown captions; empty for none. @param {HTMLVideoElement} video */
export function shownLanguage({ textTracks }) {
  const isShown = (/** @type {TextTrack} */ track) => isCaptions(track) && track.mode === "showing";
  return [...textTracks].find(isShown)?.language ?? "";
}

/**
 * Draw the current captions into a box whenever they change.
 * @param {HTMLElement} box @param {HTMLVideoElement} video @param {AbortSignal} signal
 */
export function drawCaptions(box, video, signal) {
  const { textTracks } = video;
  const draw = () => box.replaceChildren(...createRows(shownCues(textTracks)));
  for (const name of ["change", "removetrack"]) textTracks.addEventListener(name, draw, { signal });
  const watchCues = (/** @type {TextTrack} */ track) =>
    track.addEventListener("cuechange", draw, { signal });
  for (const track of textTracks) watchCues(track);
  textTracks.addEventListener("addtrack", ({ track }) => track && watchCues(track), { signal });
  for (const [name, isHidden] of Object.entries(NATIVE_PLAYER_EVENTS)) {
    video.addEventListener(name, () => box.toggleAttribute("hidden", isHidden), { signal });
  }
}

/** @param {TextTrackList} tracks */
function shownCues(tracks) {
  const shown = [...tracks].filter((track) => isCaptions(track) && track.mode === "showing");
  const cues = shown.flatMap(({ activeCues }) => [...(activeCues ?? [])]);
  return cues.filter((cue) => cue instanceof VTTCue);
}

/** @param {VTTCue[]} cues */
function createRows(cues) {
  /** @type {Map<number, HTMLElement>} */
  const rows = new Map();
  for (const cue of cues) {
    const number = rowNumber(cue);
    const row = rows.get(number) ?? document.createElement("div");
    rows.set(number, row);
    row.style.gridRow = String(number);
    // The oldest cue stays at the bottom.
    row.prepend(drawCue(cue));
  }
  return rows.values();
}

/** @param {VTTCue} cue @returns {number} from 1 at the top */
function rowNumber({ line, snapToLines }) {
  if (line === "auto") return ROWS;
  const lineNumber = line < 0 ? ROWS + 1 + line : line;
  const row = snapToLines ? lineNumber : Math.ceil((line / 100) * ROWS);
  return Math.min(Math.max(row, 1), ROWS);
}

/** @param {VTTCue} cue */
function drawCue(cue) {
  const paragraph = document.createElement("p");
  const text = document.createElement("span");
  text.append(cue.getCueAsHTML());
  paragraph.append(text);
  // In percent of the picture's width: the largest size that fits at the position (WebVTT, 7.2).
  const anchor = ANCHORS[cue.align];
  const position = cue.position === "auto" ? anchor * 100 : cue.position;
  const widths = { 0: 100 - position, 0.5: 2 * Math.min(position, 100 - position), 1: position };
  const width = widths[/** @type {keyof typeof widths} */ (anchor)];
  const marginLeft = `${position - anchor * width}%`;
  Object.assign(paragraph.style, { marginLeft, width: `${width}%`, textAlign: cue.align });
  return paragraph;
}
