/** The film that a recording becomes: H.264 and AAC in fragmented MP4, written as it is encoded. */

import {
  AppendOnlyStreamTarget,
  AudioSampleSource,
  canEncodeVideo,
  Mp4OutputFormat,
  Output,
  Quality,
  VideoSample,
  VideoSampleSource,
} from "mediabunny";
import { audioEncoding, prepareSound, soundSample } from "./aac.js";
import { canReadTracks } from "./frames.js";
import { joinChunks } from "./sound.js";

const KEY_FRAME_INTERVAL_S = 2;
/** Bits per pixel. Screens that change little need much less. */
const BITS_PER_PIXEL = 0.08;
/** Bits per pixel of the further frames at more than 30 per second, which differ less. */
const BASE_FRAMES_PER_SECOND = 30;
const FURTHER_SHARE = 0.5;

/**
 * Encoding in Firefox. Constrained Baseline, level 4.2: it makes B-frames in other profiles, in real
 * time too, whose times mediabunny writes in a way that ffmpeg reads as an offset of the picture.
 * Its description of the parameters is invalid, and left out of Annex B, so mediabunny makes one.
 */
const IN_FIREFOX = {
  fullCodecString: "avc1.42e02a",
  onEncoderConfig: (/** @type {VideoEncoderConfig} */ config) => {
    config.avc = { format: "annexb" };
  },
};

/** Number of frames that may wait for the encoder. Further ones are left out. */
const MAX_WAITING_FRAMES = 8;
/** Number of chunks of sound that may wait while storage is slow: about a minute, 25 MB. */
const MAX_WAITING_SOUND = 6000;

/** Length of the last frame: the sound ends before it, though encoders extend it by two frames. */
const LAST_FRAME_S = 0.1;
const SHORTEST_FRAME_S = 0.001;

/**
 * Receives the film in order, append-only; a promise that is pending holds the encoder back.
 * @typedef {(bytes: Uint8Array) => Promise<void>} Sink
 *
 * @typedef {{ width: number, height: number, framesPerSecond: 30 | 60, sampleRate: number | null }} Format
 * without sound if `sampleRate` is null
 */

/** Return the encoding of the picture. @param {Omit<Format, "sampleRate">} format */
function videoEncoding({ width, height, framesPerSecond }) {
  const further = Math.max(0, framesPerSecond - BASE_FRAMES_PER_SECOND);
  const frames = BASE_FRAMES_PER_SECOND + further * FURTHER_SHARE;
  const bitrate = Math.round(width * height * frames * BITS_PER_PIXEL);
  return {
    codec: /** @type {const} */ ("avc"),
    quality: new Quality({ bitrate, bitrateMode: "variable" }),
    keyFrameInterval: KEY_FRAME_INTERVAL_S,
    latencyMode: /** @type {const} */ ("realtime"),
    ...(canReadTracks ? {} : IN_FIREFOX),
  };
}

/** Return whether the browser encodes H.264. */
export function canEncodePicture() {
  const { codec, ...encoding } = videoEncoding({ width: 1920, height: 1080, framesPerSecond: 30 });
  return canEncodeVideo(codec, { width: 1920, height: 1080, ...encoding });
}

/** Film that is being written. All of its times are in seconds from its beginning. */
export class Film {
  /** By how much earlier sound must be added than it is to be heard, in seconds. */
  soundDelay_s = 0;

  #output;
  #video;
  /** @type {AudioSampleSource | null} */
  #audio = null;
  #format;
  #onError;
  #last_s = 0;
  #waitingFrames = 0;
  /** @type {import("./sound.js").PlacedChunk[]} */
  #waitingSound = [];
  #frames = Promise.resolve();
  #sound = Promise.resolve();
  #isClosed = false;
  #hasFailed = false;

  /**
   * @param {Format} format @param {Sink} sink
   * @param {(error: Error) => void} onError called once, when nothing more can be written
   */
  constructor(format, sink, onError) {
    this.#format = format;
    this.#onError = onError;
    this.#output = new Output({
      format: new Mp4OutputFormat({ fastStart: "fragmented" }),
      target: new AppendOnlyStreamTarget(new WritableStream({ write: sink })),
    });
    this.#video = new VideoSampleSource(videoEncoding(format));
    this.#output.addVideoTrack(this.#video);
    if (format.sampleRate) this.#audio = new AudioSampleSource(audioEncoding());
    if (this.#audio) this.#output.addAudioTrack(this.#audio);
  }

  /**
   * Begin with a frame. The encoder takes a while to start, in which a film would stand still: its
   * time begins when this is done.
   * @param {VideoFrame} frame to be closed by the film
   */
  async begin(frame) {
    const { sampleRate } = this.#format;
    const sample = new VideoSample(frame, { timestamp: 0 });
    try {
      if (sampleRate) this.soundDelay_s = await prepareSound(sampleRate);
      await this.#output.start();
      await this.#video.add(sample);
    } finally {
      sample.close();
    }
  }

  /** Time of the last frame. */
  get lastFrame_s() {
    return this.#last_s;
  }

  /**
   * Add a frame, unless it is older than the last one or the encoder is too slow.
   * @param {VideoFrame} frame to be closed by the film @param {number} at_s
   */
  addFrame(frame, at_s) {
    const isLate = at_s <= this.#last_s;
    if (this.#isClosed || isLate || this.#waitingFrames >= MAX_WAITING_FRAMES) {
      frame.close();
      return;
    }
    this.#last_s = at_s;
    this.#waitingFrames += 1;
    const sample = new VideoSample(frame, { timestamp: at_s });
    this.#frames = this.#frames
      .then(() => (this.#hasFailed ? undefined : this.#video.add(sample)))
      .catch((error) => this.#fail(error))
      .finally(() => {
        sample.close();
        this.#waitingFrames -= 1;
      });
  }

  /**
   * Add sound. A gap before it is filled with silence.
   * @param {Float32Array} samples one channel after the other @param {number} at_s
   */
  addSound(samples, at_s) {
    const audio = this.#audio;
    if (!audio || !this.#format.sampleRate || this.#isClosed || !samples.length) return;
    if (this.#waitingSound.length >= MAX_WAITING_SOUND) return;
    this.#waitingSound.push({ samples, at_s });
    this.#sound = this.#sound
      .then(() => this.#encodeSound(audio))
      .catch((error) => this.#fail(error));
  }

  /**
   * Encode sound that waits, as much as possible at once: a busy computer takes long to answer each
   * time, and pictures are written only with their sound.
   * @param {AudioSampleSource} audio
   */
  async #encodeSound(audio) {
    const rate = this.#format.sampleRate;
    if (this.#hasFailed || !rate || !this.#waitingSound.length) return;
    const { samples, at_s, count } = joinChunks(this.#waitingSound, rate);
    this.#waitingSound.splice(0, count);
    const sample = soundSample(samples, at_s, rate);
    try {
      await audio.add(sample);
    } finally {
      sample.close();
    }
  }

  /**
   * Write the rest, unless the film has failed. The last frame also waits for a slow encoder.
   * @param {VideoFrame | null} frame to be closed by the film @param {number} at_s
   */
  async finish(frame, at_s) {
    this.#isClosed = true;
    await Promise.all([this.#frames, this.#sound]);
    const timestamp = Math.max(at_s, this.#last_s + SHORTEST_FRAME_S);
    const sample = frame && new VideoSample(frame, { timestamp, duration: LAST_FRAME_S });
    try {
      if (this.#hasFailed) return;
      if (sample) await this.#video.add(sample);
      await this.#output.finalize();
    } catch (error) {
      await this.#fail(error);
    } finally {
      sample?.close();
    }
  }

  /** @param {unknown} error */
  async #fail(error) {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#isClosed = true;
    // What was written ends with a whole fragment.
    await this.#output.cancel().catch(() => {});
    this.#onError(error instanceof Error ? error : new Error(String(error)));
  }
}
