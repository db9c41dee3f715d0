/** Upload page without a browser: its reducer, texts and quotas. Run by `node --test`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseStartTime_s } from "../../static/src/format.js";
import { NoResponse, Refused, SIGNED_OUT } from "../../static/src/requests.js";
import { NotPublished, TransferFailed } from "../../static/src/publishing/failures.js";
import { publish } from "../../static/src/publishing/publication.js";
import * as is from "../../static/src/publishing/selectors.js";
import { openOf, uploadOf } from "../../static/src/publishing/selectors.js";
import { initialState, reduce } from "../../static/src/publishing/state.js";
import { batchOf, noteOf, overallOf, questionOf, statusOf, submitOf, visibilityText } from "../../static/src/publishing/texts.js";

const MIB = 2 ** 20;
const NO_LIMITS = { size_bytes: 0, duration_s: 0, pixels: 0 };
const SIZE_BYTES = 1000;
const LARGE_BYTES = 100 * MIB;
const METADATA = { title: "Sea", description: "", categoryIds: [1], tags: "" };
const DETAILS = { ...METADATA, visibility: "private", share: "", series: "" };
const BLANK = { title: "", description: "", categoryIds: [], tags: "", visibility: "unlisted", share: "", series: "" };

/** A file of a thousand bytes. */
function film(name, type = "video/mp4") {
  return new File(["x".repeat(SIZE_BYTES)], name, { type, lastModified: 1 });
}

/** File with a size that requires parts. */
function largeFilm(name) {
  return Object.defineProperty(film(name), "size", { value: LARGE_BYTES });
}

function frozen(value) {
  if (value === null || typeof value !== "object" || value instanceof File) return value;
  for (const member of Object.values(value)) if (!Object.isFrozen(member)) frozen(member);
  return value instanceof Error ? value : Object.freeze(value);
}

/** Apply events to frozen states, so that a reducer that changes its arguments throws. */
function after(state, ...events) {
  return events.reduce((current, event) => frozen(reduce(current, frozen(event))), frozen(state));
}

function chosen(...files) {
  const choices = files.map((file) => ({ file, id: file.name, match: null }));
  return { type: "chosen", choices, now: 1 };
}

function transferred(number, update, now_ms = 0) {
  return { type: "transferred", number, update, now_ms };
}

const sent = (number) => transferred(number, { phase: "sent" });
const phases = (state) => state.uploads.map(({ phase }) => phase);
const refusals = ({ uploads }) => uploads.flatMap((upload) => statusOf(upload).trouble?.text ?? []);
const start = () => initialState(NO_LIMITS);
const withFiles = (...names) => after(start(), chosen(...names.map((name) => film(name))));

function saved(changes = {}) {
  const known = { id: "s", key: "videos/k.mp4", fileName: "a.mp4" };
  const rest = { size_bytes: SIZE_BYTES, contentType: "video/mp4", fingerprint: "f" };
  const more = { isStored: false, details: DETAILS, request: null, saved_at: 5 };
  return { ...known, ...rest, ...more, ...changes };
}

test("two files are sent at the same time and the others wait", () => {
  let state = withFiles("a.mp4", "b.mp4", "c.mp4");
  assert.deepEqual(phases(state), ["sending", "sending", "waiting"]);
  state = after(state, { type: "pause", number: 1 });
  assert.deepEqual(phases(state), ["paused", "sending", "sending"]);
  state = after(state, { type: "resume", number: 1 });
  assert.deepEqual(phases(state), ["waiting", "sending", "sending"]);
  state = after(state, sent(2));
  assert.deepEqual(phases(state), ["sending", "sent", "sending"]);
});

test("the title is derived from the file's name unless another one was typed", () => {
  const state = withFiles("my_holiday  film.mp4");
  assert.equal(state.uploads[0].details.title, "my holiday film");
  assert.deepEqual(state.announcements, ["Uploading my_holiday  film.mp4."]);
  assert.deepEqual(start().uploads, []);
});

test("the first file stays open while others are added", () => {
  let state = after(withFiles("a.mp4", "b.mp4"), chosen(film("c.mp4")));
  assert.equal(openOf(state).fileName, "a.mp4");
  state = after(state, { type: "opened", number: 3 });
  assert.equal(openOf(state).fileName, "c.mp4");
  state = after(state, { type: "remove", number: 3 });
  assert.equal(openOf(state).fileName, "a.mp4");
  assert.deepEqual(state.focus, { number: 2, target: "line" });
});

test("the next upload opens after a publication", () => {
  let state = after(withFiles("a.mp4", "b.mp4", "c.mp4"), { type: "opened", number: 2 });
  const published = (number) => ({ type: "published", number, video: { id: "v", title: "Sea" } });
  state = after(state, published(2));
  assert.equal(state.open, 3);
  state = after(state, published(3));
  assert.equal(state.open, 1);
  state = after(state, published(1));
  assert.equal(state.open, 0);
  assert.equal(submitOf(state).isHidden, true);
  assert.equal(batchOf(state).count, "3 videos published.");
  const failed = { stage: "failed", percent: 0, queuePosition: null, failure: "It is damaged." };
  for (const [number, count] of [
    [1, "2 videos published, 1 couldn’t be processed."],
    [2, "1 video published, 2 couldn’t be processed."],
    [3, "No videos published, 3 couldn’t be processed."],
  ]) {
    state = after(state, { type: "processingRead", number, processing: failed });
    assert.equal(batchOf(state).count, count);
  }
});

test("an unsuitable file is not opened after a publication", () => {
  let state = after(start(), chosen(film("notes.txt", "text/plain"), film("a.mp4")));
  assert.equal(openOf(state).fileName, "a.mp4");
  state = after(state, sent(2), { type: "published", number: 2, video: { id: "v", title: "Sea" } });
  assert.equal(state.open, 0);
  const processing = { stage: "ready", percent: 100, queuePosition: null, hasPoster: false, failure: "" };
  state = after(state, { type: "processingRead", number: 2, processing });
  assert.equal(state.open, 0);
  assert.equal(after(state, { type: "opened", number: 1 }).open, 1);
  assert.equal(after(start(), chosen(film("notes.txt", "text/plain"))).open, 1);
});

test("without a connection no time left is shown for all files", () => {
  const failure = new NoResponse();
  let state = withFiles("a.mp4", "b.mp4");
  for (const number of [1, 2]) {
    state = after(state, transferred(number, { sent_bytes: 0 }, 0), transferred(number, { sent_bytes: 500 }, 1000));
  }
  assert.match(batchOf(state).rest, /left$/);
  state = after(state, transferred(1, { trouble: failure }), transferred(2, { trouble: failure }));
  assert.match(batchOf(state).rest, /No connection, retrying…$/);
  assert.equal(overallOf(state.uploads).speed_bps, 0);
});

test("a file sent by an earlier visit is ready to publish when its details are complete", () => {
  const restoredWith = (details) => after(start(), { type: "restored", saved: [saved({ isStored: true, details })] });
  const complete = restoredWith(DETAILS);
  assert.equal(statusOf(complete.uploads[0]).rest, "Ready to publish");
  // The file need not be chosen again.
  assert.equal(after(complete, { type: "submitted" }).uploads[0].publishing, "publishing");
  const lacking = restoredWith({ ...DETAILS, categoryIds: [] });
  assert.equal(statusOf(lacking.uploads[0]).rest, "");
  assert.equal(submitOf(lacking).hint, "1 video needs a category");
});

test("unsuitable and repeated files are listed with their reasons beside suitable ones", () => {
  const files = [film("a.mp4"), film("a.mp4"), film("notes.txt", "text/plain"), film("b.mp4")];
  const state = after(start(), chosen(...files));
  assert.deepEqual(phases(state), ["sending", "refused", "refused", "sending"]);
  assert.deepEqual(refusals(state)[0], "“a.mp4” is already in the list.");
  assert.equal(state.announcements[0], "Uploading 2 files.");
  assert.equal(state.announcements.at(-1), "notes.txt: This file can’t be published.");
});

test("a file is refused by its name, kind or size", () => {
  const refusalOf = (name, type, size = SIZE_BYTES, most = 0) => {
    const file = Object.defineProperty(film(name, type), "size", { value: size });
    const state = after(initialState({ ...NO_LIMITS, size_bytes: most }), chosen(file));
    assert.equal(state.open, 1);
    return refusals(state)[0] ?? "";
  };
  const others = [["notes.txt", "text/plain"], ["film.avi", "video/x-msvideo"], ["page.mp4", "text/html"]];
  for (const [name, type] of others) assert.match(refusalOf(name, type), /AVI file.*HandBrake.*portal publish|neither a video nor sound/);
  assert.match(refusalOf("empty.mp4", "video/mp4", 0), /is empty/);
  assert.match(refusalOf("a.mp4", "video/mp4", 100_000_000_001, 1e11), /larger than 100.GB/);
  assert.equal(refusalOf("a.mp4", "video/mp4", 1e11, 1e11), "");
});

test("a file's type is derived from its extension if the browser knows none", () => {
  const typeOf = (name, type) => after(start(), chosen(film(name, type))).uploads[0].contentType;
  assert.equal(typeOf("a.mov", ""), "video/quicktime");
  assert.equal(typeOf("a.m4v", "video/x-m4v"), "video/mp4");
  assert.equal(typeOf("A.MP4", "video/mp4"), "video/mp4");
});

test("a file in another container is sent as MP4, and its line names the container", () => {
  const [upload] = after(start(), chosen(film("film.mkv", "video/x-matroska"))).uploads;
  assert.equal(upload.contentType, "video/mp4");
  assert.equal(noteOf(upload).text, "Repacked from Matroska, nothing is lost");
  const findings = [{ code: "subtitles", weight: "info", title: "", text: "" }];
  const withSubtitles = { ...upload, inspection: { facts: "", findings } };
  assert.equal(noteOf(withSubtitles).text, "Repacked from Matroska, without subtitles that are pictures");
  assert.equal(is.isSentWhole(upload), false);
});

test("choosing a part of a film pauses it, and sending the part starts anew with an estimate", () => {
  const inspection = { facts: "", findings: [], canTrim: true };
  let state = after(withFiles("a.mp4"), { type: "inspected", number: 1, inspection }, transferred(1, { key: "k" }));
  const draft = { start_s: 10, end_s: 20, film_s: 100 };
  state = after(state, { type: "partMoved", number: 1, draft });
  assert.equal(state.uploads[0].phase, "paused");
  assert.match(noteOf(state.uploads[0]).text, /Waits until you have chosen/);
  const chosenPart = after(state, { type: "partChosen", number: 1, id: "new", now: 2, isWhole: false });
  const [part] = chosenPart.uploads;
  assert.deepEqual([part.phase, part.id, part.key, part.draft], ["sending", "new", "", null]);
  assert.equal(part.size_bytes, SIZE_BYTES / 10);
  assert.equal(noteOf(part).text, "Only 0:10 to 0:20 is sent");
  // The upload of the whole film continues.
  const [whole] = after(state, { type: "partChosen", number: 1, id: "new", now: 2, isWhole: true }).uploads;
  assert.deepEqual([whole.phase, whole.key, whole.trim], ["sending", "k", null]);
  // Its line's button continues, too.
  assert.equal(after(state, { type: "resume", number: 1 }).uploads[0].draft, null);
  // What is stored isn't trimmed any more.
  const stored = after(withFiles("a.mp4"), { type: "inspected", number: 1, inspection }, sent(1));
  assert.equal(after(stored, { type: "partMoved", number: 1, draft }).uploads[0].draft, null);
});

test("progress never decreases and is complete only after storage has confirmed", () => {
  let state = after(withFiles("a.mp4"), transferred(1, { sent_bytes: 700 }));
  state = after(state, transferred(1, { sent_bytes: 300 }));
  assert.equal(state.uploads[0].sent_bytes, 700);
  state = after(state, transferred(1, { sent_bytes: SIZE_BYTES }));
  assert.equal(statusOf(state.uploads[0]).figure, "99%");
  state = after(state, sent(1));
  assert.equal(state.uploads[0].sent_bytes, SIZE_BYTES);
});

test("speed and time left need two measurements", () => {
  let state = after(withFiles("a.mp4"), transferred(1, { sent_bytes: 100 }, 1000));
  assert.equal(statusOf(state.uploads[0]).rest, "");
  state = after(state, transferred(1, { sent_bytes: 200 }, 2000));
  assert.match(statusOf(state.uploads[0]).rest, /^100\sbytes\/s · about 10 s left$/);
});

test("speed counts sent bytes and not those stored before", () => {
  let state = after(start(), chosen(largeFilm("a.mp4"), largeFilm("b.mp4")));
  state = after(state, transferred(1, { fingerprint: "f" }, 0), transferred(1, { phase: "sending" }, 100));
  state = after(state, transferred(1, { stored_bytes: 90 * MIB }, 600));
  assert.equal(state.uploads[0].sent_bytes, 90 * MIB);
  assert.equal(state.uploads[0].rate.speed_bps, null);
  assert.equal(overallOf(state.uploads).speed_bps, 0);
  state = after(state, transferred(1, { sent_bytes: 91 * MIB }, 1600));
  assert.equal(state.uploads[0].rate.speed_bps, MIB);
  assert.equal(overallOf(state.uploads).speed_bps, MIB);
  // A broken connection loses data in flight, and the speed counts from the stored bytes.
  state = after(state, { type: "pause", number: 1 }, { type: "resume", number: 1 });
  state = after(state, transferred(1, { stored_bytes: 80 * MIB }, 9000));
  assert.equal(state.uploads[0].sent_bytes, 90 * MIB);
  state = after(state, transferred(1, { sent_bytes: 82 * MIB }, 10_000));
  assert.equal(state.uploads[0].rate.speed_bps, 2 * MIB);
});

test("a resumed upload shows the stored bytes at once", () => {
  let state = after(start(), { type: "restored", saved: [saved({ size_bytes: LARGE_BYTES })] });
  state = after(state, { type: "progressRead", number: 1, isStored: false, arrived_bytes: 40 * MIB });
  assert.equal(statusOf(state.uploads[0]).figure, "Unfinished at 40%");
  const choices = [{ file: largeFilm("a.mp4"), id: "n", match: 1 }];
  state = after(state, { type: "chosen", choices, now: 9 });
  assert.equal(statusOf(state.uploads[0]).figure, "40%");
  assert.equal(overallOf(state.uploads).share, 0.4);
  state = after(state, transferred(1, { stored_bytes: 48 * MIB }, 10));
  assert.equal(statusOf(state.uploads[0]).figure, "48%");
});

test("a small file restarts from the beginning and says so", () => {
  let state = after(withFiles("a.mp4"), transferred(1, { sent_bytes: 700 }), { type: "pause", number: 1 });
  assert.equal(statusOf(state.uploads[0]).rest, "small files restart from the beginning");
  state = after(state, { type: "resume", number: 1 });
  assert.equal(state.uploads[0].sent_bytes, 0);
  const large = after(start(), chosen(largeFilm("a.mp4")), transferred(1, { stored_bytes: 60 * MIB }));
  state = after(large, { type: "pause", number: 1 });
  assert.equal(statusOf(state.uploads[0]).rest, "");
  state = after(state, { type: "resume", number: 1 });
  assert.equal(state.uploads[0].sent_bytes, 60 * MIB);
  const visit = after(start(), { type: "restored", saved: [saved()] });
  assert.match(statusOf(visit.uploads[0]).unfinished, /small files restart from the beginning/);
});

test("a publication starts by itself when its file is stored", () => {
  let state = withFiles("a.mp4");
  assert.equal(submitOf(state).label, "Publish");
  state = after(state, { type: "submitted" });
  assert.deepEqual(state.uploads[0].faults.map(({ pointer }) => pointer), ["/categoryIds"]);
  assert.deepEqual(state.focus, { number: 1, target: "fault" });
  assert.equal(noteOf(state.uploads[0]).text, "Some details are missing");
  state = after(state, { type: "edited", number: 1, details: DETAILS, pointer: "/categoryIds" });
  state = after(state, { type: "submitted" });
  assert.equal(state.uploads[0].publishing, "requested");
  assert.equal(noteOf(state.uploads[0]).text, "Will be published when the upload finishes");
  assert.deepEqual([submitOf(state).label, submitOf(state).isBusy], ["Waiting…", true]);
  state = after(state, sent(1));
  assert.equal(state.uploads[0].publishing, "publishing");
  state = after(state, { type: "published", number: 1, video: { id: "v", title: "Sea" } });
  assert.deepEqual(state.announcements, ["“Sea” is published."]);
});

test("one click publishes all complete uploads and opens the first incomplete one", () => {
  const right = (number) => ({ type: "edited", number, details: DETAILS, pointer: "" });
  let state = after(withFiles("a.mp4", "b.mp4", "c.mp4"), sent(1), right(1), right(3));
  const { label, hint, isIncomplete } = submitOf(state);
  assert.deepEqual([label, hint, isIncomplete], ["Publish 3 videos", "1 video needs a category", false]);
  assert.deepEqual(submitOf(withFiles("a.mp4")).isIncomplete, true);
  state = after(state, { type: "submitted" });
  const publishing = state.uploads.map((upload) => upload.publishing);
  assert.deepEqual(publishing, ["publishing", "", "requested"]);
  assert.equal(state.open, 2);
  assert.deepEqual(state.focus, { number: 2, target: "fault" });
  assert.equal(submitOf(state).label, "Publish");
});

test("a refusal by the portal opens its upload unless the editor is fixing another one", () => {
  const right = (number) => ({ type: "edited", number, details: DETAILS, pointer: "" });
  const faults = [{ pointer: "/title", message: "Shorter." }];
  const refused = { type: "refused", number: 2, error: new NotPublished(faults, "Look.", false) };
  const state = after(withFiles("a.mp4", "b.mp4"), right(1), right(2), sent(2), { type: "submitted" });
  assert.deepEqual(after(state, refused).focus, { number: 2, target: "fault" });
  assert.equal(after(state, refused).open, 2);
  const mending = after(withFiles("a.mp4", "b.mp4"), right(2), { type: "submitted" }, refused);
  assert.deepEqual([mending.open, mending.focus], [1, null]);
});

test("a published video is followed until it is ready or has failed", () => {
  const processing = { stage: "waiting", percent: 0, queuePosition: 3, hasPoster: false, failure: "" };
  const followed = (changes) => ({ type: "processingRead", number: 1, processing: { ...processing, ...changes } });
  const video = { id: "v", title: "Sea" };
  let state = after(withFiles("a.mp4"), sent(1), { type: "published", number: 1, video });
  const status = () => statusOf(state.uploads[0]);
  assert.equal(status().figure, "Published");
  state = after(state, followed({}));
  assert.equal(status().rest, "In queue: position 3");
  state = after(state, followed({ stage: "transcoding", percent: 37.5 }));
  assert.deepEqual([status().figure, status().share], ["Processing 37%", 0.375]);
  state = after(state, followed({ stage: "failed", failure: "No picture." }));
  assert.deepEqual([status().art, status().rest], ["bad", "No picture."]);
  assert.deepEqual(state.announcements, ["“Sea” couldn’t be processed: No picture."]);
  state = after(state, followed({ stage: "ready" }));
  assert.equal(status().figure, "Ready to watch");
  assert.deepEqual(state.announcements, ["“Sea” is ready to watch."]);
});

test("a refusal asks for another upload of the file, or for other details", () => {
  const details = { type: "edited", number: 1, details: DETAILS, pointer: "" };
  const state = after(withFiles("a.mp4"), details, transferred(1, { key: "k" }), sent(1));
  const faults = [{ pointer: "/title", message: "Shorter." }];
  const typed = { type: "refused", number: 1, error: new NotPublished(faults, "Look.", false) };
  const shown = after(state, typed).uploads[0];
  assert.deepEqual([shown.phase, shown.publishError], ["sent", "Look."]);
  const lost = { type: "refused", number: 1, error: new NotPublished([], "Gone.", true) };
  assert.equal(statusOf(after(state, lost).uploads[0]).trouble.text, "Gone.");
  const again = after(state, lost, { type: "retry", number: 1 }).uploads[0];
  assert.deepEqual([again.phase, again.key, again.sent_bytes], ["sending", "", 0]);
});

test("a cancelled file can be sent from the beginning, or removed", () => {
  let state = after(withFiles("a.mp4", "b.mp4"), transferred(2, { key: "k", sent_bytes: 500 }));
  state = after(state, { type: "cancel", number: 2 });
  assert.deepEqual(phases(state), ["sending", "cancelled"]);
  state = after(state, { type: "retry", number: 2 });
  assert.deepEqual([state.uploads[1].key, state.uploads[1].sent_bytes], ["", 0]);
  state = after(state, { type: "cancel", number: 2 }, { type: "remove", number: 2 });
  assert.deepEqual(phases(state), ["sending"]);
  state = after(state, { type: "remove", number: 1 });
  assert.deepEqual([state.uploads, state.focus], [[], { target: "files" }]);
});

test("another file replaces a refused one and typed details are kept", () => {
  const finding = { code: "encrypted", weight: "refuse", title: "Protected", text: "" };
  const inspection = { facts: "", findings: [finding] };
  const typed = { type: "edited", number: 1, details: DETAILS, pointer: "" };
  let state = after(withFiles("a.mp4"), typed, { type: "inspected", number: 1, inspection });
  assert.equal(statusOf(state.uploads[0]).canReplace, true);
  const replace = (file) => ({ type: "chosen", choices: [{ file, id: "n", match: 1 }], now: 2, from: 1 });
  state = after(state, replace(film("notes.txt", "text/plain")));
  assert.match(state.uploads[0].faults[0].message, /neither a video nor sound/);
  assert.equal(state.uploads[0].phase, "refused");
  assert.deepEqual(state.focus, { number: 1, target: "fault" });
  state = after(state, replace(film("b.mp4")));
  const [upload] = state.uploads;
  assert.deepEqual([upload.phase, upload.fileName, upload.id], ["sending", "b.mp4", "n"]);
  assert.deepEqual([upload.details, upload.inspection, upload.faults], [DETAILS, null, []]);
  // The name of the file is no title that someone typed.
  const plain = after(withFiles("a.mp4"), { type: "cancel", number: 1 }, replace(film("c.mp4")));
  assert.equal(plain.uploads[0].details.title, "c");
});

test("an unfinished upload continues only with its own file", () => {
  let state = after(start(), { type: "restored", saved: [saved()] });
  assert.deepEqual(phases(state), ["unfinished"]);
  const { number } = state.uploads[0];
  state = after(state, { type: "progressRead", number, isStored: false, arrived_bytes: 400 });
  const other = { file: film("b.mp4"), id: "new", match: number, fault: "Another file." };
  state = after(state, { type: "chosen", choices: [other], now: 8, from: number });
  assert.deepEqual(state.uploads[0].faults, [{ pointer: "/file", message: "Another file." }]);
  const choices = [{ file: film("a.mp4"), id: "new", match: number }];
  state = after(state, { type: "chosen", choices, now: 9 });
  const { id, key, fingerprint, phase, details, saved_at, faults } = state.uploads[0];
  assert.deepEqual([id, key, fingerprint, phase], ["s", "videos/k.mp4", "f", "sending"]);
  assert.deepEqual([details, saved_at, faults], [DETAILS, 5, []]);
});

test("an upload whose file was missing continues when the file is chosen again", () => {
  const error = new TransferFailed(0, "file_unreadable");
  let state = after(withFiles("a.mp4"), transferred(1, { key: "k", fingerprint: "f" }));
  state = after(state, { type: "edited", number: 1, details: DETAILS, pointer: "" });
  state = after(state, { type: "submitted" }, { type: "failed", number: 1, error });
  assert.match(noteOf(state.uploads[0]).text, /Fix this to publish/);
  const choices = [{ file: film("a.mp4"), id: "new", match: 1 }];
  const again = after(state, { type: "chosen", choices, now: 9 }).uploads[0];
  const { id, key, phase, publishing } = again;
  assert.deepEqual([id, key, phase, publishing], ["a.mp4", "k", "sending", "requested"]);
});

test("uploads that failed without a connection continue when it is back", () => {
  const failed = (number, error) => ({ type: "failed", number, error });
  let state = after(withFiles("a.mp4", "b.mp4", "c.mp4"), failed(1, new NoResponse("")));
  state = after(state, failed(2, new TransferFailed(0)), failed(3, new TransferFailed(403)));
  state = after(state, { type: "connected" });
  assert.deepEqual(phases(state), ["sending", "sending", "failed"]);
});

test("a file that the portal can't publish is not sent any further", () => {
  const finding = { code: "truncated", weight: "refuse", title: "The end is missing", text: "" };
  const inspection = { facts: "", findings: [finding] };
  const state = after(withFiles("a.mp4", "b.mp4"), { type: "inspected", number: 1, inspection });
  assert.deepEqual(phases(state), ["refused", "sending"]);
  assert.equal(statusOf(state.uploads[0]).trouble.title, "The end is missing");
  assert.equal(submitOf(state).label, "Publish");
  assert.equal(batchOf(state).isHidden, true);
  assert.equal(submitOf(after(state, { type: "remove", number: 2 })).isHidden, true);
});

test("an error that is retried is shown until it has passed", () => {
  let state = after(withFiles("a.mp4"), transferred(1, { trouble: new NoResponse("no answer") }));
  assert.match(statusOf(state.uploads[0]).rest, /be reached · Retrying/);
  state = after(state, transferred(1, { trouble: null }));
  assert.equal(statusOf(state.uploads[0]).rest, "");
  const error = new Refused(422, { detail: "No." });
  state = after(state, { type: "failed", number: 1, error });
  assert.deepEqual(statusOf(state.uploads[0]).buttons, ["remove"]);
});

test("each quarter of the total progress is announced once", () => {
  let state = withFiles("a.mp4", "b.mp4");
  const announced = [];
  for (let bytes = 50; bytes <= SIZE_BYTES; bytes += 50) {
    for (const number of [1, 2]) {
      state = after(state, transferred(number, { sent_bytes: bytes }));
      announced.push(...state.announcements);
    }
  }
  state = after(state, sent(1));
  announced.push(...state.announcements);
  state = after(state, sent(2));
  announced.push(...state.announcements);
  assert.deepEqual(announced, [
    ...["25% uploaded.", "50% uploaded.", "75% uploaded."],
    ...["a.mp4 is uploaded.", "b.mp4 is uploaded.", "Both files are uploaded."],
  ]);
});

test("an upload whose session has ended continues after signing in and a click", () => {
  const stopped = { type: "failed", number: 1, error: new Refused(401, { code: "not_signed_in" }) };
  const begun = [transferred(1, { key: "k" }), transferred(1, { sent_bytes: 700 })];
  const typed = { type: "edited", number: 1, details: DETAILS, pointer: "" };
  const state = after(withFiles("a.mp4"), typed, ...begun, stopped);
  const { trouble, buttons } = statusOf(state.uploads[0]);
  assert.ok(trouble.needsSignIn && trouble.text.startsWith(SIGNED_OUT));
  assert.deepEqual(buttons, ["retry", "remove"]);
  const [again] = after(state, { type: "retry", number: 1 }).uploads;
  assert.deepEqual([again.phase, again.key], ["sending", "k"]);
  assert.deepEqual(again.details, DETAILS);
});

test("each upload starts with the default visibility and keeps its own choice", () => {
  let state = after(initialState(NO_LIMITS, BLANK), chosen(film("a.mp4"), film("b.mp4")));
  const visibilities = () => state.uploads.map(({ details }) => details.visibility);
  assert.deepEqual(visibilities(), ["unlisted", "unlisted"]);
  state = after(state, { type: "edited", number: 1, details: DETAILS, pointer: "/visibility" });
  assert.deepEqual(visibilities(), ["private", "unlisted"]);
  const restored = after(initialState(NO_LIMITS, BLANK), { type: "restored", saved: [saved()] });
  assert.equal(restored.uploads[0].details.visibility, "private");
});

test("details are applied to all uploads, without a wider visibility unless confirmed, and can be undone", () => {
  const usual = { ...BLANK, visibility: "public" };
  const edited = (number, changes) => ({ type: "edited", number, details: { ...usual, ...changes }, pointer: "" });
  const secret = { title: "Board", tags: "board, confidential", visibility: "private" };
  const files = chosen(film("a.mp4"), film("b.mp4"), film("c.mp4"));
  const before = after(initialState(NO_LIMITS, usual), files, edited(1, secret));
  let state = after(before, edited(2, { categoryIds: [1] }));
  assert.equal(questionOf(state, "copy", 2), null);
  state = after(state, { type: "copy", number: 2 });
  assert.deepEqual(state.uploads[0].details, { ...usual, ...secret, categoryIds: [1] });
  assert.deepEqual(state.announcements, ["Applied to 2 videos."]);
  assert.deepEqual(state.uploads.map((upload) => visibilityText(upload, "public")), ["Private", "", ""]);
  assert.deepEqual(after(state, { type: "undo" }).uploads[0].details, before.uploads[0].details);
  assert.deepEqual(after(state, edited(3, { title: "c" })).applied, []);

  state = after(before, edited(2, { tags: "sea", visibility: "unlisted" }));
  assert.equal(questionOf(state, "copy", 2).title, "Make “a.mp4” unlisted?");
  const given = (mayLoosen) => after(state, { type: "copy", number: 2, mayLoosen }).uploads.map(({ details }) => details);
  assert.deepEqual(given(false).map(({ visibility }) => visibility), ["private", "unlisted", "public"]);
  assert.deepEqual(given(true).map(({ visibility }) => visibility), ["unlisted", "unlisted", "unlisted"]);
  assert.deepEqual(given(false).map(({ tags }) => tags), ["sea", "sea", "sea"]);
});

test("names are applied to all uploads, and members are more viewers than a private video has", () => {
  const edited = (number, changes) => ({ type: "edited", number, details: { ...BLANK, ...changes }, pointer: "" });
  const files = chosen(film("a.mp4"), film("b.mp4"), film("c.mp4"));
  const before = after(initialState(NO_LIMITS, BLANK), files, edited(1, { visibility: "private" }));
  const state = after(before, edited(2, { visibility: "members", share: "Choir" }));
  assert.equal(questionOf(state, "copy", 2).title, "Show “a.mp4” to all members?");
  assert.equal(visibilityText(state.uploads[1], "public"), "Members");
  const withPage = after(before, edited(2, { visibility: "page" }));
  assert.equal(questionOf(withPage, "copy", 2).title, "Show the page of “a.mp4” to everyone?");
  assert.match(questionOf(withPage, "copy", 2).text, /^The same people will be able to watch/);
  const audiences = (mayLoosen) =>
    after(state, { type: "copy", number: 2, mayLoosen }).uploads.map(({ details }) => [details.visibility, details.share]);
  assert.deepEqual(audiences(false), [["private", "Choir"], ["members", "Choir"], ["unlisted", "Choir"]]);
  assert.deepEqual(audiences(true), [["members", "Choir"], ["members", "Choir"], ["members", "Choir"]]);
  const private_ = after(before, edited(2, { visibility: "members" }), edited(1, { visibility: "private", tags: "a" }));
  assert.equal(questionOf(private_, "copy", 1), null);
});

test("details that an earlier version saved are complete", () => {
  const { share, series, ...earlier } = DETAILS;
  const request = { ...earlier, fileName: "a.mp4", key: "videos/k.mp4" };
  const [upload] = after(start(), { type: "restored", saved: [saved({ details: earlier, request })] }).uploads;
  assert.deepEqual(upload.details, DETAILS);
  assert.deepEqual(upload.request, { ...request, share, series });
});

test("only the removal of stored data asks for confirmation", () => {
  const questionAbout = (state) => questionOf(state, "remove", 1);
  assert.match(questionAbout(after(withFiles("a.mp4"), sent(1))).text, /^1.0.kB that you have uploaded will be deleted/);
  const failed = { type: "failed", number: 1, error: new TransferFailed(0) };
  const some = [transferred(1, { stored_bytes: 500 }), failed];
  assert.equal(questionAbout(after(withFiles("a.mp4"), ...some)), null);
  const large = after(start(), chosen(largeFilm("a.mp4")));
  assert.ok(questionAbout(after(large, ...some)));
  assert.equal(questionAbout(after(large, ...some, { type: "cancel", number: 1 })), null);
});

test("the progress shows only bytes that a reload keeps", () => {
  let state = after(start(), chosen(largeFilm("a.mp4")), transferred(1, { key: "k", stored_bytes: 16 * MIB }, 0));
  state = after(state, transferred(1, { sent_bytes: 40 * MIB }, 1000));
  assert.equal(statusOf(state.uploads[0]).figure, "16%");
  assert.match(statusOf(state.uploads[0]).rest, /^25.2.MB\/s · a few seconds left$/);
  state = after(state, transferred(1, { stored_bytes: 32 * MIB, sent_bytes: 41 * MIB }, 2000));
  assert.equal(statusOf(state.uploads[0]).figure, "32%");
  const visit = after(start(), { type: "restored", saved: [saved({ size_bytes: LARGE_BYTES })] });
  const again = after(visit, { type: "progressRead", number: 1, isStored: false, arrived_bytes: 32 * MIB });
  assert.equal(statusOf(again.uploads[0]).figure, "Unfinished at 32%");

  const small = after(withFiles("a.mp4"), ...[100, 110].map((sent_bytes, s) => transferred(1, { sent_bytes }, s * 1000)));
  assert.match(statusOf(small.uploads[0]).rest, /restarts if you reload$/);
});

/** A file of so many bytes. */
function sized(name, size_bytes = SIZE_BYTES) {
  return Object.defineProperty(film(name), "size", { value: size_bytes });
}

const startWith = (left) => initialState({ ...NO_LIMITS, left });
const accepted = ({ uploads }) => uploads.filter((upload) => upload.file).map(({ fileName }) => fileName);

test("only as many files are accepted as the account may publish", () => {
  const start = startWith({ videos: 2, size_bytes: null });
  let state = after(start, chosen(sized("a.mp4"), sized("b.mp4"), sized("c.mp4")));
  assert.match(refusals(state)[0], /“c.mp4” can’t be published now.* only 2 more\./);
  // A discarded upload frees quota, a published one does not.
  state = after(state, { type: "cancel", number: 1 }, chosen(sized("d.mp4")));
  const video = { id: "v", title: "Sea" };
  state = after(state, { type: "published", number: 2, video }, chosen(sized("e.mp4")));
  assert.deepEqual(accepted(state), ["a.mp4", "b.mp4", "d.mp4"]);
  const none = after(startWith({ videos: 0, size_bytes: null }), chosen(sized("a.mp4")));
  assert.match(refusals(none)[0], /can publish no more videos/);
});

test("files are accepted while the storage quota has room for all of them", () => {
  const start = startWith({ videos: null, size_bytes: 2 * SIZE_BYTES });
  let state = after(start, chosen(sized("a.mp4", SIZE_BYTES + 1), sized("b.mp4")));
  assert.match(refusals(state)[0], /“b.mp4” is 1.0\skB.* has 999\sbytes of storage left/);
  state = after(state, chosen(sized("c.mp4", SIZE_BYTES - 1)));
  assert.deepEqual(accepted(state), ["a.mp4", "c.mp4"]);
});

test("a file that continues an upload takes no additional quota", () => {
  let state = startWith({ videos: 1, size_bytes: SIZE_BYTES });
  state = after(state, { type: "restored", saved: [saved()] });
  const [{ number }] = state.uploads;
  state = after(state, { type: "progressRead", number, isStored: false, arrived_bytes: 500 });
  const choices = [{ file: sized("a.mp4"), id: "n", match: number }];
  state = after(state, { type: "chosen", choices, now: 1 }, chosen(sized("b.mp4")));
  assert.deepEqual(accepted(state), ["a.mp4", "b.mp4"]);
});

test("a refusal by a quota has a remedy and can be retried", () => {
  const freeAt = new Date(Date.now() + 3600_000).toISOString();
  const state = after(startWith(undefined), chosen(sized("a.mp4")));
  const [{ number }] = state.uploads;
  const videos = new Refused(409, { code: "video_quota_exceeded", detail: "UTC", freeAt });
  const status = statusOf(after(state, { type: "failed", number, error: videos }).uploads[0]);
  assert.equal(status.trouble.title, "You’ve reached your publishing limit");
  const time = new Date(freeAt).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  assert.ok(status.trouble.text.includes(` at ${time}; your upload is kept`));
  assert.deepEqual(status.buttons, ["retry", "remove"]);
  const room = new Refused(409, { code: "storage_quota_exceeded", detail: "Delete videos." });
  const full = statusOf(after(state, { type: "failed", number, error: room }).uploads[0]);
  assert.deepEqual([full.trouble.text, full.buttons], ["Delete videos.", ["retry", "remove"]]);
});

test("the file is kept when the daily quota is used up, and uploaded again when it was removed", async () => {
  const request = { ...DETAILS, fileName: "a.mp4", key: `videos/${"0".repeat(32)}.mp4` };
  const refusedWith = async (code) => {
    const refuse = async () => {
      throw new Refused(409, { code, detail: "Words.", freeAt: "2026-01-02T03:04:05Z" });
    };
    const api = /** @type {any} */ ({ publish: refuse });
    return publish(api, request, null, () => {}).catch((error) => error);
  };
  const day = await refusedWith("video_quota_exceeded");
  assert.equal(day.needsUpload, false);
  assert.match(day.message, /You can publish the next one on 2 January at/);
  const room = await refusedWith("storage_quota_exceeded");
  assert.deepEqual([room.needsUpload, room.message], [true, "Words."]);
});

test("a start time is parsed in the usual notations", () => {
  for (const text of ["12", "12s", "0m12s", "0:12", "0:00:12"]) assert.equal(parseStartTime_s(text), 12);
  for (const text of ["soon", "0:99", null]) assert.equal(parseStartTime_s(text), null);
});
