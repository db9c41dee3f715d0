/** Quotas on the upload page, without a browser. Run by `node --test`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused } from "../../static/src/requests.js";
import { publish } from "../../static/src/upload/publication.js";
import { initialState, reduce } from "../../static/src/upload/state.js";
import { standingOf } from "../../static/src/upload/words.js";

const SIZE_BYTES = 1000;
const NO_LIMITS = { size_bytes: 0, duration_s: 0, pixels: 0 };
const ANY = Number.POSITIVE_INFINITY;
const DETAILS = { title: "Sea", description: "", categoryIds: [1], tags: "" };

function film(name, size_bytes = SIZE_BYTES) {
  return new File(["x".repeat(size_bytes)], name, { type: "video/mp4", lastModified: 1 });
}

function after(state, ...events) {
  return events.reduce(reduce, state);
}

function chosen(...files) {
  const choices = files.map((file) => ({ file, id: file.name, match: null }));
  return { type: "chosen", choices, now: 1 };
}

const startWith = (left) => initialState({ ...NO_LIMITS, left });
const names = ({ uploads }) => uploads.filter((it) => it.file).map(({ fileName }) => fileName);

test("only as many files are taken as the account may publish", () => {
  const start = startWith({ videos: 2, size_bytes: ANY });
  let state = after(start, chosen(film("a.mp4"), film("b.mp4"), film("c.mp4")));
  assert.deepEqual(names(state), ["a.mp4", "b.mp4"]);
  assert.match(state.fileFaults[0], /“c.mp4” can’t be published now.* only 2 more\./);
  // What is given up leaves its place, what is published does not.
  state = after(state, { type: "cancel", number: 1 }, chosen(film("d.mp4")));
  assert.deepEqual(names(state), ["a.mp4", "b.mp4", "d.mp4"]);
  const video = { id: "v", title: "Sea" };
  state = after(state, { type: "published", number: 2, video }, chosen(film("e.mp4")));
  assert.equal(state.fileFaults.length, 1);
});

test("where nothing is left every file is refused", () => {
  const none = after(startWith({ videos: 0, size_bytes: ANY }), chosen(film("a.mp4")));
  assert.match(none.fileFaults[0], /may publish no more videos/);
  const full = after(startWith({ videos: ANY, size_bytes: 0 }), chosen(film("a.mp4")));
  assert.match(full.fileFaults[0], /“a.mp4” has .*1.0\skB, .* room for 0 bytes more/);
  assert.deepEqual(names(none).concat(names(full)), []);
});

test("files fit as long as there is room for all of them, to the last byte", () => {
  const start = startWith({ videos: ANY, size_bytes: 2 * SIZE_BYTES });
  let state = after(start, chosen(film("a.mp4", SIZE_BYTES + 1), film("b.mp4")));
  assert.deepEqual(names(state), ["a.mp4"]);
  assert.match(state.fileFaults[0], /“b.mp4”.* room for 999 bytes more/);
  state = after(state, chosen(film("c.mp4", SIZE_BYTES - 1)));
  assert.deepEqual(names(state), ["a.mp4", "c.mp4"]);
});

test("a file that continues an upload has its room already", () => {
  const saved = {
    ...{ id: "s", key: "videos/k.mp4", uploadId: "k", fileName: "a.mp4", contentType: "video/mp4" },
    ...{ size_bytes: SIZE_BYTES, fingerprint: "f", isStored: false, details: DETAILS },
    ...{ request: null, saved_at: 5 },
  };
  let state = startWith({ videos: 1, size_bytes: SIZE_BYTES });
  state = after(state, { type: "restored", saved: [saved] });
  const [{ number }] = state.uploads;
  state = after(state, { type: "looked", number, isStored: false, arrived_bytes: 500 });
  const choices = [{ file: film("a.mp4"), id: "n", match: number }];
  state = after(state, { type: "chosen", choices, now: 1 }, chosen(film("b.mp4")));
  assert.deepEqual(state.fileFaults, []);
  assert.deepEqual(names(state), ["a.mp4", "b.mp4"]);
});

test("a refusal for a quota says what to do, and may be tried again", () => {
  const freeAt = new Date(Date.now() + 3600_000).toISOString();
  const state = after(startWith(undefined), chosen(film("a.mp4")));
  const [{ number }] = state.uploads;
  const videos = new Refused(409, { code: "video_quota_exceeded", detail: "UTC", freeAt });
  const standing = standingOf(after(state, { type: "failed", number, error: videos }).uploads[0]);
  assert.equal(standing.trouble.title, "No more videos can be published for now");
  const time = new Date(freeAt).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  assert.ok(standing.trouble.text.includes(` at ${time}; what is uploaded is kept`));
  assert.deepEqual(standing.buttons, ["retry", "remove"]);
  const room = new Refused(409, { code: "storage_quota_exceeded", detail: "Delete videos." });
  const full = standingOf(after(state, { type: "failed", number, error: room }).uploads[0]);
  assert.deepEqual([full.trouble.text, full.buttons], ["Delete videos.", ["retry", "remove"]]);
});

test("publishing keeps the file when its day is over, and sends it anew when it was removed", async () => {
  const wanted = { ...DETAILS, fileName: "a.mp4", key: `videos/${"0".repeat(32)}.mp4` };
  const refusedWith = async (code) => {
    const refuse = async () => {
      throw new Refused(409, { code, detail: "Words.", freeAt: "2026-01-02T03:04:05Z" });
    };
    const api = /** @type {any} */ ({ publish: refuse });
    return publish(api, wanted, null, () => {}).catch((error) => error);
  };
  const day = await refusedWith("video_quota_exceeded");
  assert.equal(day.needsUpload, false);
  assert.match(day.words, /The next has room on 2 January at/);
  const room = await refusedWith("storage_quota_exceeded");
  assert.deepEqual([room.needsUpload, room.words], [true, "Words."]);
});
