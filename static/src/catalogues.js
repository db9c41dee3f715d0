/** Catalogues of scripts' texts, for pages that are not English. */

/**
 * Forms of texts by the English text, after its context and U+0004, and the number of the form for
 * each plural category.
 * @typedef {{ texts: Record<string, string | string[]>, plurals: Record<string, number> }} Catalogue
 */

const TIMEOUT_MS = 10_000;
/** Requested catalogues by address. @type {Map<string, Promise<Catalogue>>} */
const requested = new Map();

/**
 * Return the catalogue of a script; an empty one, so that it stays English, if it can't be loaded.
 * @param {string} address with `*` for the script @param {string} script
 * @returns {Promise<Catalogue>}
 */
export function fetchCatalogue(address, script) {
  const url = address.replace("*", script.replace("/", "-"));
  const request = requested.get(url) ?? fetchFrom(url);
  requested.set(url, request);
  return request;
}

/** @param {string} url @returns {Promise<Catalogue>} */
async function fetchFrom(url) {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return await response.json();
  } catch (error) {
    console.warn("Texts can’t be loaded:", url, error);
    return { texts: {}, plurals: {} };
  }
}
