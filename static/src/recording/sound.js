/** The sound of a recording: microphone and shared sound, mixed, and its place in the film's time. */

import { readSound } from "./frames.js";

const SAMPLE_RATE = 48_000;
/** Number of samples that the level is measured over: at least those between two measurements. */
const METER_SAMPLES = 8192;
const RESUME_TIMEOUT_MS = 1000;

/** Sound further than this from its place is moved there at once. */
const JUMP_S = 0.2;
/** Sound that stays further than this from its place is moved there. */
const TOLERANCE_S = 0.015;
/** Number of chunks in which the least distance is looked for, about 2 s. */
const WINDOW_CHUNKS = 200;

/** Longest sound that chunks are joined to. */
const JOINED_S = 1;

/** Mixer of microphone and shared sound. */
export class Mixer {
  #context = new AudioContext(
    // Firefox takes microphones only at their own rate.
    "MediaStreamTrackProcessor" in globalThis ? { sampleRate: SAMPLE_RATE } : {},
  );
  #mix = new GainNode(this.#context, { channelCount: 2, channelCountMode: "explicit" });
  #meter = new AnalyserNode(this.#context, { fftSize: METER_SAMPLES });
  #levels = new Float32Array(METER_SAMPLES);
  /** @type {{ screen: MediaStream | null, microphone: MediaStream | null }} */
  #streams = { screen: null, microphone: null };
  /** @type {AudioNode[]} */
  #inputs = [];
  /** Microphone, or the mix: shared sound would hide that a microphone is silent. */
  #measured = /** @type {AudioNode} */ (this.#mix);

  /**
   * @param {{ screen: MediaStream | null, microphone: MediaStream | null }} sources
   * @param {(chunk: import("./frames.js").Chunk) => void} onChunk called about every 10 ms, also
   *   while nothing is heard
   * @param {AbortSignal} signal
   */
  constructor({ screen, microphone }, onChunk, signal) {
    this.#streams = { screen, microphone };
    this.#mix.connect(this.#meter);
    this.reconnect();
    readSound(this.#mix, onChunk, signal);
    signal.addEventListener("abort", () => this.#context.close());
  }

  /** Samples per second. */
  get sampleRate() {
    return this.#context.sampleRate;
  }

  /**
   * Run the mixer. Browsers refuse to before the page was clicked, and Firefox without a device that
   * plays sound: then there is silence.
   */
  async resume() {
    const timeout = new Promise((resolve) => setTimeout(resolve, RESUME_TIMEOUT_MS));
    await Promise.race([this.#context.resume(), timeout]);
  }

  /** Take another microphone. @param {MediaStream | null} stream */
  setMicrophone(stream) {
    this.#streams.microphone = stream;
    this.reconnect();
  }

  /**
   * Connect the sources anew. What came in while the mixer stood still waits in their buffers, and
   * would be late from then on.
   */
  reconnect() {
    this.#measured.disconnect(this.#meter);
    for (const input of this.#inputs) input.disconnect();
    const screen = this.#inputOf(this.#streams.screen);
    const microphone = this.#inputOf(this.#streams.microphone);
    this.#inputs = [screen, microphone].flatMap((input) => input ?? []);
    for (const input of this.#inputs) input.connect(this.#mix);
    this.#measured = microphone ?? this.#mix;
    this.#measured.connect(this.#meter);
  }

  /** Return the peak of the microphone, or of the shared sound if it is alone, from 0 to 1. */
  measurePeak() {
    this.#meter.getFloatTimeDomainData(this.#levels);
    const peak = this.#levels.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    return Math.min(1, peak);
  }

  /** @param {MediaStream | null} stream */
  #inputOf(stream) {
    if (!stream?.getAudioTracks().length) return null;
    return new MediaStreamAudioSourceNode(this.#context, { mediaStream: stream });
  }
}

/**
 * Place of sound in the film. Samples are counted, so that they follow each other without gaps. The
 * count is compared with the clock that pictures are placed by: devices count faster or slower, and
 * lose samples. A busy computer delivers sound late, never early, so that the least distance counts.
 */
export class SoundTrack {
  #rate;
  #position = 0;
  #mustAlign = true;
  #least = Number.POSITIVE_INFINITY;
  #chunks = 0;

  /** @param {number} rate samples per second */
  constructor(rate) {
    this.#rate = rate;
  }

  /** End of the sound in the film's time. */
  get end_s() {
    return this.#position / this.#rate;
  }

  /** Move the next chunk to its exact place. */
  align() {
    this.#mustAlign = true;
  }

  /**
   * Place a chunk. @param {number} at_s where its first sample belongs @param {number} length in samples
   * @returns {{ start_s: number, skipped: number, isMoved: boolean }} where it begins, after silence if
   *   there is a gap, the number of its first samples that are left out, and whether it was out of step
   */
  place(at_s, length) {
    const shift = this.#shift(Math.round(at_s * this.#rate) - this.#position);
    const skipped = Math.min(length, Math.max(0, -shift));
    this.#mustAlign = skipped < -shift;
    this.#position += Math.max(0, shift);
    const start_s = this.end_s;
    this.#position += length - skipped;
    return { start_s, skipped, isMoved: shift !== 0 };
  }

  /** Return the number of samples of silence that extend the sound. @param {number} until_s */
  extend(until_s) {
    const samples = Math.max(0, Math.round(until_s * this.#rate) - this.#position);
    this.#position += samples;
    this.align();
    return samples;
  }

  /** Return by how much a chunk at this distance is to be moved. @param {number} distance */
  #shift(distance) {
    const least = Math.min(this.#least, distance);
    this.#chunks += 1;
    const isLast = this.#chunks === WINDOW_CHUNKS;
    const isFar = Math.abs(distance) > JUMP_S * this.#rate;
    const isDrifting = isLast && Math.abs(least) > TOLERANCE_S * this.#rate;
    const isMoved = this.#mustAlign || isFar || isDrifting;
    this.#least = isMoved || isLast ? Number.POSITIVE_INFINITY : least;
    if (isMoved || isLast) this.#chunks = 0;
    if (this.#mustAlign || isFar) return distance;
    return isDrifting ? least : 0;
  }
}

/**
 * Stereo sound with its place in the film; the samples of one channel after those of the other.
 * @typedef {{ samples: Float32Array, at_s: number }} PlacedChunk
 */

/**
 * Return the first chunks of a queue as one, as far as each begins where the one before it ends.
 * @param {PlacedChunk[]} queue not empty, and not changed @param {number} rate samples per second
 * @returns {PlacedChunk & { count: number }} `count` is how many chunks were joined
 */
export function joinChunks(queue, rate) {
  const { at_s } = /** @type {PlacedChunk} */ (queue[0]);
  let length = 0;
  let count = 0;
  for (const chunk of queue) {
    const isNext = Math.abs((chunk.at_s - at_s) * rate - length) < 0.5;
    if (!isNext || length >= JOINED_S * rate) break;
    length += chunk.samples.length / 2;
    count += 1;
  }
  const samples = new Float32Array(2 * length);
  let start = 0;
  for (const chunk of queue.slice(0, count)) {
    const half = chunk.samples.length / 2;
    samples.set(chunk.samples.subarray(0, half), start);
    samples.set(chunk.samples.subarray(half), length + start);
    start += half;
  }
  return { samples, at_s, count };
}
