// What a person can do: answer a checkpoint, and pause, guide, mute, end or cancel at any time.

import { createText } from "./agent_text.js";
import { ApiError, call } from "./api.js";
import { button, h, replace } from "./dom.js";
import { printable } from "./text.js";

const RUNNING = new Set(["pending", "running", "waiting"]);
const RESUMABLE = new Set(["paused", "failed"]);

/** The controls of a debate. */
export class Steering {
  /**
   * @param {string} debateId
   * @param {import("./debate_log.js").DebateLog} log
   * @param {import("./app.js").Page} page
   */
  constructor(debateId, log, page) {
    this.debateId = debateId;
    this.log = log;
    this.page = page;
    this.checkpoint = h("section", { class: "checkpoint", "aria-label": "A person is asked", hidden: true });
    this.controls = h("div", { class: "controls", role: "group", "aria-label": "Steer the debate" });
    this.drawnCheckpoint = "";
    this.drawnControls = "";
  }

  /** Draw what can be done now. A form that is being filled in stays as it is. */
  update() {
    const { checkpoint, status, muted, agents } = this.log;
    const key = checkpoint?.key ?? "";
    if (key !== this.drawnCheckpoint) {
      if (this.drawnCheckpoint && !key) this.page.notify("The question to a person was answered.");
      this.drawnCheckpoint = key;
      this.checkpoint.hidden = !checkpoint;
      replace(this.checkpoint, checkpoint ? this.createCheckpoint(checkpoint) : null);
      if (checkpoint) this.page.notify("The debate waits for a person.");
    }
    const form = [status, agents.size, ...muted].join(" ");
    if (form !== this.drawnControls) {
      this.drawnControls = form;
      replace(this.controls, this.createControls());
    }
  }

  /**
   * @param {{key: string, opened: any}} checkpoint
   * @returns {Node[]}
   */
  createCheckpoint({ key, opened }) {
    const until = new Date(opened.until).toLocaleTimeString();
    const head = h("h2", {}, "The debate waits for you");
    const hint = h("p", { class: "hint" }, `Until ${until}; then it pauses.`);
    /** @param {any} act */
    const close = (act) => this.intervene({ ...act, checkpoint: key });
    if (opened.questions) return [head, hint, this.createQuestions(opened.questions, close)];
    if (opened.approval) return [head, hint, createText(opened.approval.text ?? ""), this.createApproval(close)];
    return [head, hint, createText(opened.direction?.text ?? ""), this.createDirection(close)];
  }

  /**
   * @param {any} asked
   * @param {(act: any) => Promise<void>} close
   */
  createQuestions(asked, close) {
    const questions = asked.questions ?? [];
    const fields = questions.map((/** @type {any} */ each) => {
      const id = `answer-${each.id}`;
      return { id: each.id, label: h("label", { for: id }, printable(each.text)), field: /** @type {HTMLTextAreaElement} */ (h("textarea", { id, maxlength: 8000 })) };
    });
    const submit = () => {
      const answers = fields
        .filter((/** @type {any} */ each) => each.field.value.trim())
        .map((/** @type {any} */ each) => ({ questionId: each.id, text: each.field.value }));
      return answers.length ? close({ answer: { answers } }) : close({ continueDebate: {} });
    };
    return h(
      "form",
      { onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), submit()) },
      h("p", {}, printable(asked.text ?? "")),
      fields.map((/** @type {any} */ each) => [each.label, each.field]).flat(),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Answer"), button("Go on without answers", () => close({ continueDebate: {} }))),
    );
  }

  /** @param {(act: any) => Promise<void>} close */
  createApproval(close) {
    const comment = /** @type {HTMLTextAreaElement} */ (h("textarea", { id: "approval-comment", maxlength: 8000 }));
    return h(
      "div",
      {},
      h("label", { for: "approval-comment" }, "Comment"),
      comment,
      h(
        "div",
        { class: "buttons" },
        button("Approve", () => close({ approve: { approved: true, text: comment.value } }), "primary"),
        button("Refuse", () => close({ approve: { approved: false, text: comment.value } }), "danger"),
      ),
    );
  }

  /** @param {(act: any) => Promise<void>} close */
  createDirection(close) {
    const guidance = /** @type {HTMLTextAreaElement} */ (h("textarea", { id: "checkpoint-guidance", maxlength: 8000 }));
    return h(
      "div",
      {},
      h("label", { for: "checkpoint-guidance" }, "Guidance for the agents"),
      guidance,
      h(
        "div",
        { class: "buttons" },
        button("Continue", () => close({ continueDebate: {} }), "primary"),
        button("Guide", () => (guidance.value.trim() ? close({ guide: { text: guidance.value } }) : guidance.focus())),
        button("End the rounds", () => close({ end: {} })),
      ),
    );
  }

  /** @returns {Node[]} */
  createControls() {
    const { status, muted, agents } = this.log;
    if (RESUMABLE.has(status)) {
      return [button("Resume", () => this.intervene({ resume: {} }), "primary"), this.createCancel()];
    }
    if (!RUNNING.has(status)) return [];
    const guidance = /** @type {HTMLTextAreaElement} */ (h("textarea", { id: "guidance", maxlength: 8000 }));
    const guide = h(
      "details",
      {},
      h("summary", {}, "Guide"),
      h("label", { for: "guidance" }, "Guidance, from the next round on"),
      guidance,
      button("Send", async () => {
        if (!guidance.value.trim()) return;
        await this.intervene({ guide: { text: guidance.value } });
        guidance.value = "";
      }),
    );
    const mute = h(
      "details",
      {},
      h("summary", {}, "Mute"),
      [...agents.values()].map((each) =>
        muted.has(each.id)
          ? button(`Unmute ${printable(each.name)}`, () => this.intervene({ unmute: { agentId: each.id } }))
          : button(`Mute ${printable(each.name)}`, () => this.intervene({ mute: { agentId: each.id } })),
      ),
    );
    return [
      button("Pause", () => this.intervene({ pause: {} })),
      button("End the rounds", () => this.intervene({ end: {} })),
      guide,
      mute,
      this.createCancel(),
    ];
  }

  createCancel() {
    return button(
      "Cancel",
      () => {
        if (confirm("End this debate without an answer?")) return this.intervene({ cancel: {} });
      },
      "danger",
    );
  }

  /**
   * Act on the debate; what came of it shows as an event, or in a notice.
   * @param {any} intervention
   */
  async intervene(intervention) {
    try {
      await call("Intervene", { requestId: crypto.randomUUID(), debateId: this.debateId, intervention }, this.page.signal);
    } catch (error) {
      if (this.page.signal.aborted) return;
      if (error instanceof ApiError) this.page.notify(error.message);
      else throw error;
    }
  }
}
