// What the pages of memory have in common: quotations, links, dates, and how clear and sure a decision was.

import { h } from "./dom.js";
import { printable, probability, words } from "./text.js";

const MAX_LINK = 300;

/** @param {string} before @param {string} [text] what an agent wrote */
export function createQuote(before, text = "") {
  return h("p", {}, printable(before), h("bdi", {}, printable(text)));
}

/** @param {string} debateId @param {string} [text] */
export function createLink(debateId, text = "") {
  return h("a", { href: `/debates/${encodeURIComponent(debateId)}` }, h("bdi", {}, printable(text).slice(0, MAX_LINK) || debateId));
}

/** @param {string} time */
export function createDate(time) {
  return h("time", { datetime: time, title: time }, time.slice(0, 10));
}

/** @param {(Node | string)[]} facts */
export function createFacts(facts) {
  return h("p", { class: "meta" }, facts.filter(Boolean).flatMap((each, index) => (index ? [", ", each] : [each])));
}

/** When a debate decided, how clearly, and how sure that is. @param {any} debate @returns {(Node | string)[]} */
export function listDecisionFacts(debate) {
  const { percent, votes = 0, votesCast } = debate.confidence ?? {};
  const strength = words(debate.strength, "VOTE_STRENGTH_");
  return [
    createDate(debate.concludedAt),
    ["strong", "moderate", "weak"].includes(strength) ? `${strength} agreement` : strength,
    percent === undefined ? "" : `${probability(percent)} sure`,
    votesCast ? `${votes} of ${votesCast} votes` : "",
  ];
}

/** @param {any} related how a decision stands to an earlier one */
export function createRelated({ debateId, decidedAt, decision, relation, reason }) {
  const said = RELATIONS[/** @type {keyof typeof RELATIONS} */ (relation)] ?? "Is about";
  return h(
    "p",
    {},
    `${said} the decision of `,
    createLink(debateId, decidedAt?.slice(0, 10)),
    ": ",
    h("bdi", {}, printable(decision ?? "")),
    reason ? [" Why: ", h("bdi", {}, printable(reason))] : null,
  );
}

const RELATIONS = {
  DECISION_RELATION_CONFIRMS: "Confirms",
  DECISION_RELATION_REFINES: "Refines",
  DECISION_RELATION_REVERSES: "Reverses",
  DECISION_RELATION_OTHER_MATTER: "Is about another matter than",
};

/** @param {boolean} [isFor] undefined: not known */
export function describeSide(isFor) {
  if (isFor === undefined) return "";
  return isFor ? " (for the decision)" : " (against it)";
}
