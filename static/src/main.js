import "htmx.org";
import { refresh } from "./lifecycle.js";
import { localTime } from "./local-time.js";
import { playerBehaviour } from "./player.js";
import { remainingBehaviour } from "./remaining.js";
import { statusBehaviour } from "./status.js";
import { uploadForm } from "./upload/form.js";

const behaviours = [localTime, playerBehaviour, remainingBehaviour, statusBehaviour, uploadForm];

/** @param {ParentNode} root */
export function init(root) {
  refresh(root, behaviours);
}

// htmx sends this for every piece it has swapped in, from that piece.
document.addEventListener("htmx:after:process", (event) => {
  if (event.target instanceof Element) init(event.target);
});
init(document);
