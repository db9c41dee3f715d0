/**
 * The element that the template is known to have.
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {HTMLElement}
 */
export function element(root, selector) {
  const found = root.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`the page has no ${selector}`);
  return found;
}
