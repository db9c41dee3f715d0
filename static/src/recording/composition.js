/** The picture of a recording: screen or camera alone, or the screen with the camera as a bubble. */

import { readFrames } from "./frames.js";

/**
 * Bubble of the camera: the centre as a share of the film's width and height, the diameter as a share
 * of its height.
 * @typedef {{ x: number, y: number, size: number, isHidden: boolean }} Bubble
 *
 * @typedef {{ width: number, height: number }} Size
 */

/** Largest picture of a film. */
const MAX_WIDTH = 1920;
const MAX_HEIGHT = 1080;
/** Largest width of the preview of a composed picture, and the time that each of its frames stays. */
const PREVIEW_WIDTH = 960;
const PREVIEW_MS = 60;
const RING = "rgb(255 255 255 / 0.9)";
/** Share of the diameter. */
const RING_WIDTH = 0.015;
/** Picture that is looked at, and the brightness up to which it is black. */
const SAMPLE = { width: 64, height: 36 };
const BLACK = 12;

/** Return the size of a film, of even numbers, as H.264 needs. @param {Size} size @returns {Size} */
export function filmSize({ width, height }) {
  const scale = Math.min(1, MAX_WIDTH / width, MAX_HEIGHT / height);
  const even = (/** @type {number} */ length) => Math.max(2, 2 * Math.round((length * scale) / 2));
  return { width: even(width), height: even(height) };
}

/**
 * Return where a bubble is in a picture, in pixels: a circle that lies wholly inside.
 * @param {Bubble} bubble @param {Size} size
 */
export function bubbleCircle({ x, y, size }, { width, height }) {
  const radius = Math.min((size * height) / 2, width / 2, height / 2);
  const within = (/** @type {number} */ centre, /** @type {number} */ length) =>
    Math.min(Math.max(centre * length, radius), length - radius);
  return { x: within(x, width), y: within(y, height), radius };
}

/** Return the rectangle with this aspect ratio in the middle. @param {Size} outer @param {Size} ratio */
function centredIn(outer, ratio) {
  const scale = Math.min(outer.width / ratio.width, outer.height / ratio.height);
  const width = ratio.width * scale;
  const height = ratio.height * scale;
  return { x: (outer.width - width) / 2, y: (outer.height - height) / 2, width, height };
}

/** Return the size in which a frame is shown. @param {VideoFrame} frame @returns {Size} */
const shownSize = (frame) => ({ width: frame.displayWidth, height: frame.displayHeight });

/** Return the first video track. @param {MediaStream | null} stream */
const videoTrack = (stream) => stream?.getVideoTracks()[0] ?? null;

/** Return a context of a canvas. @param {OffscreenCanvas | HTMLCanvasElement} canvas */
function contextOf(canvas) {
  const options = { alpha: false };
  return /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d", options));
}

/** Picture of a recording. Keeps the last frame of each track, because a still screen has no new ones. */
export class Composition {
  /** @type {Bubble} */
  bubble = { x: 0.88, y: 0.82, size: 0.28, isHidden: false };
  /** Size of the film, once the first frame is there. @type {Size | null} */
  size = null;
  /** What is recorded. @type {MediaStream} */
  preview;
  /** Takes frames where tracks can't be read; to be called often. @type {() => void} */
  poll;

  /** @type {VideoFrame | null} */
  #picture = null;
  /** @type {VideoFrame | null} */
  #face = null;
  /** Screen that has a camera beside it. @type {MediaStreamTrack | null} */
  #screen = null;
  #canvas = new OffscreenCanvas(2, 2);
  #context = contextOf(this.#canvas);
  /** @type {OffscreenCanvasRenderingContext2D | null} */
  #previewContext = null;
  #preview_ms = 0;
  #sample = new OffscreenCanvas(SAMPLE.width, SAMPLE.height);
  #sampleContext = /** @type {OffscreenCanvasRenderingContext2D} */ (
    this.#sample.getContext("2d", { alpha: false, willReadFrequently: true })
  );

  /**
   * @param {{ screen: MediaStream | null, camera: MediaStream | null }} sources
   * @param {(captured_ms: number) => void} onFrame called when there is a new picture
   * @param {AbortSignal} signal
   */
  constructor({ screen, camera }, onFrame, signal) {
    const main = videoTrack(screen) ?? videoTrack(camera);
    if (!main) throw new TypeError("A recording needs a screen or a camera.");
    const face = videoTrack(screen) && videoTrack(camera);
    this.preview = new MediaStream([main]);
    if (face) {
      this.#screen = main;
      this.#makePreview();
    }
    const pollMain = readFrames(
      main,
      (frame, captured_ms) => {
        this.#picture?.close();
        this.#picture = frame;
        this.#setSize(frame);
        onFrame(captured_ms);
      },
      signal,
    );
    const pollFace = face && this.#readFace(face, onFrame, signal);
    this.poll = () => {
      pollMain();
      pollFace?.();
    };
    signal.addEventListener("abort", () => {
      this.#picture?.close();
      this.#picture = null;
      this.#face?.close();
      this.#face = null;
    });
  }

  /** Return the current picture as a frame to be closed, null before the first one. */
  takeFrame() {
    const picture = this.#filling;
    if (!picture || !this.size) return null;
    if (!this.#previewContext && this.#fits(picture)) return picture.clone();
    this.#compose(picture);
    this.#showPreview();
    return new VideoFrame(this.#canvas, { timestamp: 0 });
  }

  /** Show the current picture, while none are taken. */
  show() {
    if (!this.#filling || !this.#isPreviewDue) return;
    this.#compose(this.#filling);
    this.#showPreview();
  }

  /** Whether what fills the film is black. */
  isBlack() {
    if (!this.#filling) return false;
    this.#sampleContext.imageSmoothingQuality = "high";
    this.#sampleContext.drawImage(this.#filling, 0, 0, SAMPLE.width, SAMPLE.height);
    const { data } = this.#sampleContext.getImageData(0, 0, SAMPLE.width, SAMPLE.height);
    return data.every((value, index) => index % 4 === 3 || value <= BLACK);
  }

  /**
   * What fills the film: the screen, or a camera alone. The camera beside a screen takes its place
   * once that has ended, unless it is hidden.
   */
  get #filling() {
    const showsFace = this.#hasScreenEnded && !this.bubble.isHidden;
    return (showsFace && this.#face) || this.#picture;
  }

  get #hasScreenEnded() {
    return this.#screen?.readyState === "ended";
  }

  /** A composed picture is previewed on a canvas of its own, while somebody can see it. */
  get #isPreviewDue() {
    const isSeen = this.#previewContext && !document.hidden;
    return isSeen && performance.now() - this.#preview_ms > PREVIEW_MS;
  }

  /** @param {MediaStreamTrack} track @param {(captured_ms: number) => void} onFrame @param {AbortSignal} signal */
  #readFace(track, onFrame, signal) {
    // Without its camera, a recording goes on without the bubble.
    track.addEventListener(
      "ended",
      () => {
        this.#face?.close();
        this.#face = null;
      },
      { signal },
    );
    return readFrames(
      track,
      (frame, captured_ms) => {
        this.#face?.close();
        this.#face = frame;
        onFrame(captured_ms);
      },
      signal,
    );
  }

  #makePreview() {
    const canvas = document.createElement("canvas");
    this.#previewContext = contextOf(canvas);
    this.preview = canvas.captureStream();
  }

  /** Give the film the size of its first frame, which it keeps. @param {VideoFrame} frame */
  #setSize(frame) {
    if (this.size) return;
    this.size = filmSize(shownSize(frame));
    Object.assign(this.#canvas, this.size);
    if (!this.#previewContext) return;
    const scale = Math.min(1, PREVIEW_WIDTH / this.size.width);
    this.#previewContext.canvas.width = this.size.width * scale;
    this.#previewContext.canvas.height = this.size.height * scale;
  }

  /** Whether a frame can be encoded as it is. @param {VideoFrame} frame */
  #fits({ codedWidth, codedHeight, displayWidth, displayHeight, visibleRect }) {
    return (
      [codedWidth, displayWidth, visibleRect?.width].every((width) => width === this.size?.width) &&
      [codedHeight, displayHeight, visibleRect?.height].every(
        (height) => height === this.size?.height,
      )
    );
  }

  /** @param {VideoFrame} picture */
  #compose(picture) {
    const { width, height } = this.#canvas;
    const place = centredIn(this.#canvas, shownSize(picture));
    // Bars, if the picture has another size than the first one.
    if (place.x >= 1 || place.y >= 1) this.#context.fillRect(0, 0, width, height);
    this.#context.drawImage(picture, place.x, place.y, place.width, place.height);
    const hasBubble = !this.#hasScreenEnded && !this.bubble.isHidden;
    if (this.#face && hasBubble) this.#drawBubble(this.#face);
  }

  #showPreview() {
    if (!this.#previewContext || !this.#isPreviewDue) return;
    this.#preview_ms = performance.now();
    const { width, height } = this.#previewContext.canvas;
    this.#previewContext.drawImage(this.#canvas, 0, 0, width, height);
  }

  /** @param {VideoFrame} face */
  #drawBubble(face) {
    const { x, y, radius } = bubbleCircle(this.bubble, this.#canvas);
    const square = centredIn(shownSize(face), { width: 1, height: 1 });
    this.#context.save();
    this.#context.beginPath();
    this.#context.arc(x, y, radius, 0, 2 * Math.PI);
    this.#context.clip();
    this.#context.drawImage(
      face,
      ...[square.x, square.y, square.width, square.height],
      ...[x - radius, y - radius, 2 * radius, 2 * radius],
    );
    // Half of the line is outside of the circle, and clipped.
    this.#context.lineWidth = 4 * radius * RING_WIDTH;
    this.#context.strokeStyle = RING;
    this.#context.stroke();
    this.#context.restore();
  }
}
