/** Removed parts in the editor of cuts, without a browser. Run by `node --test`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { moveBound } from "../../static/src/bounds.js";
import * as parts from "../../static/src/cuts/parts.js";

const part = (startSeconds, endSeconds) => ({ startSeconds, endSeconds });
const FILM_S = 60;

test("parts that touch or overlap are joined, in order", () => {
  const removed = [part(10, 20), part(30, 40)];
  assert.deepEqual(parts.withPart(removed, part(50, 51)), [...removed, part(50, 51)]);
  assert.deepEqual(parts.withPart(removed, part(20, 30)), [part(10, 40)]);
  assert.deepEqual(parts.withPart(removed, part(0, 60)), [part(0, 60)]);
  assert.deepEqual(parts.withPart(removed, part(12, 13)), removed);
});

test("kept and removed parts are each other's rest", () => {
  const removed = [part(0, 1.5), part(10, 20.25)];
  const keep = [part(1.5, 10), part(20.25, 60)];
  assert.deepEqual(parts.restOf(removed, FILM_S), keep);
  assert.deepEqual(parts.removedBy(keep, FILM_S, FILM_S), removed);
  // A made cut ends with its last frame, and the sound may be longer.
  assert.deepEqual(parts.removedBy(keep, FILM_S + 0.03, FILM_S + 0.03), removed);
  assert.deepEqual(parts.removedBy(keep, FILM_S + 0.1, FILM_S), removed);
  const end = part(FILM_S - 0.2, FILM_S + 0.1);
  assert.deepEqual(parts.removedBy(parts.restOf([end], FILM_S + 0.1), FILM_S + 0.1, FILM_S), [end]);
});

test("a removed part begins at its start and ends before its end", () => {
  const removed = [part(10, 20)];
  assert.equal(parts.partAt(removed, 9.999), undefined);
  assert.equal(parts.partAt(removed, 10), removed[0]);
  assert.equal(parts.partAt(removed, 20), undefined);
  assert.equal(parts.lengthOf_s(removed), 10);
  assert.equal(parts.lengthOf_s(removed, 14), 4);
});

test("bounds stay inside the film and a frame apart", () => {
  const move = (bound, to_s) => moveBound(part(10, 20), bound, to_s, 0.25, FILM_S);
  assert.deepEqual(move("startSeconds", 25), part(19.75, 20));
  assert.deepEqual(move("startSeconds", -5), part(0, 20));
  assert.deepEqual(move("endSeconds", 5), part(10, 10.25));
  assert.deepEqual(move("endSeconds", 99), part(10, FILM_S));
});

test("every frame is found by its start, rounded to a millisecond", () => {
  for (const rate of [10, 24, 25, 30_000 / 1001, 30, 50, 60_000 / 1001, 60, 120]) {
    for (let frame = 0; frame < 5000; frame += 1) {
      const at_s = parts.frameStart_s((frame + 0.5) / rate, 1 / rate, 1000);
      assert.equal(parts.frameAt(at_s, 1 / rate), frame, `frame ${frame} at ${rate}`);
      assert.equal(parts.frameStart_s(at_s, 1 / rate, 1000), at_s);
    }
  }
  assert.equal(parts.frameStart_s(59.9, 0.1, FILM_S), 59.9);
  assert.equal(parts.frameStart_s(59.95, 0.1, FILM_S), FILM_S);
  // A part that ends with the picture ends with the film.
  assert.equal(parts.frameStart_s(FILM_S, 0.1, FILM_S + 0.1, FILM_S), FILM_S + 0.1);
});

test("marked sentences that follow each other are one part, with their pauses", () => {
  const sentences = [part(0, 0.9), part(1, 1.9), part(2, 2.9), part(4, 4.9)];
  const joined = (...marked) =>
    parts
      .markedParts(sentences, (sentence) => marked.includes(sentences.indexOf(sentence)))
      .reduce(parts.withPart, []);
  assert.deepEqual(joined(1, 2), [part(1, 2.9)]);
  assert.deepEqual(joined(0, 2), [part(0, 0.9), part(2, 2.9)]);
});

test("a sentence is cut with all frames in which it is spoken, up to the end of the film", () => {
  const whole = (start_s, end_s) => parts.toWholeFrames(part(start_s, end_s), 0.04, FILM_S);
  assert.deepEqual(whole(29.99, 33.143), part(29.96, 33.16));
  assert.deepEqual(whole(30, 33.16), part(30, 33.16));
  assert.deepEqual(whole(59, 63), part(59, FILM_S));
  assert.deepEqual(whole(59.99, 63), part(59.96, FILM_S));
  for (const rate of [24, 30_000 / 1001, 60]) {
    for (let at_s = 1.003; at_s < 50; at_s += 0.777) {
      const cut = parts.toWholeFrames(part(at_s, at_s + 2.345), 1 / rate, FILM_S);
      assert.ok(cut.startSeconds <= at_s + 0.001 && cut.startSeconds > at_s - 1 / rate - 0.002);
      assert.ok(cut.endSeconds >= at_s + 2.343 && cut.endSeconds < at_s + 2.345 + 1 / rate);
    }
  }
});

test("what the portal refuses is told before", () => {
  const fault = (...removed) => parts.removalFault(removed, FILM_S);
  assert.equal(fault(part(10, 20)), "");
  assert.match(fault(part(0, FILM_S)), /^Nothing of the video is left/);
  assert.match(fault(part(0, 1), part(1.2, 5)), /left at 0:01\.000/);
  const many = Array.from({ length: 100 }, (_, index) => part(index + 0.6, index + 0.7));
  assert.match(parts.removalFault(many, 120), /at most 99/);
});
