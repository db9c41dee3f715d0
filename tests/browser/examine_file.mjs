/** Print the upload page's facts and findings about the files in the arguments. */

import { openAsBlob } from "node:fs";
import { examine } from "../../static/src/preflight/file-facts.js";
import { factsText, findingsOf } from "../../static/src/preflight/findings.js";

// Only the answers go to stdout.
console.info = console.error;
const [limits, ...paths] = process.argv.slice(2);

for (const path of paths) {
  const facts = await examine(await openAsBlob(path));
  const findings = findingsOf(facts, JSON.parse(limits), path);
  console.log(JSON.stringify({ facts, findings, words: factsText(facts) }));
}
