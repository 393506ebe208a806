// A debate while it runs, and after: rounds with a lane for each agent, checkpoints, notes, cost and time.

import { createText } from "./agent_text.js";
import { ApiError, watch } from "./api.js";
import { CardView } from "./cards.js";
import { DebateLog } from "./debate_log.js";
import { h, replace } from "./dom.js";
import { Steering } from "./steering.js";
import { dollars, duration, printable } from "./text.js";

/** @typedef {import("./debate_log.js").Stage} Stage */

const ENDED = new Set(["completed", "cancelled", "failed"]);

/** @param {import("./app.js").Page} page */
export function open(page) {
  const [debateId] = page.parts;
  const view = new DebateView(debateId, page);
  replace(page.main, view.element);
  watch(
    debateId,
    {
      onEvent: (event) => view.take(() => view.log.apply(event)),
      onDelta: (delta) => view.take(() => view.log.applyDelta(delta)),
      onEnd: () => view.finish(),
      onConnection: (isConnected) => view.showConnection(isConnected),
      onError: (error) => view.showError(error),
    },
    page.signal,
  );
  const timer = setInterval(() => view.drawTotals(), 1000);
  page.signal.addEventListener("abort", () => clearInterval(timer));
}

/** The page of one debate. */
class DebateView {
  /**
   * @param {string} debateId
   * @param {import("./app.js").Page} page
   */
  constructor(debateId, page) {
    this.debateId = debateId;
    this.page = page;
    this.log = new DebateLog();
    this.steering = new Steering(debateId, this.log, page);
    this.question = h("h1", { class: "question" }, debateId);
    this.state = h("span", { class: "state" });
    this.totals = h("span", { class: "hint" });
    this.connection = h("p", { class: "failure", role: "status", hidden: true }, "The connection was lost; connecting again …");
    this.failure = h("div", { class: "failure", role: "alert", hidden: true });
    this.phases = h("ol", { class: "phases", "aria-label": "Phases" });
    this.answer = h("section", { class: "answer", "aria-label": "The answer", hidden: true });
    this.stages = h("div", {});
    /** @type {Map<Stage, StageView>} */
    this.stageViews = new Map();
    this.isDrawing = false;
    this.isOver = false;
    this.element = h(
      "div",
      {},
      h("div", { class: "debate-head" }, this.question, h("p", {}, this.state, " ", this.totals)),
      this.connection,
      this.failure,
      this.steering.checkpoint,
      this.answer,
      this.steering.controls,
      this.phases,
      this.stages,
    );
  }

  /**
   * Change the log, and draw once before the next frame, however much has changed.
   * @param {() => void} change
   */
  take(change) {
    change();
    if (this.isDrawing) return;
    this.isDrawing = true;
    const draw = () => {
      this.isDrawing = false;
      this.draw();
    };
    // A page in the background has no frames, and must not pile up what is to be drawn.
    if (document.hidden) setTimeout(draw, 250);
    else requestAnimationFrame(draw);
  }

  draw() {
    const { log } = this;
    if (log.isChanged) {
      log.isChanged = false;
      this.drawHead();
      this.drawPhases();
      this.steering.update();
      for (const stage of log.stages) {
        let view = this.stageViews.get(stage);
        if (!view) {
          view = new StageView(stage, log);
          this.stageViews.set(stage, view);
          this.stages.append(view.element);
        }
        view.update();
      }
    }
    for (const card of log.changedCards) this.findStage(card.key)?.updateCard(card.key);
    log.changedCards.clear();
  }

  /** @param {string} key */
  findStage(key) {
    return [...this.stageViews.values()].find((each) => each.cards.has(key));
  }

  drawHead() {
    const { log, debateId } = this;
    const question = printable(log.question) || debateId;
    if (this.question.textContent !== question) {
      replace(this.question, h("bdi", {}, question));
      this.page.setTitle(question.slice(0, 80));
    }
    this.state.dataset.state = log.status;
    replace(this.state, log.status);
    this.drawTotals();
    this.failure.hidden = !log.failure;
    if (log.failure) replace(this.failure, printable(`${log.failure.reason}: ${log.failure.message ?? ""}`));
    if (log.outcome && this.answer.hidden) this.drawAnswer();
  }

  drawTotals() {
    const { log } = this;
    if (!log.startTime) return;
    const isRunning = !ENDED.has(log.status) && !this.isOver;
    const end = isRunning ? Date.now() : Date.parse(log.lastTime);
    const seconds = Math.max(0, (end - Date.parse(log.startTime)) / 1000);
    const cost = log.costMicros ? ` · ${dollars(log.costMicros)}` : "";
    replace(this.totals, `${log.format} · ${duration(seconds)} · ${log.tokens.toLocaleString("en")} tokens${cost}`);
  }

  drawAnswer() {
    const { outcome } = this.log;
    this.answer.hidden = false;
    replace(
      this.answer,
      h("h2", {}, "Answer"),
      createText(outcome.description ?? ""),
      h("p", {}, h("a", { class: "button primary", href: `/debates/${encodeURIComponent(this.debateId)}/result` }, "Result in full")),
    );
  }

  drawPhases() {
    const phases = this.log.stages.flatMap((stage) => stage.phases.map((phase) => ({ stage, phase })));
    replace(
      this.phases,
      phases.map(({ stage, phase }) => {
        const done = stage.cards.filter((each) => each.activity === phase.activity && each.state === "done").length;
        const state = phase.finished ? "done" : "now";
        const count = phase.expected ? ` ${Math.min(done, phase.expected)}/${phase.expected}` : "";
        return h(
          "li",
          { "data-state": state, "aria-current": phase.finished ? null : "step" },
          h("a", { href: `#${stage.id}` }, `${phase.round ? `${phase.round} · ` : ""}${phase.title}${phase.finished ? "" : count}`),
        );
      }),
    );
  }

  finish() {
    this.isOver = true;
    this.take(() => {
      this.log.isChanged = true;
    });
    this.connection.hidden = true;
  }

  /** @param {boolean} isConnected */
  showConnection(isConnected) {
    this.connection.hidden = isConnected || this.isOver;
  }

  /** @param {ApiError} error */
  showError(error) {
    if (error.status === 401) {
      this.page.go(`/login?next=${encodeURIComponent(location.pathname)}`);
      return;
    }
    this.connection.hidden = true;
    this.failure.hidden = false;
    replace(this.failure, error.message);
  }
}

/** A round: what was noted, and a lane for each agent with its work and what others said of it. */
class StageView {
  /**
   * @param {Stage} stage
   * @param {DebateLog} log
   */
  constructor(stage, log) {
    this.stage = stage;
    this.log = log;
    /** @type {Map<string, CardView>} */
    this.cards = new Map();
    /** @type {Map<string, HTMLElement>} */
    this.lanes = new Map();
    this.title = h("h2", {}, stage.title);
    this.notes = h("ul", { class: "notes" });
    this.lanesElement = h("div", { class: "lanes" });
    this.element = h("section", { class: "stage", id: stage.id, "aria-label": stage.title }, this.title, this.lanesElement, this.notes);
  }

  /** Add the cards and notes that came. */
  update() {
    replace(this.title, this.stage.title);
    for (const card of this.stage.cards.slice(this.cards.size)) {
      const view = new CardView(card, this.log);
      this.cards.set(card.key, view);
      this.lane(card.targetAgentId || card.agentId).append(view.element);
    }
    for (const note of this.stage.notes.slice(this.notes.childElementCount)) {
      this.notes.append(h("li", { class: note.kind || null, "data-sequence": note.sequence }, h("bdi", {}, printable(note.text))));
    }
  }

  /** @param {string} key */
  updateCard(key) {
    this.cards.get(key)?.update();
  }

  /** @param {string} agentId */
  lane(agentId) {
    let lane = this.lanes.get(agentId);
    if (!lane) {
      lane = h("div", { class: "lane" });
      this.lanes.set(agentId, lane);
      this.lanesElement.append(lane);
    }
    return lane;
  }
}
