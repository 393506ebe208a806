// Which page an address shows, and moving between them without loading all again.

import { ApiError } from "./api.js";
import { h, replace } from "./dom.js";

/**
 * @typedef {object} Page
 * @property {HTMLElement} main where the page is shown
 * @property {string[]} parts what the address names, such as the debate's id
 * @property {AbortSignal} signal aborted when the reader leaves
 * @property {(title: string) => void} setTitle
 * @property {(path: string) => void} go
 * @property {(text: string) => void} notify
 */

/**
 * @typedef {{open: (page: Page) => Promise<void> | void}} PageModule
 */

/** @type {[RegExp, () => Promise<PageModule>][]} */
const PAGES = [
  [/^\/$/, () => import("./debates.js")],
  [/^\/login$/, () => import("./login.js")],
  [/^\/new$/, () => import("./new.js")],
  [/^\/agents$/, () => import("./agents.js")],
  [/^\/memory$/, () => import("./memory.js")],
  [/^\/memory\/([^/]+)$/, () => import("./remembered.js")],
  [/^\/debates\/([^/]+)$/, () => import("./debate.js")],
  [/^\/debates\/([^/]+)\/result$/, () => import("./result.js")],
];

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const notices = /** @type {HTMLElement} */ (document.getElementById("notices"));
const signOut = /** @type {HTMLButtonElement} */ (document.getElementById("sign-out"));
let leaving = new AbortController();
let shown = "";

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const path = location.pathname;
  shown = path + location.search;
  signOut.hidden = path === "/login";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  replace(main);
  const found = findPage(path);
  if (found === null) {
    setTitle("Not found");
    replace(main, h("h1", {}, "There is no such page"), h("p", {}, h("a", { href: "/" }, "All debates")));
    return;
  }
  const { load, parts } = found;
  try {
    const page = await load();
    if (!signal.aborted) await page.open({ main, parts, signal, setTitle, go, notify });
  } catch (error) {
    if (!signal.aborted) showError(error);
  }
}

/**
 * @param {string} path
 * @returns {{load: () => Promise<PageModule>, parts: string[]} | null} null if it names no page
 */
function findPage(path) {
  for (const [pattern, load] of PAGES) {
    const match = pattern.exec(path);
    if (match === null) continue;
    try {
      return { load, parts: match.slice(1).map(decodeURIComponent) };
    } catch {
      return null; // a percent sign without the bytes of a character after it
    }
  }
  return null;
}

/** @param {unknown} error */
function showError(error) {
  if (error instanceof ApiError && error.status === 401) {
    go(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
    return;
  }
  const message = error instanceof Error ? error.message : String(error);
  main.append(
    h(
      "div",
      { class: "failure", role: "alert" },
      h("p", {}, message),
      h("button", { type: "button", onclick: show }, "Try again"),
    ),
  );
}

/** @param {string} title */
function setTitle(title) {
  document.title = `${title} · Parley`;
}

/** @param {string} path */
function go(path) {
  history.pushState(null, "", path);
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
  show();
}

/** @param {string} text */
function notify(text) {
  const notice = h("p", { class: "notice" }, text);
  notices.append(notice);
  setTimeout(() => notice.remove(), 8000);
}

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  const isPlain = !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button);
  if (!link || !isPlain || link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search + link.hash);
});
addEventListener("popstate", () => {
  if (location.pathname + location.search !== shown) show(); // a link within a page comes here too
});
signOut.addEventListener("click", async () => {
  const ended = await fetch("/console/oidc/end", { method: "POST" });
  await fetch("/console/session", { method: "DELETE" });
  const { address } = ended.ok ? await ended.json() : { address: "" };
  if (address) location.assign(address);
  else go("/login");
});

show();
