/**
 * What a track delivers, as it is captured, with the time of its capture. A hidden page's timers are
 * slowed down, but not what its tracks deliver.
 */

/** Span in which the fastest delivery is looked for. */
const WINDOW_MS = 5000;
/** Delay after which a track is taken to have begun to count anew. */
const RESTART_MS = 1000;
/** Number of chunks of sound that wait for a busy page: 5 s. */
const WAITING_CHUNKS = 500;
/** Where tracks can't be read, how often a frame is looked for, and how early in its own time. */
const POLL_MS = 8;
const EARLIEST_POLL = 0.85;
const DEFAULT_FRAME_RATE = 30;
/** Time after its capture at which a frame is found, as measured in Firefox. */
const SHOWN_AFTER_MS = 40;

/**
 * Reader of a track, which only Chromium has outside of workers. Not yet in TypeScript's library.
 * @type {(new (init: { track: MediaStreamTrack, maxBufferSize?: number }) => { readable: ReadableStream }) | undefined}
 */
const Processor = /** @type {any} */ (globalThis).MediaStreamTrackProcessor;

/** Whether the frames and samples of tracks can be read as they are captured. */
export const canReadTracks = Boolean(Processor);

/**
 * Conversion of a track's clock to the page's. Each track counts from an origin of its own. A busy
 * page gets captured data late, never early, so the least delay is the clocks' difference.
 */
export class CaptureClock {
  #least_ms = Number.POSITIVE_INFINITY;
  #leastBefore_ms = Number.POSITIVE_INFINITY;
  #windowFrom_ms = 0;

  /**
   * Return the time of a capture by the page's clock.
   * @param {number} timestamp_ms @param {number} now_ms time of its arrival
   */
  convert(timestamp_ms, now_ms = performance.now()) {
    if (now_ms - this.#windowFrom_ms > WINDOW_MS) {
      this.#leastBefore_ms = this.#least_ms;
      this.#least_ms = Number.POSITIVE_INFINITY;
      this.#windowFrom_ms = now_ms;
    }
    const delay_ms = now_ms - timestamp_ms;
    this.#least_ms = Math.min(this.#least_ms, delay_ms);
    const least_ms = Math.min(this.#least_ms, this.#leastBefore_ms);
    if (delay_ms - least_ms < RESTART_MS) return timestamp_ms + least_ms;
    this.#least_ms = delay_ms;
    this.#leastBefore_ms = Number.POSITIVE_INFINITY;
    return now_ms;
  }
}

/**
 * Read a track until it ends or the signal is aborted.
 * @template {VideoFrame | AudioData} Data
 * @param {MediaStreamTrack} track
 * @param {(data: Data, captured_ms: number) => void} onData takes over the data, to be closed
 * @param {AbortSignal} signal
 */
async function readTrack(track, onData, signal) {
  if (!Processor) return;
  // Of pictures, a busy page gets the last one.
  const options = track.kind === "audio" ? { maxBufferSize: WAITING_CHUNKS } : {};
  const reader = new Processor({ track, ...options }).readable.getReader();
  const clock = new CaptureClock();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    if (signal.aborted) {
      // To cancel without reading on would leave data open that waits in the stream.
      value.close();
      return reader.cancel();
    }
    onData(value, clock.convert(value.timestamp / 1000));
  }
}

/**
 * Read the frames of a video track.
 * @param {MediaStreamTrack} track
 * @param {(frame: VideoFrame, captured_ms: number) => void} onFrame takes over the frame
 * @param {AbortSignal} signal
 * @returns {() => void} to be called often: takes a frame where tracks can't be read
 */
export function readFrames(track, onFrame, signal) {
  if (canReadTracks) {
    readTrack(track, onFrame, signal);
    return () => {};
  }
  const video = document.createElement("video");
  video.muted = true;
  video.srcObject = new MediaStream([track]);
  video.play().catch((error) => console.info("The picture doesn’t play.", error));
  signal.addEventListener("abort", () => {
    video.srcObject = null;
  });
  const frameRate = track.getSettings().frameRate || DEFAULT_FRAME_RATE;
  let last_ms = 0;
  const take = () => {
    const now_ms = performance.now();
    const isReady = video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA;
    if (signal.aborted || !isReady || track.readyState === "ended") return;
    if (now_ms - last_ms < EARLIEST_POLL * (1000 / frameRate)) return;
    last_ms = now_ms;
    onFrame(new VideoFrame(video, { timestamp: now_ms * 1000 }), now_ms - SHOWN_AFTER_MS);
  };
  const timer = setInterval(take, POLL_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  return take;
}

/**
 * Sound as it is captured: the samples of one channel after those of the other.
 * @typedef {{ samples: Float32Array, captured_ms: number }} Chunk
 */

/**
 * Read the sound of a node in chunks of about 10 ms, silence too.
 * @param {AudioNode} node with two channels
 * @param {(chunk: Chunk) => void} onChunk @param {AbortSignal} signal
 */
export function readSound(node, onChunk, signal) {
  const context = /** @type {AudioContext} */ (node.context);
  if (canReadTracks) {
    const destination = new MediaStreamAudioDestinationNode(context, { channelCount: 2 });
    node.connect(destination);
    for (const track of destination.stream.getAudioTracks()) {
      readTrack(
        track,
        (/** @type {AudioData} */ data, captured_ms) => {
          onChunk({ samples: stereoOf(data), captured_ms });
          data.close();
        },
        signal,
      );
    }
    return;
  }
  // Deprecated, but an AudioWorklet can't tell when its samples were captured either.
  const processor = context.createScriptProcessor(512, 2, 2);
  const clock = new CaptureClock();
  processor.onaudioprocess = ({ inputBuffer, playbackTime }) => {
    const samples = new Float32Array(2 * inputBuffer.length);
    inputBuffer.copyFromChannel(samples.subarray(0, inputBuffer.length), 0);
    inputBuffer.copyFromChannel(samples.subarray(inputBuffer.length), 1);
    onChunk({
      samples,
      captured_ms: clock.convert(playbackTime * 1000) - inputBuffer.duration * 1000,
    });
  };
  node.connect(processor);
  // It runs only when connected, and stays silent.
  processor.connect(context.destination);
  signal.addEventListener("abort", () => processor.disconnect());
}

/** Return both channels of captured sound. @param {AudioData} data @returns {Float32Array} */
function stereoOf(data) {
  const frames = data.numberOfFrames;
  const samples = new Float32Array(2 * frames);
  for (const channel of [0, 1]) {
    data.copyTo(samples.subarray(channel * frames, (channel + 1) * frames), {
      planeIndex: Math.min(channel, data.numberOfChannels - 1),
      format: "f32-planar",
    });
  }
  return samples;
}
