// All that is remembered of a debate, nothing shortened; and forgetting it.

import { createText } from "./agent_text.js";
import { ApiError, call } from "./api.js";
import { button, h, replace } from "./dom.js";
import { createFacts, createLink, createQuote, createRelated, describeSide, listDecisionFacts } from "./memory_parts.js";
import { printable, words } from "./text.js";

const WHAT_IS_LOST =
  "Forget this debate for good?\n\n" +
  "Lost: all of this page, and what the debate adds to positions, critique patterns and moments. No search finds it, and no later debate is shown it.\n\n" +
  "Kept: the debate itself with its result. Debates that were shown it before keep what they were shown.";

/** @param {import("./app.js").Page} page */
export async function open(page) {
  const { main, parts, signal, setTitle } = page;
  const [debateId] = parts;
  setTitle("Memory");
  try {
    const found = await call("GetMemory", { debateId }, signal);
    const question = printable(found.debate.question ?? "");
    setTitle(question.slice(0, 80));
    replace(main, h("h1", {}, h("bdi", {}, question)), ...createRecord(found), found.mayForget ? createForgetting(debateId, page) : null);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "not_found") throw error;
    const why = "It has not ended, left nothing, or is forgotten. ";
    replace(main, h("h1", {}, "Nothing is remembered of this debate"), h("p", {}, why, createLink(debateId, "The debate itself")));
  }
}

/** @param {any} found @returns {(Node | null)[]} */
function createRecord({ debate, stands = [], issues = [] }) {
  const { debateId, domain = "", confidence = {}, conclusion = "", related = [], dissents = [], evidence = [] } = debate;
  return [
    createFacts([...listDecisionFacts(debate), printable(domain), createLink(debateId, "The debate")]),
    confidence.percent === undefined && confidence.unknown ? createQuote("How sure is not known: ", confidence.unknown) : null,
    h("section", { class: "answer", "aria-label": "What was decided" }, h("h2", {}, "What was decided"), createText(conclusion)),
    createSection("Earlier decisions", related.map(createRelated)),
    createSection("Against the decision", dissents.map((/** @type {any} */ each) => createQuote(`${each.agentId}: `, each.text))),
    createSection("What it rests on", evidence.map((/** @type {any} */ each) => [createQuote("", each.text), createQuote("Source: ", each.source)])),
    createSection("Where agents stood", stands.map(createStand)),
    createSection("Issues", issues.map(createIssue)),
  ];
}

/** @param {string} title @param {(Node | (Node | null)[])[]} items */
function createSection(title, items) {
  if (items.length === 0) return null;
  return h("section", { "aria-label": title }, h("h2", {}, title), h("ul", { class: "positions" }, items.map((each) => h("li", {}, each))));
}

/** @param {any} stand */
function createStand({ agentId, agentName, text, forDecision, firstText, firstForDecision }) {
  const first = firstText && firstText !== text ? createQuote(`At first${describeSide(firstForDecision)}: `, firstText) : null;
  return [createQuote(`${agentName || agentId}${describeSide(forDecision)}: `, text), first];
}

/** @param {any} recorded */
function createIssue({ criticAgentId, targetAgentId, issue, status, reason }) {
  const severity = issue.severity === undefined ? "" : `, severity ${issue.severity}`;
  const outcome = words(status, "ISSUE_STATUS_");
  return [
    createQuote(`${criticAgentId} to ${targetAgentId}${severity}: `, issue.text),
    issue.suggestion ? createQuote("To change: ", issue.suggestion) : null,
    outcome || reason ? createQuote(outcome && `${outcome[0].toUpperCase()}${outcome.slice(1)}${reason ? ": " : ""}`, reason) : null,
  ];
}

/**
 * @param {string} debateId
 * @param {import("./app.js").Page} page
 */
function createForgetting(debateId, { signal, go, notify }) {
  const problem = h("p", { class: "failure", role: "alert", hidden: true });
  const forget = async () => {
    if (!confirm(WHAT_IS_LOST)) return;
    problem.hidden = true;
    try {
      const { existed } = await call("ForgetMemory", { debateId }, signal);
      notify(existed ? "The debate is forgotten." : "The debate was forgotten before.");
      go("/memory");
    } catch (error) {
      if (signal.aborted) return;
      replace(problem, error instanceof Error ? error.message : String(error));
      problem.hidden = false;
    }
  };
  return h("section", { "aria-label": "Forget it" }, h("h2", {}, "Forget it"), h("div", { class: "buttons" }, button("Forget this debate", forget, "danger")), problem);
}
