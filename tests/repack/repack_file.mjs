/** Repack files as the upload page does: pairs of arguments with source and result. */

import { openAsBlob } from "node:fs";
import { open } from "node:fs/promises";
import { repack } from "../../static/src/repack/repack.js";

const paths = process.argv.slice(2);
for (let index = 0; index < paths.length; index += 2) {
  const file = await open(paths[index + 1], "w");
  let share = 0;
  let failure = "";
  const receiver = {
    write: (data) => file.write(data),
    report: (read) => {
      share = read;
    },
    makeStill: async () => null,
  };
  try {
    await repack(await openAsBlob(paths[index]), receiver);
  } catch (error) {
    failure = error.code ?? String(error);
    console.error(error);
  }
  await file.close();
  console.log(JSON.stringify({ failure, share }));
}
