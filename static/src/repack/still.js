/** Picture of a film of sound alone: the file's own cover, or its title on colours. */

const WIDTH_PX = 1280;
const HEIGHT_PX = 720;
const BITRATE_BPS = 2_000_000;
/** Encoders in the order of preference: what the portal can copy first. */
const CODECS = /** @type {const} */ ([
  ["avc", "avc1.64001f"],
  ["avc", "avc1.42001f"],
  ["vp9", "vp09.00.31.08"],
]);
const MOST_LINES = 4;

/** @typedef {import("./repack.js").Still} Still */
/** @typedef {import("mediabunny").MetadataTags} Tags */

/**
 * Encode the picture.
 * @param {Tags} tags of the file @param {string} name title of a file without one
 * @returns {Promise<Still | null>} null if the browser has no encoder
 */
export async function makeStill(tags, name) {
  const canvas = new OffscreenCanvas(WIDTH_PX, HEIGHT_PX);
  const context = canvas.getContext("2d");
  if (!context) return null;
  const cover = await coverOf(tags);
  if (cover) drawCover(context, cover);
  else drawTitle(context, tags.title || name, tags.artist ?? "");
  for (const [codec, string] of CODECS) {
    const config = {
      ...{ codec: string, width: WIDTH_PX, height: HEIGHT_PX, bitrate: BITRATE_BPS, framerate: 1 },
      ...(codec === "avc" ? { avc: { format: /** @type {const} */ ("avc") } } : {}),
    };
    const isSupported = globalThis.VideoEncoder
      ? (await VideoEncoder.isConfigSupported(config).catch(() => null))?.supported
      : false;
    if (isSupported) return await encode(canvas, config, codec).catch(() => null);
  }
  return null;
}

/** Return the file's cover. @param {Tags} tags @returns {Promise<ImageBitmap | null>} */
async function coverOf({ images = [] }) {
  const image = images.find(({ kind }) => kind === "coverFront") ?? images[0];
  if (!image) return null;
  const blob = new Blob([new Uint8Array(image.data)], { type: image.mimeType });
  return createImageBitmap(blob).catch(() => null);
}

/**
 * Draw the cover whole, over a large dark copy of it.
 * @param {OffscreenCanvasRenderingContext2D} context @param {ImageBitmap} cover
 */
function drawCover(context, cover) {
  const draw = (/** @type {number} */ scale) => {
    const [width, height] = [cover.width * scale, cover.height * scale];
    context.drawImage(cover, (WIDTH_PX - width) / 2, (HEIGHT_PX - height) / 2, width, height);
  };
  const scales = [WIDTH_PX / cover.width, HEIGHT_PX / cover.height];
  draw(Math.max(...scales));
  context.fillStyle = "rgb(0 0 0 / 70%)";
  context.fillRect(0, 0, WIDTH_PX, HEIGHT_PX);
  draw(Math.min(...scales));
}

/**
 * Draw the title on colours that follow from it.
 * @param {OffscreenCanvasRenderingContext2D} context @param {string} title @param {string} artist
 */
function drawTitle(context, title, artist) {
  const hue = [...title].reduce((sum, letter) => sum * 31 + (letter.codePointAt(0) ?? 0), 7) % 360;
  const colours = context.createLinearGradient(0, 0, WIDTH_PX, HEIGHT_PX);
  colours.addColorStop(0, `hsl(${hue} 45% 30%)`);
  colours.addColorStop(1, `hsl(${(hue + 50) % 360} 50% 16%)`);
  context.fillStyle = colours;
  context.fillRect(0, 0, WIDTH_PX, HEIGHT_PX);
  context.fillStyle = "white";
  context.textAlign = "center";
  context.font = "600 64px sans-serif";
  const lines = linesOf(context, title);
  const top = HEIGHT_PX / 2 - ((lines.length - 1) * 80) / 2;
  for (const [index, line] of lines.entries())
    context.fillText(line, WIDTH_PX / 2, top + index * 80);
  context.font = "36px sans-serif";
  context.fillText(artist, WIDTH_PX / 2, top + lines.length * 80, WIDTH_PX * 0.85);
}

/** Return a title in lines. @param {OffscreenCanvasRenderingContext2D} context @param {string} title */
function linesOf(context, title) {
  /** @type {string[]} */
  const lines = [];
  for (const word of title.split(/\s+/)) {
    const longer = [...lines.slice(-1), word].join(" ");
    const fits = lines.length > 0 && context.measureText(longer).width <= WIDTH_PX * 0.85;
    if (fits) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.slice(0, MOST_LINES);
}

/**
 * Encode two key frames of a picture.
 * @param {OffscreenCanvas} canvas @param {VideoEncoderConfig} encoderConfig
 * @param {Still["codec"]} codec @returns {Promise<Still | null>}
 */
async function encode(canvas, encoderConfig, codec) {
  /** @type {VideoDecoderConfig | undefined} */
  let config;
  /** @type {string[]} */
  const frames = [];
  const encoder = new VideoEncoder({
    output: (chunk, metadata) => {
      config ??= metadata?.decoderConfig;
      const data = new Uint8Array(chunk.byteLength);
      chunk.copyTo(data);
      frames.push(toBase64(data));
    },
    error: () => {},
  });
  encoder.configure(encoderConfig);
  for (const timestamp of [0, 1_000_000]) {
    const frame = new VideoFrame(canvas, { timestamp });
    encoder.encode(frame, { keyFrame: true });
    frame.close();
  }
  await encoder.flush();
  encoder.close();
  if (!config) return null;
  const { description, codec: string, colorSpace } = config;
  const bytes = description && new Uint8Array(/** @type {ArrayBuffer} */ (description));
  const size = { width: WIDTH_PX, height: HEIGHT_PX };
  // The color space is an interface without own members.
  const colours = colorSpace && {
    ...{ primaries: colorSpace.primaries, transfer: colorSpace.transfer },
    ...{ matrix: colorSpace.matrix, fullRange: colorSpace.fullRange },
  };
  return { codec, string, ...size, description: bytes ? toBase64(bytes) : "", colours, frames };
}

/** @param {Uint8Array} bytes */
const toBase64 = (bytes) =>
  btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ""));
