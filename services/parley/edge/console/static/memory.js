// What past debates decided, searched by meaning; and below it where agents stood, what they criticized and what stands out.

import { createText } from "./agent_text.js";
import { collect } from "./api.js";
import { h, replace } from "./dom.js";
import { FilteredList } from "./filtered_list.js";
import { createFilters } from "./filters.js";
import { createDate, createFacts, createLink, createQuote, createRelated, describeSide, listDecisionFacts } from "./memory_parts.js";
import { printable, words } from "./text.js";

const MAX_RELATED = 2;
const DOMAIN = { maxlength: 64, placeholder: "any" };

/** @type {import("./filters.js").Field[]} */
const SEARCH = [
  { name: "about", key: "text", label: "Past debates about", input: { type: "search", required: true, placeholder: "A question, or words of one" } },
  { name: "domain", key: "domain", label: "Domain", input: DOMAIN },
  { name: "most", key: "limit", label: "At most", input: { type: "number", min: 1, max: 100, placeholder: 10 } },
];

/** @type {import("./filtered_list.js").Kind[]} */
const LISTS = [
  {
    title: "Positions",
    method: "ListMemoryPositions",
    field: "positions",
    filters: [
      { name: "agent", key: "agentId", label: "Agent", input: { placeholder: "its id" } },
      { name: "flips", key: "onlyFlips", label: "Only flips", input: { type: "checkbox" } },
    ],
    createItem: createPosition,
    none: "No agent's position is known yet.",
  },
  {
    title: "Critique patterns",
    method: "ListMemoryPatterns",
    field: "patterns",
    filters: [
      { name: "issue", key: "text", label: "Like", input: { type: "search", placeholder: "Words of an issue" } },
      { name: "issue-domain", key: "domain", label: "Domain", input: DOMAIN },
      { name: "related", key: "onlyRelated", label: "Only those on its matter", input: { type: "checkbox" } },
      { name: "taken-up", key: "onlySuccessful", label: "Only those taken up every second time or more", input: { type: "checkbox" } },
    ],
    createItem: createPattern,
    none: "No kind of issue is known yet: debates raise them in critiques.",
  },
  {
    title: "Moments",
    method: "ListMemoryMoments",
    field: "moments",
    filters: [
      {
        name: "kind",
        key: "kind",
        label: "Kind",
        choices: [
          { value: "", label: "any", sent: "" },
          { value: "lone-dissenter-won", label: "lone dissenter won", sent: "MOMENT_KIND_LONE_DISSENTER_WON" },
          { value: "unanimous-flip", label: "unanimous flip", sent: "MOMENT_KIND_UNANIMOUS_FLIP" },
          { value: "reversal", label: "reversal", sent: "MOMENT_KIND_REVERSAL" },
        ],
      },
    ],
    createItem: createMoment,
    none: "No moment is known: debates leave one if a lone dissenter wins, all change their minds, or a decision is reversed.",
  },
];

/** @param {import("./app.js").Page} page */
export async function open({ main, signal, setTitle }) {
  setTitle("Memory");
  const lists = LISTS.map((each) => new FilteredList(each, signal));
  replace(main, h("h1", {}, "Memory"), ...createSearch(signal));
  await Promise.all(lists.map((each) => each.open()));
  main.append(...lists.map((each) => each.element));
}

/** @param {AbortSignal} signal */
function createSearch(signal) {
  const found = h("div", { "aria-live": "polite" });
  let latest = 0;
  const search = async () => {
    const number = ++latest;
    const shown = await find(form.read(), signal);
    if (number === latest) replace(found, shown);
  };
  const form = createFilters(SEARCH, "Search", { role: "search" }, search);
  if (form.read().text) search();
  return [form.element, found];
}

/** @param {Record<string, any>} asked @param {AbortSignal} signal */
async function find(asked, signal) {
  try {
    const found = await collect("SearchMemory", asked, signal);
    const wider = asked.domain ? "use other words, or another domain" : "use other words";
    if (found.length === 0) return h("p", { class: "hint" }, `Nothing like it is remembered; ${wider}.`);
    return h("ol", { class: "positions", "aria-label": "Past debates" }, found.map(({ debate }) => createFound(debate)));
  } catch (error) {
    return h("p", { class: "failure", role: "alert" }, error instanceof Error ? error.message : String(error));
  }
}

/** @param {any} debate */
function createFound(debate) {
  const onMatter = (debate.related ?? []).filter((/** @type {any} */ each) => each.relation !== "DECISION_RELATION_OTHER_MATTER");
  return h(
    "li",
    {},
    h("p", {}, createLink(debate.debateId, debate.question)),
    createFacts([...listDecisionFacts(debate), `${Math.round(debate.relevance?.similarityPercent ?? 0)} % alike`]),
    createText(debate.conclusion ?? "", { folds: true }),
    (debate.dissents ?? []).map((/** @type {any} */ each) => createQuote(`Against it: ${each.agentId}: `, each.text)),
    onMatter.slice(0, MAX_RELATED).map(createRelated),
    h("p", {}, h("a", { href: `/memory/${encodeURIComponent(debate.debateId)}` }, "All that is remembered of it")),
  );
}

/** @param {any} position */
function createPosition(position) {
  return h(
    "li",
    {},
    createQuote(`${position.agentName || position.agentId}${describeSide(position.forDecision)}: `, position.stand),
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
      pattern.similarityPercent === undefined ? "" : `${Math.round(pattern.similarityPercent)} % alike`,
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

/** @param {number} count */
const times = (count) => (count === 1 ? "once" : `${count} times`);
