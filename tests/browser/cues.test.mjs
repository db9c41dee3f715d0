/** Cues in the editor of captions and chapters, without a browser. Run by `node --test`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import * as edit from "../../static/src/captions/cues.js";
import { History } from "../../static/src/editor/history.js";

const cue = (start_ms, end_ms, text = "A.", settings = "") => ({ start_ms, end_ms, text, settings });
const FIRST = cue(1000, 3000, "Good morning, good evening.");
const SECOND = cue(3000, 5000, "Bye.");
const texts = (cues) => cues.map(({ text }) => text);

test("cues are read and written as the portal's WebVTT", () => {
  const vtt =
    "WEBVTT\n\n00:00:00.200 --> 00:00:01.500 line:0\nNoon &amp; night,\n1 &lt; 2\n\n" +
    "01:02:03.004 --> 01:02:04.000\n<i>Last</i>\n";
  const cues = edit.parseWebVtt(vtt);
  assert.deepEqual(cues, [
    cue(200, 1500, "Noon & night,\n1 < 2", "line:0"),
    cue(3_723_004, 3_724_000, "<i>Last</i>"),
  ]);
  assert.equal(edit.toWebVtt([cues[1]]), `WEBVTT\n\n01:02:03.004 --> 01:02:04.000\n<i>Last</i>\n`);
  assert.equal(edit.cueText(cues[0]), "Noon &amp; night,\n1 &lt; 2");
  const written = edit.toWebVtt([cue(0, 1, " a --> b \n\n c ")]);
  assert.ok(written.endsWith("\na --&gt; b\nc\n"));
});

test("typed times are read to the millisecond", () => {
  const times = { "0:01.250": 1250, "9:00:00": 32_400_000, "0:03": 3000, "1,5": 1500, soon: null };
  for (const [text, time_ms] of Object.entries(times))
    assert.equal(edit.parseTime_ms(text), time_ms, text);
  assert.equal(edit.formatShortTime(62_500), "1:02.500");
});

test("a cue is split at the caret, in proportion to its text, and joined again", () => {
  const split = edit.splitCue([FIRST, SECOND], 0, 13);
  assert.deepEqual(texts(split), ["Good morning,", "good evening.", "Bye."]);
  assert.deepEqual([split[0].start_ms, split[1].end_ms], [1000, 3000]);
  assert.equal(split[0].end_ms, split[1].start_ms);
  assert.ok(split[0].end_ms > 1800 && split[0].end_ms < 2200);
  assert.deepEqual(texts(edit.joinCues(split, 0)), ["Good morning,\ngood evening.", "Bye."]);
  assert.deepEqual(edit.joinCues(split, 0)[0].end_ms, 3000);
  assert.equal(edit.joinCues([FIRST], 0).length, 1);
  const short = [cue(0, 150)];
  assert.equal(edit.splitCue(short, 0, 1), short);
});

test("a new cue ends before the next one, and cues stay in order", () => {
  assert.deepEqual(edit.addCue([FIRST, SECOND], 0).cue, cue(0, 1000, ""));
  assert.deepEqual(edit.addCue([FIRST], 5000).cue, cue(5000, 7000, ""));
  assert.equal(edit.addCue([cue(50, 90)], 0).cue.end_ms, 100);
  assert.deepEqual(edit.addCue([FIRST, SECOND], 3000).cues[1], SECOND);
  assert.deepEqual(edit.changeCue([FIRST, SECOND], 1, { start_ms: 0 })[0], { ...SECOND, start_ms: 0 });
});

test("faults are named, and overlaps noticed", () => {
  assert.equal(edit.cueFault(cue(5, 5)), "End time must be after start time.");
  assert.equal(edit.cueFault(cue(0, 5, " ")), "Enter text.");
  assert.equal(edit.cueFault(FIRST), "");
  const cues = [FIRST, cue(2999, 4000), cue(4000, 5000)];
  assert.deepEqual([0, 1, 2].map((at) => edit.overlaps(cues, at)), [false, true, false]);
});

test("all cues move together, the first one not before 0", () => {
  assert.deepEqual(edit.shiftCues([FIRST, SECOND], -250).cues[1], cue(2750, 4750, "Bye."));
  const { cues, moved_ms } = edit.shiftCues([FIRST, SECOND], -5000);
  assert.deepEqual([moved_ms, cues[0].start_ms, cues[1].start_ms], [-1000, 0, 2000]);
});

test("a text is replaced in any case, and other cues stay the same", () => {
  const cues = edit.replaceText([FIRST, SECOND], "GOOD", "$&");
  assert.deepEqual(texts(cues), ["$& morning, $& evening.", "Bye."]);
  assert.equal(cues[1], SECOND);
  assert.equal(edit.replaceText([FIRST], ".*", "")[0], FIRST);
});

test("chapters have no gaps, and a time has a cue", () => {
  const chapters = edit.withoutGaps([cue(0, 500), cue(2000, 2001)]);
  assert.deepEqual(chapters.map(({ end_ms }) => end_ms), [2000, 4000]);
  assert.deepEqual([0, 2999, 3000, 9000].map((at) => edit.indexAt([FIRST, SECOND], at)), [-1, 0, 1, -1]);
});

test("changes of two editors are merged, and what both changed is reported", () => {
  const base = [FIRST, SECOND];
  const mine = [FIRST, { ...SECOND, text: "Mine." }];
  const theirs = [{ ...FIRST, text: "Theirs." }, SECOND];
  assert.deepEqual(edit.mergeCues(base, mine, theirs), { cues: [theirs[0], mine[1]], lost: [] });
  const also = [FIRST, { ...SECOND, text: "Also." }];
  assert.deepEqual(edit.mergeCues(base, mine, also), { cues: mine, lost: [also[1]] });
  // The same change is no conflict; removed and added cues are merged, too.
  assert.deepEqual(edit.mergeCues(base, mine, mine), { cues: mine, lost: [] });
  const added = cue(6000, 7000, "New.");
  assert.deepEqual(edit.mergeCues(base, [SECOND], [...base, added]), { cues: [SECOND, added], lost: [] });
});

test("typing in one field is a single step of the history", () => {
  const history = new History("");
  for (const text of ["a", "ab", "abc"]) history.append(text, "cue 1");
  history.append("other");
  history.step(-1);
  assert.equal(history.current, "abc");
  history.step(-1);
  assert.equal(history.current, "");
  assert.equal(history.canStep(-1), false);
  history.step(1);
  assert.equal(history.current, "abc");
});
