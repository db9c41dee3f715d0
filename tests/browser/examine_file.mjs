/** Prints, for each file named, what the upload page finds out about it. */

import { openAsBlob } from "node:fs";
import { examine } from "../../static/src/preflight/file-facts.js";
import { factsInWords, findingsOf } from "../../static/src/preflight/findings.js";

// Only the answers go to stdout.
console.info = console.error;
const [limits, ...paths] = process.argv.slice(2);

for (const path of paths) {
  const facts = await examine(await openAsBlob(path));
  const findings = findingsOf(facts, JSON.parse(limits), path);
  console.log(JSON.stringify({ facts, findings, words: factsInWords(facts) }));
}
