/** Prints, for each file named, what the upload page finds out about it, and how much it reads. */

import { openAsBlob } from "node:fs";
import { examine } from "../../static/src/preflight/file-facts.js";
import { factsInWords, findingsOf } from "../../static/src/preflight/findings.js";

// Only the answers go to stdout.
console.info = console.error;
const [limits, ...paths] = process.argv.slice(2);

for (const path of paths) {
  const blob = await openAsBlob(path);
  let read_bytes = 0;
  const counted = {
    size: blob.size,
    slice(start, end) {
      const piece = blob.slice(start, end);
      read_bytes += piece.size;
      return piece;
    },
  };
  const began = process.cpuUsage();
  const facts = await examine(counted);
  const used = process.cpuUsage(began);
  const took_ms = (used.user + used.system) / 1000;
  const findings = findingsOf(facts, JSON.parse(limits));
  const words = factsInWords(facts);
  console.log(JSON.stringify({ facts, findings, words, read_bytes, took_ms }));
}
