/**
 * Search as you type. htmx sends the form and replaces the results; this script updates the page's
 * address, without empty parameters. Continuous typing is a single history entry, and going back
 * reloads the previous entry.
 */
import { announce, contextOf, element } from "../dom.js";
import { gettext } from "../messages.js";

/** @type {import("../lifecycle.js").Behaviour} */
export const searchBehaviour = {
  selector: "form[data-library-search]",
  start(form, signal) {
    if (!(form instanceof HTMLFormElement)) return;
    const search = new Search(form);
    /** @param {string} name @param {(ctx: any) => void} handle */
    const listen = (name, handle) => {
      const listener = (/** @type {Event} */ event) => {
        const ctx = contextOf(event);
        if (ctx?.sourceElement === form) handle(ctx);
      };
      form.addEventListener(name, listener, { signal });
    };
    listen("htmx:config:request", (ctx) => search.removeEmpty(ctx.request.body));
    listen("htmx:before:swap", (ctx) => search.handleResponse(ctx));
    listen("htmx:after:swap", (ctx) => search.announceResults(ctx));
    listen("htmx:error", () => search.showError(true));
    window.addEventListener("popstate", () => search.restore(), { signal });
    // Text that an input method is still composing is not searched.
    const stopComposition = (/** @type {any} */ event) =>
      event.isComposing && event.stopPropagation();
    form.addEventListener("input", stopComposition, { signal, capture: true });
    const handleCompositionEnd = (/** @type {Event} */ { target }) =>
      target?.dispatchEvent(new Event("input", { bubbles: true }));
    form.addEventListener("compositionend", handleCompositionEnd, { signal });
  },
};

/** Announcement that a video has become ready. @type {import("../lifecycle.js").Behaviour} */
export const readyAnnouncement = {
  selector: "#library-poll[data-news]",
  start(element) {
    announce(element.dataset.news ?? "");
  },
};

/** @param {Location | URL} address */
const pathAndQuery = ({ pathname, search }) => pathname + search;

/** Reload a page that is not the address's, because the person went back before this script ran. */
export function reloadIfMoved() {
  const [page] = performance.getEntriesByType("navigation");
  // Going back reloads a page, and a reload is not redirected, which would look the same.
  if (!(page instanceof PerformanceNavigationTiming) || page.type !== "reload") return;
  if (pathAndQuery(new URL(page.name)) !== pathAndQuery(location)) location.reload();
}

class Search {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.text = /** @type {HTMLInputElement} */ (element(form, "[name=q]"));
    this.sort = /** @type {HTMLSelectElement} */ (element(form, "[name=sort]"));
    this.address = pathAndQuery(location);
    this.#offerBestMatch();
  }

  /** Remove empty parameters from a request. @param {FormData} data */
  removeEmpty(data) {
    this.#offerBestMatch();
    data.set("sort", this.sort.value);
    for (const [name, value] of [...data]) {
      if (value === "") data.delete(name);
    }
  }

  /** Show the address of the results, or an error. @param {any} ctx of htmx's request */
  handleResponse(ctx) {
    const isRefused = ctx.response.status >= 400;
    this.showError(isRefused);
    if (isRefused) return;
    this.#showAddress(ctx.request.action, ctx.sourceEvent?.type === "input");
  }

  /** Announce the new results. @param {any} ctx of htmx's request */
  announceResults(ctx) {
    if (ctx.response.status >= 400) return;
    announce(element(document, "#results").dataset.announce ?? "");
  }

  /** Restore the page after going back or forward, except to a fragment. */
  restore() {
    if (pathAndQuery(location) !== this.address) location.reload();
  }

  /** @param {string} address @param {boolean} isTyping */
  #showAddress(address, isTyping) {
    if (address === this.address) return;
    if (isTyping && history.state?.typing) history.replaceState({ typing: true }, "", address);
    else history.pushState({ typing: isTyping }, "", address);
    this.address = pathAndQuery(location);
  }

  /** Set the default order: best match with a text, else newest first. */
  #offerBestMatch() {
    const hasText = this.text.value.trim() !== "";
    const defaultOption = this.sort.querySelector("option[value='']");
    const newestOption = this.sort.querySelector("option[value=newest]");
    if (!(defaultOption instanceof HTMLOptionElement && newestOption instanceof HTMLOptionElement))
      return;
    // Translators: order of the results of a search.
    const bestMatch = gettext("Best match");
    defaultOption.textContent = hasText ? bestMatch : newestOption.textContent;
    newestOption.hidden = newestOption.disabled = !hasText;
    if (!hasText && newestOption.selected) this.sort.value = "";
  }

  /** @param {boolean} isShown */
  showError(isShown) {
    element(this.form, "[data-library-trouble]").hidden = !isShown;
  }
}
