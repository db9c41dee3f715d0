/**
 * Search as you type. htmx sends the form and replaces the results; this keeps the page's address
 * in step, without empty parameters. One stretch of typing is one history entry, and going back
 * reloads the previous one.
 */
import { announce, contextOf, element } from "../dom.js";

/** @type {import("../lifecycle.js").Behaviour} */
export const searchBehaviour = {
  selector: "form[data-library-search]",
  start(form, signal) {
    if (!(form instanceof HTMLFormElement)) return;
    const search = new Search(form);
    /** @param {string} name @param {(ctx: any) => void} handle */
    const on = (name, handle) => {
      const listener = (/** @type {Event} */ event) => {
        const ctx = contextOf(event);
        if (ctx?.sourceElement === form) handle(ctx);
      };
      form.addEventListener(name, listener, { signal });
    };
    on("htmx:config:request", (ctx) => search.tidy(ctx.request.body));
    on("htmx:before:swap", (ctx) => search.arrived(ctx));
    on("htmx:after:swap", (ctx) => search.shown(ctx));
    on("htmx:error", () => search.trouble(true));
    window.addEventListener("popstate", () => search.restore(), { signal });
    // Text in composition by an input method is not searched.
    const hold = (/** @type {any} */ event) => event.isComposing && event.stopPropagation();
    form.addEventListener("input", hold, { signal, capture: true });
    const composed = (/** @type {Event} */ { target }) =>
      target?.dispatchEvent(new Event("input", { bubbles: true }));
    form.addEventListener("compositionend", composed, { signal });
  },
};

/** Announces that a video has become ready. @type {import("../lifecycle.js").Behaviour} */
export const newsBehaviour = {
  selector: "#library-poll[data-news]",
  start(element) {
    announce(element.dataset.news ?? "");
  },
};

const addressNow = () => location.pathname + location.search;

class Search {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.text = /** @type {HTMLInputElement} */ (element(form, "[name=q]"));
    this.sort = /** @type {HTMLSelectElement} */ (element(form, "[name=sort]"));
    this.address = addressNow();
    this.#offerBestMatch();
  }

  /** Remove empty parameters from the address. @param {FormData} data */
  tidy(data) {
    this.#offerBestMatch();
    data.set("sort", this.sort.value);
    for (const [name, value] of [...data]) {
      if (value === "") data.delete(name);
    }
  }

  /** @param {any} ctx of htmx's request */
  arrived(ctx) {
    const isRefused = ctx.response.status >= 400;
    this.trouble(isRefused);
    if (isRefused) return;
    this.#showAddress(ctx.request.action, ctx.sourceEvent?.type === "input");
  }

  /** @param {any} ctx of htmx's request */
  shown(ctx) {
    if (ctx.response.status >= 400) return;
    announce(element(document, "#results").dataset.announce ?? "");
  }

  /** Restore the page after going back or forward, except to a fragment. */
  restore() {
    if (addressNow() !== this.address) location.reload();
  }

  /** @param {string} address @param {boolean} isTyping */
  #showAddress(address, isTyping) {
    if (address === this.address) return;
    if (isTyping && history.state?.typing) history.replaceState({ typing: true }, "", address);
    else history.pushState({ typing: isTyping }, "", address);
    this.address = addressNow();
  }

  /** Set the default order: best match with a text, else newest first. */
  #offerBestMatch() {
    const hasText = this.text.value.trim() !== "";
    const usual = this.sort.querySelector("option[value='']");
    const newest = this.sort.querySelector("option[value=newest]");
    if (!(usual instanceof HTMLOptionElement && newest instanceof HTMLOptionElement)) return;
    usual.textContent = hasText ? "Best match" : newest.textContent;
    newest.hidden = newest.disabled = !hasText;
    if (!hasText && newest.selected) this.sort.value = "";
  }

  /** @param {boolean} isShown */
  trouble(isShown) {
    element(this.form, "[data-library-trouble]").hidden = !isShown;
  }
}
