/**
 * Lifecycle of behaviours: each starts once on an element, and stops when the element leaves the
 * page. An AbortSignal stops a behaviour and removes its listeners.
 */

import { loadMessages } from "./messages.js";

/** @typedef {(element: HTMLElement, signal: AbortSignal) => unknown} Start */
/** @typedef {{ selector: string, start: Start }} Behaviour */

/** Running behaviours by their element. @type {Map<HTMLElement, Map<Behaviour, AbortController>>} */
const running = new Map();

/**
 * Stop behaviours of removed elements, then start the missing ones.
 * @param {ParentNode} root @param {readonly Behaviour[]} behaviours
 */
export function refresh(root, behaviours) {
  for (const [element, controllers] of running) {
    if (element.isConnected) continue;
    running.delete(element);
    for (const controller of controllers.values()) controller.abort();
  }
  for (const behaviour of behaviours) {
    for (const element of elementsMatching(root, behaviour.selector)) {
      const controllers = running.get(element) ?? new Map();
      if (controllers.has(behaviour)) continue;
      const controller = new AbortController();
      running.set(element, controllers.set(behaviour, controller));
      behaviour.start(element, controller.signal);
    }
  }
}

/**
 * Return the matching elements of a subtree, its root included.
 * @param {ParentNode} root @param {string} selector @returns {HTMLElement[]}
 */
function elementsMatching(root, selector) {
  const elements = [...root.querySelectorAll(selector)];
  if (root instanceof Element && root.matches(selector)) elements.unshift(root);
  return elements.filter((element) => element instanceof HTMLElement);
}

/**
 * Return a behaviour whose script, and the texts of it, are fetched when its element first appears.
 * @template {string} Name
 * @param {string} selector @param {string} script its path below src/, without the ending
 * @param {() => Promise<Record<Name, Start>>} load
 * @param {Name} name of the function that starts it @returns {Behaviour}
 */
export function lazyBehaviour(selector, script, load, name) {
  return {
    selector,
    async start(element, signal) {
      await loadMessages(script);
      const module = await loadScript(load);
      if (!signal.aborted) module[name](element, signal);
    },
  };
}

/**
 * Load a script. When that fails, the page says so, and offers another try. Some browsers remember
 * the failure as long as they show the page, so a second one reloads a page that can be reached.
 * @template T @param {() => Promise<T>} load @returns {Promise<T>}
 */
async function loadScript(load) {
  for (let failures = 1; ; failures += 1) {
    try {
      return await load();
    } catch {
      if (failures > 1 && (await canReload())) location.reload();
      await anotherTry();
    }
  }
}

/** Return whether the server answers with this page. */
async function canReload() {
  const request = fetch(location.href, { method: "HEAD", cache: "no-store" });
  return request.then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Wait until the viewer asks for another try, or the connection is back. */
async function anotherTry() {
  const message = document.querySelector("[data-load-trouble]");
  if (message instanceof HTMLElement) message.hidden = false;
  await new Promise((resolve) => {
    message?.querySelector("button")?.addEventListener("click", resolve, { once: true });
    addEventListener("online", resolve, { once: true });
  });
  if (message instanceof HTMLElement) message.hidden = true;
}
