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

/**
 * A copy of a template's one element, with ids of its own.
 * @param {ParentNode} root
 * @param {string} selector of the template
 * @param {string} number what takes the place of NUMBER in ids and in what refers to them
 * @returns {HTMLElement}
 */
export function stamp(root, selector, number) {
  const template = element(root, selector);
  if (!(template instanceof HTMLTemplateElement)) throw new Error(`${selector} is no template`);
  const copy = document.importNode(template.content, true).firstElementChild;
  if (!(copy instanceof HTMLElement)) throw new Error(`${selector} is empty`);
  for (const part of [copy, ...copy.querySelectorAll("*")]) {
    for (const name of ["id", "for", "aria-describedby", "data-row"]) {
      const value = part.getAttribute(name);
      if (value) part.setAttribute(name, value.replaceAll("NUMBER", number));
    }
  }
  return copy;
}
