/** What media-chrome's menus leave to be desired. */

/** @typedef {import("./track-lists.js").RenditionList} RenditionList */

// Encoders and browsers both round a picture's size.
const ROUNDING_LINES = 4;

/**
 * @param {HTMLElement} controller
 * @param {RenditionList} renditions
 * @param {AbortSignal} signal
 */
export function mendMenus(controller, renditions, signal) {
  const menu = controller.querySelector(".player__menu");
  const qualities = controller.querySelector("media-rendition-menu");
  if (!(menu instanceof HTMLElement) || !(qualities instanceof HTMLElement)) return;
  for (const each of [menu, ...menu.querySelectorAll("[slot=submenu]")]) {
    nameBack(each);
    leaveFocusInside(/** @type {HTMLElement} */ (each));
  }
  nameAutomatic(qualities, renditions);
  putAutomaticFirst(qualities);
  closeFromOutside(controller, menu, signal);
}

/**
 * The button is called by the words on it, as who speaks to the browser would call it.
 * @param {Element} menu
 */
function nameBack(menu) {
  const back = menu.shadowRoot?.querySelector("button[part~=back]");
  back?.setAttribute("role", "menuitem");
  const title = menu.querySelector("[slot=title]")?.textContent;
  if (title) back?.setAttribute("aria-label", `${title}: back`);
}

/**
 * A menu takes the focus once it has unfolded, and gives it back to what had it before. Where that
 * is an entry of its own, reached meanwhile, it would hold on to a focus that is to leave.
 * @param {HTMLElement} menu
 */
function leaveFocusInside(menu) {
  const focus = menu.focus.bind(menu);
  menu.focus = () => {
    if (!menu.matches(":focus-within")) focus();
  };
}

/**
 * "Auto (358p)" for what the list calls 360p.
 * @param {HTMLElement} menu
 * @param {RenditionList} renditions
 */
function nameAutomatic(menu, renditions) {
  Object.assign(menu, {
    formatMenuItemText: (/** @type {string} */ text) =>
      text.replace(/\d+(?=p)/, (lines) => {
        const isClose = (/** @type {{ lines: number }} */ rendition) =>
          Math.abs(rendition.lines - Number(lines)) <= ROUNDING_LINES;
        const found = renditions.items.find(isClose);
        return String(found?.name ?? lines);
      }),
  });
}

/**
 * The list is written anew whenever something about it changes, with the automatic quality last.
 * @param {HTMLElement} menu
 */
function putAutomaticFirst(menu) {
  const list = menu.shadowRoot?.querySelector("slot:not([name])");
  if (!list) return;
  const move = () => {
    const automatic = list.querySelector(":scope > [value=auto]");
    if (automatic && automatic !== list.firstElementChild) list.prepend(automatic);
  };
  new MutationObserver(move).observe(list, { childList: true });
  move();
}

/**
 * Closes the sheet, too, when the page around it is touched, which need not take its focus, and
 * before it has the focus.
 * @param {HTMLElement} controller
 * @param {HTMLElement} menu
 * @param {AbortSignal} signal
 */
function closeFromOutside(controller, menu, signal) {
  const outside = controller.querySelector("[data-player-outside]");
  /** @type {HTMLElement | null} */
  const button = controller.querySelector("media-settings-menu-button");
  const close = () => {
    button?.focus();
    menu.hidden = true;
  };
  // Without the focus the menu would be gone before the click, which would go to the video.
  outside?.addEventListener("mousedown", (event) => event.preventDefault(), { signal });
  outside?.addEventListener("click", close, { signal });
  controller.addEventListener(
    "keydown",
    ({ key }) => {
      if (key === "Escape" && !menu.hidden) close();
    },
    { signal },
  );
  // An entry's list lies beside what is seen of the sheet unscrolled.
  menu.addEventListener("toggle", () => menu.scrollTo(0, 0), { signal });
}
