/**
 * Searching while someone types. htmx sends the form and replaces the results; what is left to do
 * here is the address: it always shows what is on the page, without empty parameters. One stretch
 * of typing is one entry of the history, and going back brings form and results back.
 */
import htmx from "htmx.org";
import { announce, element } from "../dom.js";

const RESULTS = "#results";

/** @type {import("../lifecycle.js").Behaviour} */
export const searchBehaviour = {
  selector: "form[data-library-search]",
  start(form, signal) {
    if (!(form instanceof HTMLFormElement)) return;
    const search = new Search(form);
    /** @param {string} name @param {(ctx: any) => void} handle */
    const on = (name, handle) => {
      const listener = (/** @type {any} */ event) => {
        if (event.detail.ctx?.sourceElement === form) handle(event.detail.ctx);
      };
      form.addEventListener(name, listener, { signal });
    };
    on("htmx:config:request", (ctx) => search.tidy(ctx.request.body));
    on("htmx:before:request", () => search.begin());
    on("htmx:before:swap", (ctx) => search.arrived(ctx));
    on("htmx:after:swap", (ctx) => search.shown(ctx));
    on("htmx:error", () => search.trouble(true));
    on("htmx:finally:request", () => search.end());
    window.addEventListener("popstate", () => search.restore(), { signal });
    waitForComposition(form, signal);
  },
};

/** The poll brought a card to its end. @type {import("../lifecycle.js").Behaviour} */
export const newsBehaviour = {
  selector: "#library-poll[data-news]",
  start(element) {
    announce(element.dataset.news ?? "");
  },
};

/**
 * What an input method has not settled yet, such as the sound of a character, is not searched.
 * @param {HTMLFormElement} form @param {AbortSignal} signal
 */
function waitForComposition(form, signal) {
  const capture = { signal, capture: true };
  const hold = (/** @type {Event} */ event) => {
    if (event instanceof InputEvent && event.isComposing) event.stopPropagation();
  };
  form.addEventListener("input", hold, capture);
  form.addEventListener(
    "compositionend",
    (event) => event.target?.dispatchEvent(new Event("input", { bubbles: true })),
    { signal },
  );
}

class Search {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.text = field(form, "q", HTMLInputElement);
    this.tag = field(form, "tag", HTMLInputElement);
    this.sort = field(form, "sort", HTMLSelectElement);
    this.address = location.pathname + location.search;
    this.underWay = 0;
    this.#offerBestMatch();
  }

  /**
   * Leaves out what goes without saying, so that an address is as short as it can be.
   * @param {FormData} data
   */
  tidy(data) {
    this.#offerBestMatch();
    data.set("sort", this.sort.value);
    for (const [name, value] of [...data]) {
      if (value === "") data.delete(name);
    }
  }

  begin() {
    this.underWay += 1;
    document.querySelector(RESULTS)?.setAttribute("aria-busy", "true");
  }

  end() {
    this.underWay -= 1;
    if (this.underWay === 0) document.querySelector(RESULTS)?.removeAttribute("aria-busy");
  }

  /** @param {any} ctx of htmx's request */
  arrived(ctx) {
    const isRefused = ctx.response.status >= 400;
    this.trouble(isRefused);
    if (isRefused) return;
    const isBack = ctx.sourceEvent?.type === "popstate";
    if (!isBack) this.#showAddress(ctx.request.action, ctx.sourceEvent?.type === "input");
    this.address = location.pathname + location.search;
  }

  /** @param {any} ctx of htmx's request */
  shown(ctx) {
    if (ctx.response.status >= 400) return;
    const results = document.querySelector(RESULTS);
    if (results instanceof HTMLElement) announce(results.dataset.announce ?? "");
  }

  /** The browser went back or forward to an entry that was made here. */
  restore() {
    const address = location.pathname + location.search;
    // A mere jump within the page, such as to its content, is no other search.
    if (address === this.address) return;
    const parameters = new URLSearchParams(location.search);
    this.form.reset();
    this.text.value = parameters.get("q") ?? "";
    this.tag.value = parameters.get("tag") ?? "";
    this.tag.disabled = this.tag.value === "";
    for (const select of this.form.querySelectorAll("select")) {
      select.value = parameters.get(select.name) ?? "";
      if (select.selectedIndex < 0) select.selectedIndex = 0;
    }
    this.#offerBestMatch();
    const event = new Event("popstate");
    void htmx.ajax("GET", address, { source: this.form, target: RESULTS, event });
  }

  /** @param {string} address @param {boolean} isTyping */
  #showAddress(address, isTyping) {
    if (address === location.pathname + location.search) return;
    if (isTyping && history.state?.typing) history.replaceState({ typing: true }, "", address);
    else history.pushState({ typing: isTyping }, "", address);
  }

  /** What goes without saying is the best match first, or the newest if there is none to match. */
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

/**
 * @template {HTMLElement} T @param {HTMLFormElement} form @param {string} name
 * @param {new () => T} type @returns {T}
 */
function field(form, name, type) {
  const found = form.elements.namedItem(name);
  if (!(found instanceof type)) throw new Error(`the form has no ${name}`);
  return found;
}
