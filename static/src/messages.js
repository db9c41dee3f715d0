/**
 * Texts of scripts in the page's language, by gettext catalogues. Each script that a page loads has
 * a catalogue of its own, which is loaded before the script. English needs none.
 */

/** Texts by their English text, after its context; with plurals, the forms in the catalogue's order. */
/** @typedef {{ plurals: Record<string, number>, texts: Record<string, string | string[]> }} Catalogue */
/** @typedef {Record<string, string | number>} Values */

/** Separates a context from its text, as in gettext's files. */
const CONTEXT_END = "\u0004";
const TIMEOUT_MS = 10_000;

// Tests of scripts run without a page.
const page = globalThis.document?.documentElement;
/** Code of the page's language. */
export const language = page?.lang || "en";
const plurals = new Intl.PluralRules(language);
/** Loads of scripts' texts. @type {Map<string, Promise<void>>} */
const loads = new Map();
/** @type {Catalogue} */
const known = { plurals: { one: 0, other: 1 }, texts: {} };

/**
 * Load the texts of a script, before the script itself is loaded. It stays English if they can't be
 * loaded.
 * @param {string} script its path below src/, without the ending
 */
export function loadMessages(script) {
  const loading = loads.get(script) ?? load(script);
  loads.set(script, loading);
  return loading;
}

/** @param {string} script */
async function load(script) {
  // `*` stands for the script.
  const url = page?.dataset.messages?.replace("*", script.replace("/", "-"));
  if (!url) return;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    /** @type {Catalogue} */
    const catalogue = await response.json();
    known.plurals = catalogue.plurals;
    Object.assign(known.texts, catalogue.texts);
  } catch (error) {
    console.warn("Texts can’t be loaded:", url, error);
  }
}

/** Return a text, with values for its placeholders %(name)s. @param {string} message @param {Values} [values] */
export function gettext(message, values) {
  return filled(formsOf(message)?.[0] ?? message, values);
}

/**
 * Return a text in the form for a number.
 * @param {string} message @param {string} plural @param {number} count @param {Values} [values]
 */
export function ngettext(message, plural, count, values) {
  const forms = formsOf(message);
  const english = count === 1 ? message : plural;
  const form = known.plurals[plurals.select(count)] ?? 0;
  return filled(forms?.[form] ?? english, values);
}

/**
 * Return a text of which English has only one word for several meanings.
 * @param {string} context @param {string} message @param {Values} [values]
 */
export function pgettext(context, message, values) {
  return filled(formsOf(context + CONTEXT_END + message)?.[0] ?? message, values);
}

/** @param {string} key @returns {string[] | undefined} */
function formsOf(key) {
  const found = known.texts[key];
  return typeof found === "string" ? [found] : found;
}

/** @param {string} text @param {Values} [values] */
function filled(text, values) {
  if (!values) return text;
  return text.replace(/%\((\w+)\)s|%%/g, (match, name) =>
    match === "%%" ? "%" : String(values[name]),
  );
}

// Texts of the script of every page, which other modules read when they are evaluated.
await loadMessages("main");
