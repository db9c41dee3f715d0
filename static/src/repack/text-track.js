/** Tracks of timed text (3GPP TS 26.245) that are added to a fragmented MP4. */

import { box, boxesIn, codeOf } from "./boxes.js";

const TIMESCALE = 1000;
/** Flags of `tkhd`: enabled, and part of the film. */
const SHOWN = 3;
/** Flag of `tfhd`: data are found relative to the fragment. */
const BASE_IS_FRAGMENT = 0x20000;
/** Flags of `trun`: data offset, and duration and size of each sample. */
const TIMED = 0x301;
const UNITY = 0x10000;
const MATRIX = [UNITY, 0, 0, 0, UNITY, 0, 0, 0, 0x40000000];

/** @typedef {import("./cues.js").Cue} Cue */
/** @typedef {import("./matroska.js").TextTrack} TextTrack */

/**
 * Return an index that announces tracks of text.
 * @param {Uint8Array} index a `moov` whose tracks have the numbers from 1
 * @param {readonly TextTrack[]} texts
 */
export function withTextTracks(index, texts) {
  const [{ view }] = /** @type {[import("./boxes.js").Box]} */ ([...boxesIn(index)]);
  const boxes = [...boxesIn(view)];
  const first = boxes.filter(({ kind }) => kind === "trak").length + 1;
  const parts = boxes.flatMap(({ kind, bytes, view }) => {
    if (kind !== "mvex") return [bytes];
    const defaults = texts.map((_, place) => box("trex", [0, first + place, 1, 0, 0, 0]));
    return [
      ...texts.map((text, place) => track(text, first + place)),
      box(kind, view, ...defaults),
    ];
  });
  return box("moov", ...parts);
}

/** @param {TextTrack} text @param {number} id */
function track({ language, name }, id) {
  const text = new TextEncoder().encode(`${name}\0`);
  const empty = ["stts", "stsc", "stco"].map((kind) => box(kind, [0, 0]));
  const media = box(
    "minf",
    box("nmhd", [0]),
    box("dinf", box("dref", [0, 1], box("url ", [1]))),
    box("stbl", box("stsd", [0, 1], SAMPLE_ENTRY), ...empty, box("stsz", [0, 0, 0])),
  );
  return box(
    "trak",
    box("tkhd", [SHOWN, 0, 0, id, 0, 0, 0, 0, 0, 0, ...MATRIX, 0, 0]),
    box(
      "mdia",
      box("mdhd", [0, 0, 0, TIMESCALE, 0, packedLanguage(language) << 16]),
      box("hdlr", [0, 0, codeOf("sbtl"), 0, 0, 0], text),
      media,
    ),
  );
}

/**
 * Return the boxes of a fragment with all text of a film, to be written last.
 * @param {readonly Cue[][]} cues of each track of text, in any order
 * @param {number} first number of the first track, which the others follow
 * @param {number} sequence number of the fragment
 */
export function textFragment(cues, first, sequence) {
  const tracks = cues.map(samplesOf);
  const texts = tracks.map((samples) => samples.map(({ bytes }) => bytes));
  const fragmentOf = (/** @type {readonly number[]} */ offsets) =>
    box(
      "moof",
      box("mfhd", [0, sequence]),
      ...tracks.map((samples, place) => {
        const fields = samples.flatMap(({ duration, bytes }) => [duration, bytes.length]);
        return box(
          "traf",
          box("tfhd", [BASE_IS_FRAGMENT, first + place]),
          box("tfdt", [0, 0]),
          box("trun", [TIMED, samples.length, offsets[place] ?? 0, ...fields]),
        );
      }),
    );
  const header_bytes = fragmentOf([]).length + 8;
  let data_at = header_bytes;
  const offsets = texts.map((samples) => {
    const offset = data_at;
    data_at += samples.reduce((sum, { length }) => sum + length, 0);
    return offset;
  });
  return [fragmentOf(offsets), box("mdat", ...texts.flat())];
}

/**
 * Return the samples of a track, which follow each other: texts of the same time are one, and a time
 * without text has an empty one.
 * @param {readonly Cue[]} cues
 */
function samplesOf(cues) {
  const timed = cues.map(({ start_s, end_s, text }) => {
    return { start: Math.round(start_s * TIMESCALE), end: Math.round(end_s * TIMESCALE), text };
  });
  const times = [0, ...timed.flatMap(({ start, end }) => [start, end])];
  const bounds = [...new Set(times)].sort((a, b) => a - b);
  /** @type {typeof timed} */
  let shown = [];
  let next = 0;
  timed.sort((a, b) => a.start - b.start);
  const samples = bounds.slice(0, -1).map((at, place) => {
    shown = shown.filter(({ end }) => end > at);
    for (; (timed[next]?.start ?? Infinity) <= at; next += 1) {
      shown.push(/** @type {(typeof timed)[0]} */ (timed[next]));
    }
    const text = shown.map((cue) => cue.text).join("\n");
    return { duration: (bounds[place + 1] ?? at) - at, bytes: sampleOf(text) };
  });
  return samples.length ? samples : [{ duration: TIMESCALE, bytes: sampleOf("") }];
}

/** Return a text with its length before it. @param {string} text */
function sampleOf(text) {
  const bytes = new TextEncoder().encode(text).slice(0, 0xffff);
  return Uint8Array.of(bytes.length >> 8, bytes.length & 0xff, ...bytes);
}

/** Return a language of three letters in five bits each. @param {string} language */
function packedLanguage(language) {
  const letters = /^[a-z]{3}$/.test(language) ? language : "und";
  return [...letters].reduce((packed, letter) => packed * 32 + (letter.charCodeAt(0) - 96), 0);
}

/** Format of the samples: white text at the bottom, in the font that is there. */
const SAMPLE_ENTRY = box(
  "tx3g",
  // Data reference; flags; justification and background; area; style; a list of one font.
  [0, 1, 0, 0x1ff0000, 0, 0, 0, 1, 0x12ffff],
  Uint8Array.of(0xff, 0xff),
  box("ftab", Uint8Array.of(0, 1, 0, 1, 5), new TextEncoder().encode("Serif")),
);
