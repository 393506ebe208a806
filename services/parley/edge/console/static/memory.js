// What past debates decided, searched by meaning; and below it where agents stood, what they criticized and what stands out.

import { createText } from "./agent_text.js";
import { call, collect } from "./api.js";
import { h, replace } from "./dom.js";
import { printable, probability, words } from "./text.js";

const PAGE_SIZE = 20;
const MAX_LINK = 300;

/** Each with the field of the answer in which the items are, and what is said without any. */
const LISTS = [
  { title: "Positions", method: "ListMemoryPositions", field: "positions", createItem: createPosition, none: "No agent's position is known yet." },
  { title: "Critique patterns", method: "ListMemoryPatterns", field: "patterns", createItem: createPattern, none: "No kind of issue is known yet: debates raise them in critiques." },
  { title: "Moments", method: "ListMemoryMoments", field: "moments", createItem: createMoment, none: "No moment is known: debates leave one if a lone dissenter wins, all change their minds, or a decision is reversed." },
];

/** @param {import("./app.js").Page} page */
export async function open(page) {
  page.setTitle("Memory");
  replace(page.main, h("h1", {}, "Memory"), ...createSearch(page));
  page.main.append(...(await Promise.all(LISTS.map((each) => createList(each, page)))));
}

/** @param {import("./app.js").Page} page */
function createSearch({ signal }) {
  const text = /** @type {HTMLInputElement} */ (h("input", { id: "search", type: "search", required: true, placeholder: "A question, or words of one" }));
  const found = h("div", { "aria-live": "polite" });
  let latest = 0;
  /** @param {Event} event */
  const search = async (event) => {
    event.preventDefault();
    const number = ++latest;
    const shown = await find(text.value, signal);
    if (number === latest) replace(found, shown);
  };
  return [
    h("form", { class: "filters", role: "search", onsubmit: search }, h("label", { for: "search" }, "Past debates about"), text, h("button", {}, "Search")),
    found,
  ];
}

/** @param {string} text @param {AbortSignal} signal */
async function find(text, signal) {
  try {
    const found = await collect("SearchMemory", { text }, signal);
    if (found.length === 0) return h("p", { class: "hint" }, "Nothing like it is remembered; use other words.");
    return h("ol", { class: "positions", "aria-label": "Past debates" }, found.map(({ debate }) => createFound(debate)));
  } catch (error) {
    return h("p", { class: "failure", role: "alert" }, error instanceof Error ? error.message : String(error));
  }
}

/**
 * @param {typeof LISTS[number]} list
 * @param {import("./app.js").Page} page
 */
async function createList({ title, method, field, createItem, none }, { signal, notify }) {
  const items = h("ol", { class: "positions", "aria-label": title });
  const more = h("button", { type: "button", onclick: () => loadMore() }, `More ${title.toLowerCase()}`);
  let pageToken = "";
  const load = async () => {
    const page = await call(method, { pageSize: PAGE_SIZE, pageToken }, signal);
    items.append(...(page[field] ?? []).map(createItem));
    pageToken = page.nextPageToken ?? "";
    more.hidden = !pageToken;
  };
  const loadMore = () => {
    more.hidden = true; // a second click would load the same page
    load().catch((error) => {
      more.hidden = false;
      if (!signal.aborted) notify(error.message);
    });
  };
  await load();
  const isEmpty = !items.hasChildNodes() && !pageToken;
  return h("section", {}, h("h2", {}, title), isEmpty ? h("p", { class: "hint" }, none) : items, more);
}

/** @param {any} debate */
function createFound(debate) {
  const { percent, votes = 0, votesCast } = debate.confidence ?? {};
  const strength = words(debate.strength, "VOTE_STRENGTH_");
  return h(
    "li",
    {},
    h("p", {}, createLink(debate.debateId, debate.question)),
    createFacts([
      createDate(debate.concludedAt),
      ["strong", "moderate", "weak"].includes(strength) ? `${strength} agreement` : strength,
      percent === undefined ? "" : `${probability(percent)} sure`,
      votesCast ? `${votes} of ${votesCast} votes` : "",
      `${Math.round(debate.relevance?.similarityPercent ?? 0)} % alike`,
    ]),
    createText(debate.conclusion ?? "", { folds: true }),
    (debate.dissents ?? []).map((/** @type {any} */ each) => createQuote(`Against it: ${each.agentId}: `, each.text)),
  );
}

/** @param {any} position */
function createPosition(position) {
  const side = position.forDecision === undefined ? "" : position.forDecision ? " (for the decision)" : " (against it)";
  return h(
    "li",
    {},
    createQuote(`${position.agentName || position.agentId}${side}: `, position.stand),
    createFacts([createDate(position.concludedAt), printable(position.domain ?? ""), createLink(position.debateId, position.question)]),
    (position.changes ?? []).flatMap(createChange),
  );
}

/** Stands that are not opposed are not worth a line. @param {any} change */
function createChange(change) {
  const isFlip = change.outcome === "FLIP_OUTCOME_FLIP";
  if (!isFlip && change.outcome !== "FLIP_OUTCOME_UNKNOWN") return [];
  const earlier = h("p", {}, isFlip ? "Flip from " : "Perhaps a flip, from ", createLink(change.earlierDebateId, change.earlierConcludedAt.slice(0, 10)), ": ", h("bdi", {}, printable(change.earlierStand ?? "")));
  return isFlip ? [earlier, createSettlement(change.settlement)] : [earlier];
}

/** @param {any} settled */
function createSettlement(settled) {
  if (!settled) return h("p", {}, "Open: no later decision and no feedback has settled it");
  const side = `, for the ${settled.tookLaterSide ? "later" : "earlier"} side${settled.approved ? ", and found good" : ""}`;
  return h("p", {}, "Settled on ", createLink(settled.debateId, settled.concludedAt.slice(0, 10)), side);
}

/** @param {any} pattern */
function createPattern(pattern) {
  const [first, ...others] = pattern.examples ?? [];
  const critics = (pattern.critics ?? []).map((/** @type {any} */ each) => `${printable(each.agentId)} (${each.raised ?? 0})`).join(", ");
  return h(
    "li",
    {},
    createQuote("", first ?? "(no example)"),
    createFacts([
      `raised ${times(pattern.raised)} in ${pattern.debates} debate${pattern.debates === 1 ? "" : "s"}`,
      pattern.takenUp ? `taken up ${times(pattern.takenUp)}` : "never taken up",
      pattern.severity === undefined ? "" : `severity ${pattern.severity.toFixed(1)}`,
      critics && `by ${critics}`,
      printable(pattern.domain ?? ""),
      createDate(pattern.latestAt),
    ]),
    others.map((/** @type {string} */ each) => createQuote("Also: ", each)),
  );
}

/** @param {any} moment */
function createMoment(moment) {
  return h(
    "li",
    {},
    h("p", {}, createDate(moment.concludedAt), " ", h("strong", {}, words(moment.kind, "MOMENT_KIND_"))),
    createQuote("", moment.text),
    createFacts([createLink(moment.debateId, "The debate"), moment.earlierDebateId ? createLink(moment.earlierDebateId, "The decision that it reverses") : ""]),
  );
}

/** @param {string} before @param {string} [text] what an agent wrote */
function createQuote(before, text = "") {
  return h("p", {}, printable(before), h("bdi", {}, printable(text)));
}

/** @param {string} debateId @param {string} [text] */
function createLink(debateId, text = "") {
  return h("a", { href: `/debates/${encodeURIComponent(debateId)}` }, h("bdi", {}, printable(text).slice(0, MAX_LINK) || debateId));
}

/** @param {string} time */
function createDate(time) {
  return h("time", { datetime: time, title: time }, time.slice(0, 10));
}

/** @param {(Node | string)[]} facts */
function createFacts(facts) {
  return h("p", { class: "meta" }, facts.filter(Boolean).flatMap((each, index) => (index ? [", ", each] : [each])));
}

/** @param {number} count */
const times = (count) => (count === 1 ? "once" : `${count} times`);
