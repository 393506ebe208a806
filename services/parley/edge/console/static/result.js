// What a debate came to: the answer first, then how sure it is, how it came about, and all that was said.

import { createText } from "./agent_text.js";
import { ApiError, call, watch } from "./api.js";
import { CardView, toAnchor } from "./cards.js";
import { createBar, createCritiqueGraph, createLine } from "./charts.js";
import { DebateLog } from "./debate_log.js";
import { h, replace } from "./dom.js";
import { printable, probability, words } from "./text.js";

/** @param {import("./app.js").Page} page */
export async function open(page) {
  const { main, signal, setTitle } = page;
  const [debateId] = page.parts;
  const { debate } = await call("GetDebate", { debateId, view: "DEBATE_VIEW_SUMMARY" }, signal);
  const question = printable(debate.spec?.question ?? debateId);
  setTitle(question.slice(0, 80));
  if (debate.status !== "DEBATE_STATUS_COMPLETED") {
    const watched = h("a", { href: `/debates/${encodeURIComponent(debateId)}` }, "Watch the debate");
    replace(main, h("h1", {}, h("bdi", {}, question)), h("p", {}, "There is no answer yet. ", watched));
    return;
  }
  const answer = await call("GetAnswer", { debateId }, signal);
  const log = new DebateLog();
  /** @type {Map<number, number>} */
  const agreement = new Map();
  const later = h("div", {}, h("p", { class: "hint" }, "Reading what was said …"));
  replace(
    main,
    h("h1", {}, h("bdi", {}, question)),
    h("p", {}, h("a", { href: `/debates/${encodeURIComponent(debateId)}` }, "How the debate went")),
    debate.imported ? h("p", { class: "hint" }, describeImport(debate.imported)) : null,
    h("section", { class: "answer", "aria-label": "The answer" }, h("h2", {}, "Answer"), createText(answer.markdown ?? "")),
    createDownloads(debate, page),
    later,
  );
  watch(
    debateId,
    {
      onEvent: (event) => {
        log.apply(event);
        readAgreement(agreement, event);
      },
      onEnd: () => {
        replace(later, ...createRest(debateId, log, agreement, answer, signal));
        if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
      },
      onError: (error) => replace(later, h("p", { class: "failure", role: "alert" }, error.message)),
    },
    signal,
  );
}

/**
 * @param {any} imported
 * @returns {string}
 */
function describeImport({ importedBy, importTime, keyId }) {
  const by = importedBy ? ` by ${printable(importedBy)}` : "";
  return `Imported from another system${by} on ${importTime.slice(0, 10)}, to be read only. The key ${printable(keyId)} signed its receipt.`;
}

/**
 * Note how many percent of the agents agreed in a round, where a step has found it out.
 * @param {Map<number, number>} agreement
 * @param {any} event
 */
function readAgreement(agreement, event) {
  const { work, value } = event.stepSucceeded ?? {};
  if (!work?.round || !value) return;
  if (typeof value.agreementPercent === "number") agreement.set(work.round, value.agreementPercent);
  else if (value.groups?.length) {
    const sizes = value.groups.map((/** @type {any} */ each) => each.agentIds.length);
    const all = sizes.reduce((/** @type {number} */ sum, /** @type {number} */ each) => sum + each, 0);
    agreement.set(work.round, (100 * Math.max(...sizes)) / all);
  }
}

/**
 * @param {string} debateId
 * @param {DebateLog} log
 * @param {Map<number, number>} agreement
 * @param {any} answer
 * @param {AbortSignal} signal
 * @returns {(Node | null)[]}
 */
function createRest(debateId, log, agreement, answer, signal) {
  const { effect } = log.outcome ?? {};
  return [
    effect ? createDecision(effect, log) : null,
    createAgreement(agreement),
    createGraph(log),
    createOnDemand("What the answer rests on", async () => (await call("GetAnalysis", { debateId }, signal)).markdown),
    answer.process ? h("details", {}, h("summary", {}, "How the answer came about"), createText(answer.process)) : null,
    createSources(log),
    createArguments(log),
  ];
}

/**
 * Why it is not known who takes which position, each reason once.
 * @param {string | undefined} first
 * @param {string | undefined} last
 * @returns {Node[]}
 */
function createUnknown(first, last) {
  if (first && first === last) return [h("p", {}, "Who takes which position, at first and in the end, cannot be told: ", printable(first))];
  return [
    ...(first ? [h("p", {}, "How the first drafts vote cannot be told: ", printable(first))] : []),
    ...(last ? [h("p", {}, "Which positions the agents take in the end cannot be told: ", printable(last))] : []),
  ];
}

/**
 * @param {any} effect
 * @param {DebateLog} log
 */
function createDecision(effect, log) {
  const confidence = effect.confidence ?? {};
  const drafts = confidence.byFirstDrafts ? "first drafts" : "final proposals";
  const sure = [
    confidence.percent === undefined ? "" : probability(confidence.percent),
    confidence.votesCast ? `${confidence.votes ?? 0} of ${confidence.votesCast} ${drafts} are for it` : "",
    confidence.unknown ?? "",
  ];
  const comparison = words(effect.comparison, "DECISION_COMPARISON_");
  return h(
    "section",
    { "aria-label": "What was decided" },
    h("h2", {}, "What was decided, and how sure"),
    h("p", {}, "How sure: ", printable(sure.filter(Boolean).join("; ") || "not known"), confidence.judgeWord ? `; the judge says ${printable(confidence.judgeWord)}` : ""),
    comparison ? h("p", {}, COMPARISONS[/** @type {keyof typeof COMPARISONS} */ (comparison)] ?? "") : null,
    ...createUnknown(effect.firstVoteUnknown, effect.lastVoteUnknown),
    h(
      "ol",
      { class: "positions" },
      (effect.positions ?? []).map((/** @type {any} */ each, /** @type {number} */ index) =>
        h(
          "li",
          { class: effect.decidedPosition === index + 1 ? "decided" : null },
          h("p", {}, h("bdi", {}, printable(each.text ?? "")), effect.decidedPosition === index + 1 ? h("strong", {}, " (decided)") : null),
          effect.firstVoteUnknown ? null : createBar(each.firstShare ?? 0, "of the first drafts"),
          effect.lastVoteUnknown ? null : createBar(each.lastShare ?? 0, `in the end${each.lastAgentIds?.length ? `: ${each.lastAgentIds.map((/** @type {string} */ id) => printable(log.name(id))).join(", ")}` : ""}`),
          each.ballots ? h("p", { class: "hint" }, `${each.ballots} ballots`) : null,
        ),
      ),
    ),
    effect.changes?.length
      ? h(
          "p",
          {},
          "Changed position: ",
          effect.changes.map((/** @type {any} */ each) => `${printable(log.name(each.agentId))}${each.round ? ` in round ${each.round}` : ""}`).join(", "),
        )
      : null,
  );
}

const COMPARISONS = {
  same: "The first drafts would have decided the same.",
  other: "The first drafts would have decided otherwise.",
  "tie broken": "The first drafts were tied.",
};

/** @param {Map<number, number>} agreement */
function createAgreement(agreement) {
  if (agreement.size === 0) return null;
  const rounds = [...agreement].sort(([one], [other]) => one - other);
  const text = rounds.map(([round, percent]) => `round ${round}: ${Math.round(percent)} %`).join(", ");
  return h(
    "section",
    { "aria-label": "Agreement" },
    h("h2", {}, "Agreement over the rounds"),
    rounds.length > 1 ? createLine(rounds.map(([, percent]) => percent), text, { min: 0, max: 100, width: 340, height: 80 }) : null,
    h("p", { class: "hint" }, text),
  );
}

/** @param {DebateLog} log */
function createGraph(log) {
  /** @type {Map<string, import("./charts.js").CritiqueEdge>} */
  const edges = new Map();
  for (const card of log.cards.values()) {
    const issues = card.reply?.critique?.issues ?? [];
    if (!card.targetAgentId || issues.length === 0) continue;
    const key = `${card.agentId} ${card.targetAgentId}`;
    const edge = edges.get(key) ?? { critic: log.name(card.agentId), target: log.name(card.targetAgentId), issues: 0, severity: 0 };
    edge.issues += issues.length;
    edge.severity = Math.max(edge.severity, ...issues.map((/** @type {any} */ each) => each.severity ?? 0));
    edges.set(key, edge);
  }
  if (edges.size === 0) return null;
  const agents = [...new Set([...edges.values()].flatMap((each) => [each.critic, each.target]))];
  return h("section", { "aria-label": "Critiques" }, h("h2", {}, "Who criticized whom"), createCritiqueGraph(agents, [...edges.values()]));
}

/** @param {DebateLog} log */
function createSources(log) {
  const notes = log.stages.flatMap((each) => each.notes).filter((each) => each.kind === "sources");
  if (notes.length === 0) return null;
  return h("section", { "aria-label": "Sources" }, h("h2", {}, "Sources"), h("ul", {}, notes.map((each) => h("li", {}, printable(each.text)))));
}

/** @param {DebateLog} log */
function createArguments(log) {
  return h(
    "section",
    { "aria-label": "All that was said" },
    h("h2", {}, "All that was said"),
    log.stages
      .filter((stage) => stage.cards.length > 0)
      .map((stage) =>
        h(
          "details",
          { open: stage.cards.some((card) => location.hash === `#${toAnchor(card.key)}`) },
          h("summary", {}, stage.title),
          h("div", { class: "lanes" }, stage.cards.map((card) => new CardView(card, log).element)),
        ),
      ),
  );
}

/**
 * Return a section whose text is asked for when it is opened.
 * @param {string} title
 * @param {() => Promise<string>} read
 */
function createOnDemand(title, read) {
  const body = h("div", {}, h("p", { class: "hint" }, "Asking …"));
  return h(
    "details",
    {
      ontoggle: async (/** @type {Event} */ event) => {
        const details = /** @type {HTMLDetailsElement} */ (event.target);
        if (!details.open || details.dataset.read) return;
        details.dataset.read = "true";
        try {
          const text = await read();
          replace(body, text ? createText(text) : h("p", { class: "hint" }, "Nothing was found out."));
        } catch (error) {
          delete details.dataset.read;
          replace(body, h("p", { class: "failure" }, error instanceof Error ? error.message : String(error)));
        }
      },
    },
    h("summary", {}, title),
    body,
  );
}

/**
 * @param {any} debate
 * @param {import("./app.js").Page} page
 */
function createDownloads({ id: debateId, spec }, { signal, notify }) {
  /**
   * @param {string} text
   * @param {string} name
   * @param {string} type
   * @param {() => Promise<string>} read
   */
  const download = (text, name, type, read) => {
    const start = async () => {
      try {
        save(name, type, await read());
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        notify(error.message);
      }
    };
    return h("button", { type: "button", onclick: start }, text);
  };
  const readReport = async () => (await call("GetReport", { debateId }, signal)).markdown ?? "";
  const readReceipt = async () => (await call("GetReceipt", { debateId }, signal)).receipt ?? "";
  const readDecision = async () => (await call("GetDecision", { debateId }, signal)).markdown ?? "";
  const readDebate = async () => JSON.stringify((await call("GetDebate", { debateId }, signal)).debate, null, 2);
  return h(
    "div",
    { class: "buttons", role: "group", "aria-label": "Download" },
    h("a", { class: "button", href: `/v1/debates/${encodeURIComponent(debateId)}/report.html`, download: `${debateId}.html` }, "Report (one HTML file)"),
    download("Report (Markdown)", `${debateId}.md`, "text/markdown", readReport),
    spec?.format?.startsWith("moderated") ? download("Decision (Markdown)", `${debateId}-decision.md`, "text/markdown", readDecision) : null,
    download("Receipt (signed)", `${debateId}.receipt.json`, "application/json", readReceipt),
    download("Debate (JSON)", `${debateId}.json`, "application/json", readDebate),
  );
}

/**
 * @param {string} name
 * @param {string} type
 * @param {string} content
 */
function save(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
