/** Repack files as the upload page does: in each argument, in JSON, source, result and trim. */

import { openAsBlob } from "node:fs";
import { open } from "node:fs/promises";
import { repack } from "../../static/src/repack/repack.js";

for (const argument of process.argv.slice(2)) {
  const [source, result, trim] = JSON.parse(argument);
  const file = await open(result, "w");
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
    await repack(await openAsBlob(source), receiver, trim);
  } catch (error) {
    failure = error.code ?? String(error);
    console.error(error);
  }
  await file.close();
  console.log(JSON.stringify({ failure, share }));
}
