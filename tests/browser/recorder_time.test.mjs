/** Times of a recording without a browser: the clocks of tracks, and the place of sound. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { bubbleCircle, filmSize } from "../../static/src/recording/composition.js";
import { CaptureClock } from "../../static/src/recording/frames.js";
import { joinChunks, SoundTrack } from "../../static/src/recording/sound.js";

const RATE = 48_000;
const CHUNK = 480;

test("a late arrival does not move the time of a capture", () => {
  const clock = new CaptureClock();
  const late_ms = [0, 30, 0, 200, 5, 0];
  const times = late_ms.map((late, index) => clock.convert(index * 33, 5000 + index * 33 + late));
  assert.deepEqual(times.map(Math.round), [5000, 5033, 5066, 5099, 5132, 5165]);
});

test("a track that begins to count anew keeps its place", () => {
  const clock = new CaptureClock();
  clock.convert(100_000, 5000);
  assert.equal(clock.convert(0, 7000), 7000);
  assert.equal(clock.convert(40, 7045), 7040);
});

test("a track that counts slower than the page follows the page", () => {
  const clock = new CaptureClock();
  for (let now_ms = 0; now_ms < 600_000; now_ms += 33) {
    const late_ms = now_ms - clock.convert(now_ms * 0.999, now_ms);
    assert.ok(late_ms >= 0 && late_ms <= 10.1, String(late_ms));
  }
});

/** Place chunks at these times, and return the track and what was done. */
function place(track, times_s) {
  return times_s.map((at_s) => track.place(at_s, CHUNK));
}

const times = (from_s, count, length_s = 0.01) =>
  Array.from({ length: count }, (_, index) => from_s + index * length_s);

test("chunks follow each other though their times differ a little", () => {
  const track = new SoundTrack(RATE);
  const noisy = times(0, 1000).map((at_s, index) => at_s + (index % 7 ? 0.012 : 0));
  const placed = place(track, noisy);
  assert.ok(placed.every(({ skipped }) => skipped === 0));
  assert.equal(track.end_s, 10);
});

test("sound before the film is left out", () => {
  const track = new SoundTrack(RATE);
  const placed = place(track, [-0.015, -0.005, 0.005]);
  assert.deepEqual(placed.map(({ skipped }) => skipped), [480, 240, 0]);
  assert.deepEqual(placed.map(({ start_s }) => start_s), [0, 0, 0.005]);
});

test("lost sound is replaced by silence", () => {
  const track = new SoundTrack(RATE);
  place(track, times(0, 50));
  assert.deepEqual(track.place(0.9, CHUNK), { start_s: 0.9, skipped: 0, isMoved: true });
});

for (const speed of [0.9999, 1.0001]) {
  test(`sound of a device that counts ${speed} times as fast stays in step for an hour`, () => {
    const track = new SoundTrack(RATE);
    let most = 0;
    for (let index = 0; index < 360_000; index += 1) {
      const at_s = index * 0.01 * speed;
      track.place(at_s, CHUNK);
      most = Math.max(most, Math.abs(track.end_s - at_s - 0.01));
    }
    assert.ok(most < 0.03, String(most));
  });
}

test("silence takes the place of sound that does not come", () => {
  const track = new SoundTrack(RATE);
  place(track, times(0, 10));
  assert.equal(track.extend(2), 1.9 * RATE);
  assert.equal(track.extend(1), 0);
  // It was only late.
  assert.deepEqual(track.place(0.1, CHUNK), { start_s: 2, skipped: CHUNK, isMoved: true });
  assert.deepEqual(track.place(1.995, CHUNK), { start_s: 2, skipped: 240, isMoved: true });
  assert.deepEqual(track.place(2.005, CHUNK), { start_s: 2.005, skipped: 0, isMoved: false });
});

test("sound that waits is joined up to a gap, and to a second", () => {
  const chunk = (at_s, left, right) => ({ at_s, samples: Float32Array.of(left, left, right, right) });
  const queue = [chunk(3, 0.1, 0.5), chunk(3 + 2 / RATE, 0.2, 0.6), chunk(4, 0.3, 0.7)];
  const joined = joinChunks(queue, RATE);
  assert.deepEqual(joined, {
    samples: Float32Array.of(0.1, 0.1, 0.2, 0.2, 0.5, 0.5, 0.6, 0.6),
    at_s: 3,
    count: 2,
  });
  const minute = times(0, 6000).map((at_s) => ({ at_s, samples: new Float32Array(2 * CHUNK) }));
  assert.equal(joinChunks(minute, RATE).count, 100);
});

test("a film has at most 1080p and even numbers", () => {
  assert.deepEqual(filmSize({ width: 1283, height: 777 }), { width: 1284, height: 778 });
  assert.deepEqual(filmSize({ width: 3840, height: 2160 }), { width: 1920, height: 1080 });
  assert.deepEqual(filmSize({ width: 1000, height: 2000 }), { width: 540, height: 1080 });
});

test("a bubble lies wholly inside the picture", () => {
  const size = { width: 1920, height: 1080 };
  const bubble = { x: 1, y: 0, size: 0.2, isHidden: false };
  assert.deepEqual(bubbleCircle(bubble, size), { x: 1812, y: 108, radius: 108 });
});
