/**
 * An esbuild plugin that has Uppy send whatever the browser says of its being online: the word is
 * wrong where portal and storage are on a machine without a network. src/upload/transfer.js finds
 * out about that, and stops Uppy. The build fails when a new version of Uppy asks in another way.
 */
import { readFile } from "node:fs/promises";

const QUESTION = "typeof navigator !== 'undefined' && navigator.onLine === false";

/** @type {import("esbuild").Plugin} */
export const uppyOnline = {
  name: "uppy-online",
  setup(build) {
    const client = /[\\/]@uppy[\\/]aws-s3[\\/]lib[\\/]s3-client[\\/]S3Client\.js$/;
    build.onLoad({ filter: client }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      if (source.split(QUESTION).length !== 2) throw new Error("Uppy asks for the line anew");
      return { contents: source.replace(QUESTION, "false") };
    });
  },
};
