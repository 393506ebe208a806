// A debate as its page shows it, from the events of its log. Each event changes it once; the page draws what has changed.

import { putNames } from "./names.js";
import { words } from "./text.js";

/**
 * @typedef {object} Card one agent's work in one step
 * @property {string} key
 * @property {string} agentId
 * @property {string} targetAgentId whose work is read; empty: none
 * @property {string} activity
 * @property {string} title
 * @property {string} doing
 * @property {number} round
 * @property {"writing" | "done" | "failed"} state
 * @property {boolean} isStructured while it is written, its text is JSON
 * @property {StreamedText} streamed
 * @property {any} reply
 * @property {any} failure
 * @property {Map<number, any>} issueAnswers of a critique: what became of each issue
 */

/**
 * @typedef {object} Stage a round, or what comes before the first and after the last
 * @property {string} id
 * @property {string} title
 * @property {number} round
 * @property {Card[]} cards
 * @property {{sequence: number, time: string, text: string, kind: string}[]} notes
 * @property {Phase[]} phases
 */

/**
 * @typedef {{activity: string, title: string, round: number, expected: number, finished: boolean}} Phase
 */

const STATUS = "DEBATE_STATUS_";

/** Text of a step in flight, put together from pieces that may overlap, and begin late. */
export class StreamedText {
  constructor() {
    this.text = "";
    this.end = 0;
    this.stepAttempt = 0;
    this.routeAttempt = 0;
  }

  /**
   * Add a piece. Offsets count characters, which may be two units of a string here.
   * @param {any} delta
   * @returns {boolean} whether the text before it is void
   */
  add(delta) {
    const stepAttempt = delta.stepAttempt ?? 0;
    const routeAttempt = delta.routeAttempt ?? 0;
    const isNew = stepAttempt > this.stepAttempt || (stepAttempt === this.stepAttempt && routeAttempt > this.routeAttempt);
    if (isNew) {
      this.text = "";
      this.end = 0;
      this.stepAttempt = stepAttempt;
      this.routeAttempt = routeAttempt;
    } else if (stepAttempt < this.stepAttempt || routeAttempt < this.routeAttempt) {
      return false;
    }
    const offset = Number(delta.offset ?? 0);
    const piece = Array.from(delta.text ?? "");
    if (offset > this.end) this.text += "…";
    const fresh = piece.slice(Math.max(0, this.end - offset));
    if (offset + piece.length > this.end || isNew) {
      this.text += fresh.join("");
      this.end = offset + piece.length;
    }
    return isNew;
  }
}

/** What is known of a debate. */
export class DebateLog {
  constructor() {
    this.question = "";
    this.format = "";
    this.status = "pending";
    this.startTime = "";
    this.lastTime = "";
    this.costMicros = 0;
    this.tokens = 0;
    /** @type {Map<string, {id: string, name: string, role: string}>} */
    this.agents = new Map();
    /** @type {string[]} those that debate, in the order of their letters */
    this.debaters = [];
    /** @type {Set<string>} */
    this.muted = new Set();
    /** @type {Stage[]} */
    this.stages = [];
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    /** @type {{key: string, opened: any} | null} */
    this.checkpoint = null;
    /** @type {any} */
    this.outcome = null;
    this.endedBy = "";
    /** @type {any} */
    this.failure = null;
    /** @type {Set<Card>} */
    this.changedCards = new Set();
    this.isChanged = true;
  }

  /**
   * Return an agent's name, or its id.
   * @param {string} id
   */
  name(id) {
    return this.agents.get(id)?.name || id;
  }

  /**
   * Return a text with the names of agents where they call each other by letters. In a moderated debate they number points.
   * @param {string} text
   */
  read(text) {
    const names = this.debaters.map((id) => this.name(id));
    return putNames(text, names, this.format.startsWith("moderated") ? "point" : "issue");
  }

  /**
   * Take in the next event of the log.
   * @param {any} event
   */
  apply(event) {
    this.isChanged = true;
    this.startTime ||= event.time;
    this.lastTime = event.time;
    const kind = Object.keys(HANDLERS).find((each) => each in event);
    if (kind !== undefined) HANDLERS[kind](this, event[kind], event);
  }

  /**
   * Take in text of a step in flight.
   * @param {any} delta
   */
  applyDelta(delta) {
    const card = this.cards.get(delta.key);
    if (!card || card.state !== "writing") return;
    card.streamed.add(delta);
    this.changedCards.add(card);
  }

  /**
   * Return the stage of a round, or the one before or after the rounds; create it if it is new.
   * @param {number} round 0: outside of rounds
   * @returns {Stage}
   */
  stage(round) {
    const last = this.stages.at(-1);
    if (round === 0 && last) return last.round === 0 ? last : this.stages.find(isConclusion) ?? this.addStage(0);
    return this.stages.find((each) => each.round === round) ?? this.addStage(round);
  }

  /**
   * @param {number} round
   * @returns {Stage}
   */
  addStage(round) {
    const title = round ? `Round ${round}` : this.stages.length ? "Conclusion" : "Preparation";
    const stage = { id: title.toLowerCase().replace(" ", "-"), title, round, cards: [], notes: [], phases: [] };
    this.stages.push(stage);
    return stage;
  }

  /**
   * @param {any} event
   * @param {string} text
   * @param {number} [round]
   * @param {string} [kind]
   */
  note(event, text, round, kind = "") {
    const stage = round === undefined ? this.stages.at(-1) ?? this.stage(0) : this.stage(round);
    stage.notes.push({ sequence: Number(event.sequence), time: event.time, text: this.read(text), kind });
  }

  /** @param {any} usage */
  count(usage) {
    this.costMicros += Number(usage?.costMicros ?? 0);
    this.tokens += Number(usage?.inputTokens ?? 0) + Number(usage?.outputTokens ?? 0);
  }
}

/** @param {Stage} stage */
function isConclusion(stage) {
  return stage.title === "Conclusion";
}

/** @type {Record<string, (log: DebateLog, payload: any, event: any) => void>} */
const HANDLERS = {
  debateCreated(log, { spec }) {
    log.question = spec.question ?? "";
    log.format = spec.format ?? "";
    for (const each of [...(spec.agents ?? []), ...(spec.judge ? [spec.judge] : [])]) addAgent(log, each.agent);
    log.debaters = (spec.agents ?? []).map((/** @type {any} */ each) => each.agent.id);
  },
  claimed(log) {
    if (log.status === "pending") log.status = "running";
  },
  participantJoined(log, { agent }) {
    addAgent(log, agent);
    log.debaters.push(agent.id);
  },
  roundStarted(log, { number, total }) {
    const stage = log.stage(number);
    stage.title = total ? `Round ${number} of ${total}` : `Round ${number}`;
  },
  phaseStarted(log, { activity, title, round = 0, expected = 0 }) {
    log.stage(round).phases.push({ activity, title: title || activity, round, expected, finished: false });
  },
  phaseFinished(log, { activity, round = 0 }) {
    const phase = log.stage(round).phases.find((each) => each.activity === activity);
    if (phase) phase.finished = true;
  },
  stepStarted(log, { work, isStructured }, event) {
    if (work.agentId) startCard(log, event.key, work, Boolean(isStructured));
  },
  stepSucceeded(log, { work, reply, value }, event) {
    log.count(reply?.usage);
    if (work.agentId && reply) finishCard(log, event.key, work, reply);
    for (const each of value?.stability ?? []) {
      if (each.kept === false) log.note(event, `${log.name(each.agentId)} changed its position`, work.round ?? 0, "flip");
    }
  },
  stepFailed(log, failure, event) {
    log.count(failure.usage);
    const card = log.cards.get(event.key);
    if (!card) return;
    Object.assign(card, { state: "failed", failure });
    log.changedCards.add(card);
  },
  teamSelected(log, { agentIds = [] }, event) {
    log.debaters = log.debaters.filter((each) => agentIds.includes(each));
    if (agentIds.length) log.note(event, `Team: ${agentIds.map((/** @type {string} */ each) => log.name(each)).join(", ")}`);
  },
  judgeChosen(log, { agentId, reason }, event) {
    log.note(event, `Judge: ${log.name(agentId)}: ${reason}`);
  },
  requirementsListed(log, { requirements = [] }, event) {
    log.note(event, `${requirements.length} requirements were found in the question`);
  },
  sourcesListed(log, { sources = [] }, event) {
    log.note(event, `Sources: ${sources.map((/** @type {any} */ each) => `[S${each.number}] ${each.title || each.path || each.url}`).join(", ")}`, undefined, "sources");
  },
  recalled(log, { debateIds = [] }, event) {
    if (debateIds.length) log.note(event, `${debateIds.length} past debates were found`);
  },
  draftsGrouped(log, { drafts }, event) {
    const [first] = drafts.groups ?? [];
    if (drafts.certain && drafts.majority && first) {
      log.note(event, `${first.agentIds.length} of the first drafts agree: ${first.position ?? ""}`, 1);
    }
  },
  roundAssessed(log, { round, finding }, event) {
    if (finding) log.note(event, finding, round);
  },
  roundsEnded(log, { explanation }, event) {
    if (explanation) log.note(event, `The rounds ended: ${explanation}`);
  },
  tricksterChecked(log, { finding }, event) {
    const verdict = words(finding.verdict, "TRICKSTER_VERDICT_");
    log.note(event, `Is the agreement hollow? ${verdict} (${Math.round(finding.hollowPercent ?? 0)} %)`, finding.round);
  },
  topologyDrawn(log, { round, topology }, event) {
    log.note(event, `Who criticizes whom: ${topology}`, round);
  },
  warned(log, { message }, event) {
    log.note(event, message, undefined, "warning");
  },
  intervened(log, { intervention }, event) {
    if (intervention.mute) log.muted.add(intervention.mute.agentId);
    if (intervention.unmute) log.muted.delete(intervention.unmute.agentId);
    log.note(event, `A person: ${toActText(log, intervention)}`, undefined, "person");
  },
  limitReached(log, { limit, round = 0 }, event) {
    log.note(event, `A limit was reached: ${words(limit, "")}${round ? ` in round ${round}` : ""}`, undefined, "warning");
  },
  paused(log) {
    log.status = "paused";
  },
  resumed(log) {
    log.status = "running";
    log.failure = null;
  },
  waitStarted(log, { agentId, message, until }, event) {
    log.status = "waiting";
    log.note(event, `Waiting for ${log.name(agentId)} until ${until}: ${message}`, undefined, "warning");
  },
  waitFinished(log) {
    log.status = "running";
  },
  checkpointOpened(log, opened, event) {
    log.status = "waiting";
    log.checkpoint = { key: event.key, opened };
  },
  checkpointClosed(log) {
    log.status = "running";
    log.checkpoint = null;
  },
  checkpointExpired(log, _, event) {
    log.checkpoint = null;
    log.note(event, "No person answered in time", undefined, "warning");
  },
  debateFailed(log, { failure }) {
    log.status = "failed";
    log.failure = failure;
    log.checkpoint = null;
  },
  concluded(log, { outcome, endedBy = "" }) {
    log.status = outcome ? "completed" : "cancelled";
    log.outcome = outcome ?? null;
    log.endedBy = endedBy;
    log.checkpoint = null;
  },
};

/**
 * @param {DebateLog} log
 * @param {any} agent
 */
function addAgent(log, agent) {
  log.agents.set(agent.id, { id: agent.id, name: agent.name || agent.id, role: agent.role ?? "" });
}

/**
 * @param {DebateLog} log
 * @param {string} key
 * @param {any} work
 * @param {boolean} isStructured
 * @returns {Card}
 */
function startCard(log, key, work, isStructured) {
  let card = log.cards.get(key);
  if (!card) {
    card = {
      key,
      agentId: work.agentId,
      targetAgentId: work.targetAgentId ?? "",
      activity: work.activity,
      title: work.title || work.activity,
      doing: work.doing ?? "",
      round: work.round ?? 0,
      state: "writing",
      isStructured,
      streamed: new StreamedText(),
      reply: null,
      failure: null,
      issueAnswers: new Map(),
    };
    log.cards.set(key, card);
    log.stage(card.round).cards.push(card);
  }
  Object.assign(card, { state: "writing", isStructured, failure: null });
  log.changedCards.add(card);
  return card;
}

/**
 * @param {DebateLog} log
 * @param {string} key
 * @param {any} work
 * @param {any} reply
 */
function finishCard(log, key, work, reply) {
  const card = log.cards.get(key) ?? startCard(log, key, work, false);
  Object.assign(card, { state: "done", reply });
  log.changedCards.add(card);
  for (const answer of reply.issueAnswers ?? []) {
    const critique = log.stage(card.round).cards.find(
      (each) => each.agentId === answer.criticAgentId && each.targetAgentId === card.agentId,
    );
    if (!critique) continue;
    critique.issueAnswers.set(answer.number, answer);
    log.changedCards.add(critique);
  }
}

/**
 * @param {DebateLog} log
 * @param {any} act
 * @returns {string}
 */
function toActText(log, act) {
  if (act.cancel) return `cancelled the debate. ${act.cancel.reason ?? ""}`;
  if (act.pause) return "paused the debate";
  if (act.resume) return "resumed the debate";
  if (act.end) return "ended the rounds";
  if (act.guide) return `guided: ${act.guide.text}`;
  if (act.mute) return `muted ${log.name(act.mute.agentId)}`;
  if (act.unmute) return `unmuted ${log.name(act.unmute.agentId)}`;
  if (act.continueDebate) return "let the debate continue";
  if (act.approve) return `${act.approve.approved ? "approved" : "refused"}. ${act.approve.text ?? ""}`;
  if (act.answer) {
    return ["answered:", act.answer.text, ...(act.answer.answers ?? []).map((/** @type {any} */ each) => each.text)].filter(Boolean).join(" ");
  }
  return "did something that this page does not know";
}
