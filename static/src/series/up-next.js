/** Next video of a series: it starts at the end of the present one, after a countdown. */

import { readStored, writeStored } from "../browser-storage.js";
import { element, setText } from "../dom.js";
import { formatNumber } from "../format.js";
import { gettext } from "../messages.js";

/** Whether this browser plays the next video automatically; absent means yes. */
const AUTOPLAY = "portal:autoplay";
const COUNTDOWN_S = 5;
/** Plays the video of the address (`player/player.js`). */
const PLAY = "#play";

/** @type {import("../lifecycle.js").Start} */
export function startUpNext(panel, signal) {
  scrollToPresent(panel);
  const link = panel.querySelector("[data-next]");
  const choice = panel.querySelector("[data-autoplay]");
  const box = choice?.querySelector("input");
  if (!(link instanceof HTMLAnchorElement) || !(choice instanceof HTMLElement) || !box) return;
  const countdown = element(panel, "[data-countdown]");
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;

  const stop = () => {
    clearInterval(timer);
    timer = undefined;
  };
  const hide = () => {
    stop();
    const hadFocus = countdown.contains(document.activeElement);
    countdown.hidden = true;
    if (hadFocus) box.focus();
  };
  const offer = () => {
    stop();
    countdown.hidden = false;
    // Translators: before the title of the next video of a series.
    setText(countdown, "[data-seconds]", gettext("Next:"));
    if (!box.checked || isCalm()) return;
    let left = COUNTDOWN_S;
    const show = () => {
      const values = { seconds: formatNumber(left) };
      // Translators: before the title of the next video of a series; a number of seconds.
      setText(countdown, "[data-seconds]", gettext("Next in %(seconds)s s:", values));
    };
    show();
    timer = setInterval(() => {
      // Nothing starts in a background tab.
      if (document.hidden) return;
      left -= 1;
      show();
      if (left > 0) return;
      stop();
      location.assign(link.href);
    }, 1000);
  };

  choice.hidden = false;
  box.checked = readStored(AUTOPLAY) !== false;
  box.addEventListener(
    "change",
    () => {
      writeStored(AUTOPLAY, box.checked);
      if (!box.checked) hide();
    },
    { signal },
  );
  link.hash = PLAY;
  element(countdown, "[data-cancel]").addEventListener("click", hide, { signal });
  const handleKey = (/** @type {KeyboardEvent} */ { key }) => key === "Escape" && timer && hide();
  document.addEventListener("keydown", handleKey, { signal });
  // Events of media don't bubble. The player may appear after this.
  const ofPlayer = { signal, capture: true };
  document.addEventListener("ended", ({ target }) => isPlayer(target) && offer(), ofPlayer);
  document.addEventListener("playing", ({ target }) => isPlayer(target) && hide(), ofPlayer);
  signal.addEventListener("abort", stop);
}

/** @param {EventTarget | null} target */
function isPlayer(target) {
  return target instanceof HTMLElement && target.matches("video[data-player]");
}

/** Return whether nothing may start by itself: people ask for little motion, or for little data. */
function isCalm() {
  const { saveData } = /** @type {any} */ (navigator).connection ?? {};
  return saveData || matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Show the present video in a list that scrolls. @param {HTMLElement} panel */
function scrollToPresent(panel) {
  const row = panel.querySelector("[aria-current]");
  const list = row?.parentElement;
  if (row instanceof HTMLElement && list) list.scrollTop = row.offsetTop - list.offsetTop;
}
