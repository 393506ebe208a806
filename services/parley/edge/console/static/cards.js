// Cards: what an agent wrote in a step, critiques with their issues, and what became of each.

import { createText } from "./agent_text.js";
import { h, replace } from "./dom.js";
import { duration, printable, words } from "./text.js";

/** @typedef {import("./debate_log.js").Card} Card */
/** @typedef {import("./debate_log.js").DebateLog} DebateLog */

const TAIL = 4000;
const OUTCOMES = { "taken up": "good", rejected: "bad", "not answered": "warn" };

/** The element of a card, which follows what the card becomes. */
export class CardView {
  /**
   * @param {Card} card
   * @param {DebateLog} log
   */
  constructor(card, log) {
    this.card = card;
    this.log = log;
    this.body = h("div", { class: "card-body" });
    this.meta = h("p", { class: "meta" });
    this.stream = document.createTextNode("");
    /** @type {string} */
    this.drawn = "";
    const target = card.targetAgentId ? ` of ${log.name(card.targetAgentId)}` : "";
    const label = `${log.name(card.agentId)}: ${card.title}${target}`;
    this.element = h(
      "article",
      { class: card.targetAgentId ? "card critique" : "card", id: toAnchor(card.key), "aria-label": printable(label) },
      h(
        "header",
        {},
        h("h3", {}, h("bdi", {}, printable(log.name(card.agentId)))),
        h("span", { class: "activity" }, card.title, target && h("bdi", {}, printable(target))),
        h("a", { class: "permalink", href: `#${toAnchor(card.key)}`, "aria-label": `Link to ${printable(label)}` }, "#"),
      ),
      this.body,
      this.meta,
    );
    this.update();
  }

  /** Draw what has changed. */
  update() {
    const { card } = this;
    this.element.dataset.state = card.state;
    if (card.state === "writing") this.drawStream();
    else if (card.state === "failed") this.drawOnce("failed", () => this.drawFailure());
    else this.drawOnce(`done ${card.issueAnswers.size}`, () => this.drawReply());
  }

  drawStream() {
    const { card } = this;
    if (this.drawn !== "writing") {
      this.drawn = "writing";
      this.stream = document.createTextNode("");
      replace(this.body, h("div", { class: "text streams" }, this.stream));
      replace(this.meta, `${card.doing || "writes"} …`);
    }
    // A structured answer is JSON until it is whole: how far it is says more than its braces.
    if (card.isStructured) this.stream.data = card.streamed.end ? `… ${card.streamed.end} characters so far` : "";
    else this.stream.data = printable(this.log.read(card.streamed.text.slice(-TAIL)));
  }

  /**
   * @param {string} form
   * @param {() => void} draw
   */
  drawOnce(form, draw) {
    if (this.drawn === form) return;
    this.drawn = form;
    draw();
  }

  drawFailure() {
    const { failure, agentId } = this.card;
    replace(
      this.body,
      h("p", { class: "failure" }, printable(`${this.log.name(agentId)} gave no answer: ${failure.reason}: ${failure.message ?? ""}`)),
      failure.partialText ? h("details", {}, h("summary", {}, "What it had written"), createText(this.log.read(failure.partialText))) : null,
    );
    replace(this.meta);
  }

  drawReply() {
    const { reply } = this.card;
    const issues = reply.critique?.issues ?? [];
    replace(
      this.body,
      issues.length ? this.createIssues(issues) : createText(this.log.read(reply.rendered || reply.text || ""), { folds: true }),
      issues.length && reply.critique.remarks ? createText(this.log.read(reply.critique.remarks), { folds: true }) : null,
    );
    replace(this.meta, toMetaText(reply));
  }

  /** @param {any[]} issues */
  createIssues(issues) {
    return h(
      "ol",
      { class: "issues" },
      issues.map((issue) => {
        const answer = this.card.issueAnswers.get(issue.number);
        const outcome = answer && (words(answer.status, "ISSUE_STATUS_") || "answered");
        return h(
          "li",
          {},
          h(
            "p",
            { class: "issue-head" },
            issue.severity === undefined ? null : h("span", { class: "severity", "data-severity": issue.severity }, `severity ${issue.severity}`),
            outcome ? h("span", { class: `outcome ${OUTCOMES[/** @type {keyof typeof OUTCOMES} */ (outcome)] ?? ""}` }, outcome) : null,
          ),
          createText(this.log.read(issue.text)),
          issue.suggestion ? h("details", {}, h("summary", {}, "Suggestion"), createText(this.log.read(issue.suggestion))) : null,
          answer?.reason ? h("details", {}, h("summary", {}, "Why"), createText(this.log.read(answer.reason))) : null,
        );
      }),
    );
  }
}

/**
 * Return the anchor of a step, which may stand in an address.
 * @param {string} key
 */
export function toAnchor(key) {
  return `step-${key.replaceAll("/", "-")}`;
}

/** @param {any} reply */
function toMetaText(reply) {
  const seconds = parseFloat(reply.latency ?? "0");
  const tokens = Number(reply.usage?.outputTokens ?? 0);
  return [
    reply.model && printable(reply.model),
    seconds ? duration(seconds) : "",
    tokens ? `${tokens} tokens` : "",
    reply.truncated ? "cut off at its length limit" : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
