/** Encoding of sound: AAC by the browser or by WASM, and the delay of the encoder. */

import {
  AudioSample,
  AudioSampleSource,
  canEncodeAudio,
  Mp4OutputFormat,
  NullTarget,
  Output,
  Quality,
} from "mediabunny";

const BITRATE = 160_000;

/** Samples of a frame of AAC, which is also the delay of most encoders. */
const AAC_FRAME = 1024;
/** Sound that an encoder's delay is measured with: a click in silence. */
const PROBE_FRAMES = 8;
const CLICK_AT = 3.5 * AAC_FRAME;
const MAX_DELAY = 4 * AAC_FRAME;

/** @returns {import("mediabunny").AudioEncodingConfig} */
export const audioEncoding = () => ({
  codec: "aac",
  quality: new Quality({ bitrate: BITRATE, bitrateMode: "variable" }),
});

/** Return whether the browser itself encodes AAC. */
export const canEncodeSound = () =>
  canEncodeAudio("aac", { numberOfChannels: 2, sampleRate: 48_000, ...audioEncoding() });

/** Delay of encoded sound in seconds, by samples per second. @type {Map<number, Promise<number>>} */
const delays = new Map();

/**
 * Load an encoder of AAC if the browser has none, and measure its delay, once.
 * @param {number} sampleRate @returns {Promise<number>} in seconds
 */
export function prepareSound(sampleRate) {
  const delay = delays.get(sampleRate) ?? provideAac().then(() => measureDelay(sampleRate));
  delays.set(sampleRate, delay);
  // A download that failed is tried again.
  delay.catch(() => delays.delete(sampleRate));
  return delay;
}

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
export const soundSample = (data, timestamp, sampleRate) =>
  new AudioSample({ data, format: "f32-planar", numberOfChannels: 2, sampleRate, timestamp });
