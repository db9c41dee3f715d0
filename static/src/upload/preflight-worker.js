/** The preflight's own thread: a file that keeps it busy keeps nothing else, and can be ended. */

import { examine } from "./examine.js";

addEventListener("message", async (event) => {
  postMessage(await examine(event.data));
});
