/**
 * Draws the captions above the controls; browsers draw them below, and some can't move them. The
 * tracks stay "showing" for the menus and for the browser's own players (fullscreen on a phone,
 * Picture-in-Picture), which draw captions themselves. The style sheet hides the browser's captions
 * while these are visible.
 */

// As in CEA-608, whose captions are positioned; subtitles rarely are.
const ROWS = 15;
// The browser's own player was opened or closed.
const HANDED_OVER = {
  webkitbeginfullscreen: true,
  webkitendfullscreen: false,
  enterpictureinpicture: true,
  leavepictureinpicture: false,
};
const ANCHORS = { start: 0, left: 0, center: 0.5, end: 1, right: 1 };

/** @param {TextTrack} track */
export function isCaptions({ kind }) {
  return kind === "subtitles" || kind === "captions";
}

/** @param {HTMLElement} box @param {HTMLVideoElement} video @param {AbortSignal} signal */
export function drawCaptions(box, video, signal) {
  const { textTracks } = video;
  const draw = () => box.replaceChildren(...rowsOf(shownCues(textTracks)));
  for (const name of ["change", "removetrack"]) textTracks.addEventListener(name, draw, { signal });
  const follow = (/** @type {TextTrack} */ track) =>
    track.addEventListener("cuechange", draw, { signal });
  for (const track of textTracks) follow(track);
  textTracks.addEventListener("addtrack", ({ track }) => track && follow(track), { signal });
  for (const [name, isHidden] of Object.entries(HANDED_OVER)) {
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
function rowsOf(cues) {
  /** @type {Map<number, HTMLElement>} */
  const rows = new Map();
  for (const cue of cues) {
    const number = rowOf(cue);
    const row = rows.get(number) ?? document.createElement("div");
    rows.set(number, row);
    row.style.gridRow = String(number);
    // The oldest cue stays at the bottom.
    row.prepend(drawn(cue));
  }
  return rows.values();
}

/** @param {VTTCue} cue @returns {number} from 1 at the top */
function rowOf({ line, snapToLines }) {
  if (line === "auto") return ROWS;
  const counted = line < 0 ? ROWS + 1 + line : line;
  const row = snapToLines ? counted : Math.ceil((line / 100) * ROWS);
  return Math.min(Math.max(row, 1), ROWS);
}

/** @param {VTTCue} cue */
function drawn(cue) {
  const paragraph = document.createElement("p");
  const text = document.createElement("span");
  text.append(cue.getCueAsHTML());
  paragraph.append(text);
  // In percent of the picture's width: as wide as fits beside the position (WebVTT, section 7.2).
  const anchor = ANCHORS[cue.align];
  const at = cue.position === "auto" ? anchor * 100 : cue.position;
  const room = { 0: 100 - at, 0.5: 2 * Math.min(at, 100 - at), 1: at };
  const width = room[/** @type {keyof typeof room} */ (anchor)];
  const marginLeft = `${at - anchor * width}%`;
  Object.assign(paragraph.style, { marginLeft, width: `${width}%`, textAlign: cue.align });
  return paragraph;
}
