/**
 * Texts of scripts in the page's language, by gettext catalogues. Each script that a page loads has
 * a catalogue of its own, which is loaded before the script. English needs none.
 */

/** @typedef {Record<string, string | number>} Values */

// Tests of scripts run without a page.
const page = globalThis.document?.documentElement;
/** Code of the page's language. */
export const language = page?.lang || "en";
const plurals = new Intl.PluralRules(language);
/** @type {import("./catalogues.js").Catalogue} */
const known = { texts: {}, plurals: { one: 0 } };

/**
 * Load the texts of a script, before the script itself.
 * @param {string} script its path below src/, without the ending @returns {Promise<void>}
 */
export async function loadMessages(script) {
  if (!page?.dataset.messages) return;
  const { fetchCatalogue } = await import("./catalogues.js");
  const { texts, plurals: forms } = await fetchCatalogue(page.dataset.messages, script);
  Object.assign(known.texts, texts);
  Object.assign(known.plurals, forms);
}

/** Return a text, with values for its placeholders %(name)s. @param {string} message @param {Values} [values] */
export function gettext(message, values) {
  return filled(known.texts[message] ?? message, 0, values);
}

/**
 * Return a text in the form for a number.
 * @param {string} message @param {string} plural @param {number} count @param {Values} [values]
 */
export function ngettext(message, plural, count, values) {
  const form = known.plurals[plurals.select(count)] ?? 1;
  return filled(known.texts[message] ?? [message, plural], form, values);
}

/**
 * Return a text of which English has only one word for several meanings.
 * @param {string} context @param {string} message @param {Values} [values]
 */
export function pgettext(context, message, values) {
  return filled(known.texts[`${context}\u0004${message}`] ?? message, 0, values);
}

/** @param {string | string[]} forms @param {number} form @param {Values} [values] */
function filled(forms, form, values) {
  const text = typeof forms === "string" ? forms : (forms[form] ?? "");
  if (!values) return text;
  return text.replace(/%\((\w+)\)s|%%/g, (_, name) => (name ? String(values[name]) : "%"));
}

// Texts of the script of every page, which other modules read when they are evaluated.
await loadMessages("main");
