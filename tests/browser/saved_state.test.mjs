/** Start positions of the player without a browser. Run by `node --test`. */

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { savePositionDuringPlayback, startPosition_s } from "../../static/src/player/saved-state.js";

const FILM_S = 100;
const HOUR_S = 3600;
const ago_ms = (age_s) => Date.now() - age_s * 1000;

/** What the browser has stored, by key. */
let stored;

beforeEach(() => {
  stored = new Map();
  globalThis.localStorage = {
    getItem: (key) => stored.get(key) ?? null,
    setItem: (key, value) => stored.set(key, value),
  };
  globalThis.location = { search: "" };
  globalThis.document = new EventTarget();
  globalThis.window = new EventTarget();
});

/** The start with a position in this browser, and the data that the page has from the portal. */
function startWith(own, dataset = {}, search = "") {
  stored.set("portal.positions", JSON.stringify({ v: own }));
  location.search = search;
  return startPosition_s({ dataset: { video: "v", duration: String(FILM_S), ...dataset } });
}

test("playback starts at the newer position of this browser and the portal", () => {
  const [older, newer] = [
    [7, ago_ms(2 * HOUR_S), FILM_S],
    [7, ago_ms(60), FILM_S],
  ];
  const portal = { position: "12", positionAge: String(HOUR_S) };
  assert.equal(startWith(undefined), null);
  assert.equal(startWith(older), 7);
  assert.equal(startWith(older, portal), 12);
  assert.equal(startWith(newer, portal), 7);
  // A position that was removed, or that of a video that was finished, is 0.
  assert.equal(startWith(older, { ...portal, position: "0" }), null);
});

test("a position in a film of another length doesn't count", () => {
  const starts = [[FILM_S + 1], [FILM_S + 3], []].map((length) => startWith([7, ago_ms(0), ...length]));
  assert.deepEqual(starts, [7, null, 7]);
});

test("the time in the address goes before saved positions, and is in the film", () => {
  const own = [7, ago_ms(0), FILM_S];
  const starts = ["?t=5", "?t=0:12", "?t=900"].map((search) => startWith(own, {}, search));
  assert.deepEqual(starts, [5, 12, FILM_S - 1]);
});

test("positions in the beginning and in the ending are not saved", () => {
  const video = Object.assign(new EventTarget(), { duration: FILM_S, played: [1] });
  video.dataset = { video: "v", duration: String(FILM_S) };
  savePositionDuringPlayback(video, new AbortController().signal);
  const positions = [4, 5.9, 94, 95].map((currentTime) => {
    Object.assign(video, { currentTime }).dispatchEvent(new Event("pause"));
    return JSON.parse(stored.get("portal.positions")).v?.[0];
  });
  assert.deepEqual(positions, [undefined, 5, 94, undefined]);
});
