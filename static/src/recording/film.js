/** The film that a recording becomes: H.264 and AAC in fragmented MP4, written as it is encoded. */

import {
  AppendOnlyStreamTarget,
  AudioSample,
  AudioSampleSource,
  canEncodeAudio,
  canEncodeVideo,
  Mp4OutputFormat,
  NullTarget,
  Output,
  Quality,
  VideoSample,
  VideoSampleSource,
} from "mediabunny";
import { canReadTracks } from "./frames.js";

const KEY_FRAME_INTERVAL_S = 2;
const AUDIO_BITRATE = 160_000;
/** Bits per pixel. Screens that change little need much less. */
const BITS_PER_PIXEL = 0.08;
/** Bits per pixel of the further frames at more than 30 per second, which differ less. */
const BASE_FRAMES_PER_SECOND = 30;
const FURTHER_SHARE = 0.5;

/**
 * Constrained Baseline, level 4.2: Firefox makes B-frames in other profiles, in real time too, whose
 * times mediabunny writes in a way that ffmpeg reads as an offset of the picture.
 */
const PROFILE = canReadTracks ? {} : { fullCodecString: "avc1.42e02a" };

/** Number of frames that may wait for the encoder. Further ones are left out. */
const MAX_WAITING_FRAMES = 8;
/** Number of chunks of sound that may wait while storage is slow: about a minute, 25 MB. */
const MAX_WAITING_SOUND = 6000;

/** Length of the last frame: the sound ends before it, though encoders extend it by two frames. */
const LAST_FRAME_S = 0.1;
const SHORTEST_FRAME_S = 0.001;

/** Samples of a frame of AAC, which is also the delay of most encoders. */
const AAC_FRAME = 1024;
/** Sound that an encoder's delay is measured with: a click in silence. */
const PROBE_FRAMES = 8;
const CLICK_AT = 3.5 * AAC_FRAME;
const MAX_DELAY = 4 * AAC_FRAME;

/**
 * Receives the film in order, append-only; a promise that is pending holds the encoder back.
 * @typedef {(bytes: Uint8Array) => Promise<void>} Sink
 *
 * @typedef {{ width: number, height: number, framesPerSecond: 30 | 60, sampleRate: number | null }} Format
 * without sound if `sampleRate` is null
 */

/** @param {number} bitrate @param {"variable" | "constant"} bitrateMode */
const rateOf = (bitrate, bitrateMode) => new Quality({ bitrate: Math.round(bitrate), bitrateMode });

/** Return the encoding of the picture. @param {Omit<Format, "sampleRate">} format */
function videoEncoding({ width, height, framesPerSecond }) {
  const further = Math.max(0, framesPerSecond - BASE_FRAMES_PER_SECOND);
  const frames = BASE_FRAMES_PER_SECOND + further * FURTHER_SHARE;
  return {
    codec: /** @type {const} */ ("avc"),
    quality: rateOf(width * height * frames * BITS_PER_PIXEL, "variable"),
    keyFrameInterval: KEY_FRAME_INTERVAL_S,
    latencyMode: /** @type {const} */ ("realtime"),
    ...PROFILE,
  };
}

/** @returns {import("mediabunny").AudioEncodingConfig} */
const audioEncoding = () => ({ codec: "aac", quality: rateOf(AUDIO_BITRATE, "variable") });

/** Return whether the browser encodes H.264. */
export function canEncodePicture() {
  const { codec, ...encoding } = videoEncoding({ width: 1920, height: 1080, framesPerSecond: 30 });
  return canEncodeVideo(codec, { width: 1920, height: 1080, ...encoding });
}

/** Return whether the browser itself encodes AAC. */
export const canEncodeSound = () =>
  canEncodeAudio("aac", { numberOfChannels: 2, sampleRate: 48_000, ...audioEncoding() });

/** Load an encoder of AAC if the browser has none. */
async function provideAac() {
  if (await canEncodeSound()) return;
  const { registerAacEncoder } = await import("@mediabunny/aac-encoder");
  registerAacEncoder();
}

/**
 * Return by how much encoded sound is late. Encoders put silence before the first sample, of a length
 * that browsers don't tell, and mediabunny writes no edit list for it. Encodes a click and looks for
 * it.
 * @param {number} sampleRate @returns {Promise<number>} in seconds
 */
async function measureDelay(sampleRate) {
  try {
    const { chunks, config } = await encodeClick(sampleRate);
    const delay = (await findPeak(chunks, config)) - CLICK_AT;
    if (delay >= 0 && delay <= MAX_DELAY) return delay / sampleRate;
  } catch (error) {
    console.info("The delay of the encoder of sound couldn’t be measured.", error);
  }
  return AAC_FRAME / sampleRate;
}

/** Return a click as AAC. @param {number} sampleRate */
async function encodeClick(sampleRate) {
  /** @type {EncodedAudioChunk[]} */
  const chunks = [];
  /** @type {AudioDecoderConfig[]} */
  const configs = [];
  const source = new AudioSampleSource({
    ...audioEncoding(),
    onEncodedPacket: (packet, meta) => {
      chunks.push(packet.toEncodedAudioChunk());
      if (meta?.decoderConfig) configs.push(meta.decoderConfig);
    },
  });
  const format = new Mp4OutputFormat({ fastStart: false });
  const output = new Output({ format, target: new NullTarget() });
  output.addAudioTrack(source);
  await output.start();
  const length = PROBE_FRAMES * AAC_FRAME;
  const click = Float32Array.from({ length: 2 * length }, (_, index) =>
    index % length === CLICK_AT ? 1 : 0,
  );
  const sample = soundSample(click, 0, sampleRate);
  await source.add(sample);
  sample.close();
  await output.finalize();
  const [config] = configs;
  if (!config) throw new Error("The encoder of sound doesn’t describe its output.");
  return { chunks, config };
}

/**
 * Return the offset of the loudest sample of encoded sound.
 * @param {EncodedAudioChunk[]} chunks @param {AudioDecoderConfig} config
 */
async function findPeak(chunks, config) {
  const peak = { at: 0, level: 0 };
  let decoded = 0;
  const decoder = new AudioDecoder({
    output: (data) => {
      const samples = new Float32Array(data.numberOfFrames);
      data.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
      data.close();
      for (const [index, sample] of samples.entries()) {
        if (Math.abs(sample) <= peak.level) continue;
        Object.assign(peak, { at: decoded + index, level: Math.abs(sample) });
      }
      decoded += samples.length;
    },
    // `flush` rejects.
    error: () => {},
  });
  decoder.configure(config);
  for (const chunk of chunks) decoder.decode(chunk);
  await decoder.flush();
  decoder.close();
  return peak.at;
}

/**
 * Return stereo sound for the encoder.
 * @param {Float32Array} data one channel after the other @param {number} timestamp in seconds
 * @param {number} sampleRate
 */
const soundSample = (data, timestamp, sampleRate) =>
  new AudioSample({ data, format: "f32-planar", numberOfChannels: 2, sampleRate, timestamp });

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
  #waiting = { frames: 0, sound: 0 };
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
    if (this.#format.sampleRate) {
      await provideAac();
      this.soundDelay_s = await measureDelay(this.#format.sampleRate);
    }
    const sample = new VideoSample(frame, { timestamp: 0 });
    await this.#output.start();
    await this.#video.add(sample).finally(() => sample.close());
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
    if (this.#isClosed || isLate || this.#waiting.frames >= MAX_WAITING_FRAMES) {
      frame.close();
      return;
    }
    this.#last_s = at_s;
    this.#waiting.frames += 1;
    const sample = new VideoSample(frame, { timestamp: at_s });
    this.#frames = this.#frames
      .then(() => (this.#hasFailed ? undefined : this.#video.add(sample)))
      .catch((error) => this.#fail(error))
      .finally(() => {
        sample.close();
        this.#waiting.frames -= 1;
      });
  }

  /**
   * Add sound. A gap before it is filled with silence.
   * @param {Float32Array} samples one channel after the other @param {number} at_s
   */
  addSound(samples, at_s) {
    const audio = this.#audio;
    if (!audio || !this.#format.sampleRate || this.#isClosed || !samples.length) return;
    if (this.#waiting.sound >= MAX_WAITING_SOUND) return;
    this.#waiting.sound += 1;
    const sample = soundSample(samples, at_s, this.#format.sampleRate);
    this.#sound = this.#sound
      .then(() => (this.#hasFailed ? undefined : audio.add(sample)))
      .catch((error) => this.#fail(error))
      .finally(() => {
        sample.close();
        this.#waiting.sound -= 1;
      });
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
