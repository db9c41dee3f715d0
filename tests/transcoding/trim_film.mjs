/** Write the part of a film between two times with mediabunny, as an MP4 with edit lists. */

import { openAsBlob } from "node:fs";
import { writeFile } from "node:fs/promises";
import * as media from "../../static/node_modules/mediabunny/dist/modules/src/index.js";

const [source, target, start, end] = process.argv.slice(2);
const input = new media.Input({
  formats: [media.MP4],
  source: new media.BlobSource(await openAsBlob(source)),
});
const output = new media.Output({
  format: new media.Mp4OutputFormat({ fastStart: "in-memory" }),
  target: new media.BufferTarget(),
});
const conversion = await media.Conversion.init({
  input,
  output,
  // Without the first term, a track that begins at its first packet has no edit list.
  trim: { start: 1e-6 + Number(start), end: Number(end) },
  copy: { mode: "forced", boundaryPolicy: "expand" },
});
await conversion.execute();
await writeFile(target, new Uint8Array(output.target.buffer));
