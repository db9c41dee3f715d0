/** Length and pictures of a film that is still a file, made in a worker. */

import { BlobSource, CanvasSink, EncodedPacketSink, Input } from "mediabunny";
import { FORMATS } from "../repack/repack.js";

const COUNT = 24;
const WIDTH_PX = 144;

/**
 * `sprite` is a `data:` address of pictures in a row, empty if the browser can't decode the film.
 * @typedef {{ duration_s: number, frame_s: number, sprite: string, width: number, height: number,
 *   count: number }} Preview
 */

/** @param {Blob} file @returns {Promise<Preview>} */
export async function readPreview(file) {
  const input = new Input({ source: new BlobSource(file), formats: FORMATS });
  try {
    const track = await input.getPrimaryVideoTrack();
    const zero_s = Math.max(await input.getFirstTimestamp(), 0);
    const end_s = (await input.getDurationFromMetadata()) ?? (await input.computeDuration());
    const duration_s = end_s - zero_s;
    const none = { duration_s, frame_s: 0.1, sprite: "", width: 0, height: 0, count: 0 };
    if (!track) return none;
    const { averagePacketRate } = await track.computePacketStats(60);
    const known = { ...none, frame_s: 1 / Math.max(averagePacketRate, 1) };
    if (!(await track.canDecode())) return known;
    const width = WIDTH_PX;
    const height = Math.round(
      (width * (await track.getDisplayHeight())) / (await track.getDisplayWidth()),
    );
    const canvas = new OffscreenCanvas(width * COUNT, height);
    const context = canvas.getContext("2d");
    const keys = new EncodedPacketSink(track);
    const pictures = new CanvasSink(track, { width, height, fit: "fill", poolSize: 1 });
    for (let index = 0; index < COUNT; index += 1) {
      // A key frame is decoded alone.
      const key = await keys.getKeyPacket(zero_s + ((index + 0.5) / COUNT) * duration_s);
      const picture = await pictures.getCanvas(key?.timestamp ?? zero_s);
      if (picture) context?.drawImage(picture.canvas, index * width, 0);
    }
    const sprite = await toAddress(await canvas.convertToBlob({ type: "image/jpeg" }));
    return { ...known, sprite, width, height, count: COUNT };
  } finally {
    input.dispose();
  }
}

/** Return a `data:` address. @param {Blob} blob @returns {Promise<string>} */
function toAddress(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result)));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(blob);
  });
}
