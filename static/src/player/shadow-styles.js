/**
 * Fills the shadow roots of media-chrome's elements without a <style> element in them.
 *
 * The content security policy allows the site's own style sheets and nothing inline, and a <style>
 * in a shadow root is inline. Loosening the policy for it ('unsafe-inline') would loosen it for
 * everything; hashes of some thirty style elements would swell the header of every page and break
 * with every new version. Constructed sheets are made by script that is trusted already, so the
 * policy lets them be, and elements of one kind share them. build.mjs directs media-chrome here.
 */

/** @type {Map<string, CSSStyleSheet>} a sheet for each text, shared by all elements of a kind */
const shared = new Map();
/** @type {WeakMap<ShadowRoot, CSSStyleSheet>} rules that one element has set for itself */
const own = new WeakMap();

/**
 * Takes the place of `root.innerHTML = html`.
 * @param {ShadowRoot} root
 * @param {string} html
 */
export function fillShadow(root, html) {
  const template = document.createElement("template");
  template.innerHTML = html; // inert: nothing in it is applied, or complained of
  // Nested elements make their own shadow roots when they are upgraded.
  for (const nested of template.content.querySelectorAll("template[shadowrootmode]")) {
    nested.remove();
  }
  const sheets = [...template.content.querySelectorAll("style")].map(takeOut);
  const last = new CSSStyleSheet();
  own.set(root, last);
  root.adoptedStyleSheets = [...sheets.filter((sheet) => sheet !== null), last];
  root.replaceChildren(document.importNode(template.content, true));
}

/**
 * @param {HTMLStyleElement} style
 * @returns {CSSStyleSheet | null}
 */
function takeOut(style) {
  if (style.media) {
    // The row layout of menus, which is switched by this attribute and not used here.
    const standIn = document.createElement("template");
    standIn.id = style.id;
    style.replaceWith(standIn);
    return null;
  }
  style.remove();
  const text = style.textContent ?? "";
  const known = shared.get(text);
  if (known) return known;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  shared.set(text, sheet);
  return sheet;
}

/**
 * Takes the place of the function of this name in media-chrome. The rules found are the element's
 * own, never those it shares.
 * @param {ShadowRoot} root
 * @param {string} selector
 */
export function getOrInsertCSSRule(root, selector) {
  return getCSSRule(root, (text) => text === selector) ?? insertCSSRule(root, selector);
}

/**
 * @param {ShadowRoot} root
 * @param {(selector: string) => boolean} matches
 * @returns {CSSStyleRule | undefined}
 */
export function getCSSRule(root, matches) {
  for (const rule of own.get(root)?.cssRules ?? []) {
    if (rule instanceof CSSStyleRule && matches(rule.selectorText)) return rule;
  }
  return undefined;
}

/**
 * @param {ShadowRoot} root
 * @param {string} selector
 * @returns {CSSRule | undefined}
 */
export function insertCSSRule(root, selector) {
  const sheet = own.get(root);
  if (!sheet) throw new Error("this shadow root was not filled here");
  return sheet.cssRules[sheet.insertRule(`${selector}{}`, sheet.cssRules.length)];
}
