// All debates: newest first, searched, and up to date while one looks.

import { call } from "./api.js";
import { h, replace } from "./dom.js";
import { age, dollars, printable, words } from "./text.js";

const REFRESH_MS = 5000;
const STATUSES = ["PENDING", "RUNNING", "WAITING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"];

/** @param {import("./app.js").Page} page */
export async function open({ main, signal, setTitle }) {
  setTitle("Debates");
  const status = /** @type {HTMLSelectElement} */ (
    h(
      "select",
      { id: "status", onchange: () => reload() },
      h("option", { value: "" }, "any state"),
      STATUSES.map((each) => h("option", { value: `DEBATE_STATUS_${each}` }, each.toLowerCase())),
    )
  );
  const search = /** @type {HTMLInputElement} */ (
    h("input", { id: "search", type: "search", placeholder: "Question, format or label", oninput: () => draw() })
  );
  const rows = h("tbody");
  const empty = h("p", { class: "hint", hidden: true });
  const more = h("button", { type: "button", hidden: true, onclick: () => loadMore() }, "Older debates");
  /** @type {any[]} */
  let debates = [];
  let nextPage = "";
  replace(
    main,
    h("h1", {}, "Debates"),
    h(
      "div",
      { class: "filters" },
      h("label", { for: "search" }, "Search"),
      search,
      h("label", { for: "status" }, "State"),
      status,
      h("a", { class: "button primary", href: "/new" }, "New debate"),
    ),
    h(
      "table",
      { class: "debates" },
      h("thead", {}, h("tr", {}, ["State", "Question", "Format", "Cost", "Started"].map((each) => h("th", { scope: "col" }, each)))),
      rows,
    ),
    empty,
    more,
  );

  /** @param {string} [pageToken] */
  function list(pageToken = "") {
    return call("ListDebates", { pageToken, statuses: status.value ? [status.value] : [] }, signal);
  }

  async function reload() {
    const page = await list();
    const first = page.debates ?? [];
    const known = new Set(first.map((/** @type {any} */ each) => each.id));
    const oldest = first.at(-1)?.createTime ?? "";
    const isWhole = !page.nextPageToken || !nextPage;
    // Pages that were loaded before stay below.
    debates = isWhole ? first : [...first, ...debates.filter((each) => !known.has(each.id) && each.createTime <= oldest)];
    if (isWhole) nextPage = page.nextPageToken ?? "";
    draw();
  }

  async function loadMore() {
    const page = await list(nextPage);
    debates.push(...(page.debates ?? []));
    nextPage = page.nextPageToken ?? "";
    draw();
  }

  function draw() {
    const wanted = search.value.trim().toLowerCase();
    const shown = debates.filter((each) => toSearchText(each).includes(wanted));
    replace(rows, shown.map(toRow));
    more.hidden = !nextPage;
    empty.hidden = shown.length > 0;
    replace(empty, debates.length > 0 ? "No debate here has these words." : "There is no debate yet.");
  }

  await reload();
  const timer = setInterval(() => {
    if (!document.hidden) reload().catch(() => {}); // the next one may come through
  }, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/** Of a longer question a summary has the beginning. */
const SUMMARY_CHARACTERS = 200;

/** @param {any} debate */
function toQuestion(debate) {
  const question = debate.question ?? "";
  const dots = [...question].length < SUMMARY_CHARACTERS ? "" : "…";
  return printable(question) + dots || debate.id;
}

/** @param {any} debate */
function toSearchText(debate) {
  const labels = Object.entries(debate.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return [debate.question, debate.format, debate.id, ...labels].join(" ").toLowerCase();
}

/** @param {any} debate */
function toRow(debate) {
  const state = words(debate.status, "DEBATE_STATUS_");
  const labels = Object.entries(debate.labels ?? {});
  return h(
    "tr",
    {},
    h("td", {}, h("span", { class: "state", "data-state": state }, state)),
    h(
      "td",
      { class: "question" },
      h("a", { href: `/debates/${encodeURIComponent(debate.id)}` }, h("bdi", {}, toQuestion(debate))),
      debate.imported ? h("span", { class: "label" }, "imported") : null,
      labels.map(([name, value]) => h("span", { class: "label" }, printable(`${name}=${value}`))),
    ),
    h("td", {}, debate.format),
    h("td", { class: "number" }, debate.costMicros === undefined ? "" : dollars(Number(debate.costMicros))),
    h("td", {}, h("time", { datetime: debate.createTime, title: debate.createTime }, age(debate.createTime))),
  );
}
