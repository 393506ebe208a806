// A new debate: what is asked, by whom, in which format, with which options, and what it is expected to take.

import { ApiError, call } from "./api.js";
import { h, replace } from "./dom.js";
import { createOptions } from "./options.js";
import { printable } from "./text.js";

const ESTIMATE_AFTER_MS = 400;
const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;
const FORMATS = {
  panel: "Agents propose, criticize and refine; a judge answers.",
  arena: "Rounds of revision, then a vote with weights.",
  moderated: "A moderator leads perspectives, and asks you after each round.",
};

/** @param {import("./app.js").Page} page */
export async function open(page) {
  page.setTitle("New debate");
  const [options, team] = await Promise.all([
    fetch("/console/options", { signal: page.signal }).then((answer) => answer.json()),
    call("ListAvailableAgents", {}, page.signal),
  ]);
  replace(page.main, new NewDebate(page, options, team).element);
}

/** The form of a new debate. */
class NewDebate {
  /**
   * @param {import("./app.js").Page} page
   * @param {any} options what the contract says of each setting
   * @param {any} team the configured agents
   */
  constructor(page, options, team) {
    this.page = page;
    this.requestId = crypto.randomUUID(); // the same for each try, so that one click creates one debate
    this.format = "panel";
    /** @type {{path: string, text: string}[]} */
    this.documents = [];
    this.estimate = h("p", { class: "hint", role: "status" });
    this.problem = h("p", { class: "failure", role: "alert", hidden: true });
    this.question = /** @type {HTMLTextAreaElement} */ (
      h("textarea", { id: "question", required: true, maxlength: 262144, rows: 5 })
    );
    const isJudge = (/** @type {any} */ each) => each.id === team.defaultJudge && !team.defaultTeam?.includes(each.id);
    this.agents = (team.agents ?? []).filter((/** @type {any} */ each) => !isJudge(each)).map((/** @type {any} */ each) => ({
      id: each.id,
      name: each.name || each.id,
      role: each.role ?? "",
      box: /** @type {HTMLInputElement} */ (
        h("input", { type: "checkbox", id: `agent-${each.id}`, checked: (team.defaultTeam ?? []).includes(each.id) })
      ),
    }));
    this.defaultTeam = [...(team.defaultTeam ?? [])].sort().join(" ");
    this.general = createOptions(options.general, "general");
    this.ofFormats = Object.fromEntries(
      Object.entries(options.formats).map(([name, each]) => [name, createOptions(/** @type {any} */ (each), name)]),
    );
    this.formatOptions = h("div", {});
    this.documentList = h("ul", { class: "documents" });
    this.element = h("div", {}, h("h1", {}, "New debate"), this.createForm(Object.keys(options.formats)));
    this.chooseFormat("panel");
  }

  /** @param {string[]} formats */
  createForm(formats) {
    return h(
      "form",
      {
        class: "new-debate",
        oninput: () => this.estimateLater(),
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.start();
        },
      },
      h("label", { for: "question" }, "Question"),
      this.question,
      h("label", { for: "documents" }, "Documents that the agents may read"),
      h("input", { id: "documents", type: "file", multiple: true, onchange: (/** @type {Event} */ event) => this.addDocuments(event) }),
      this.documentList,
      h(
        "fieldset",
        {},
        h("legend", {}, "Format"),
        formats.map((each) => this.createFormatChoice(each)),
      ),
      this.agents.length ? this.createTeam() : null,
      this.formatOptions,
      h("details", {}, h("summary", {}, "Limits and memory"), this.general.element),
      this.estimate,
      this.problem,
      h("button", { type: "submit", class: "primary" }, "Start the debate"),
    );
  }

  /** @param {string} name */
  createFormatChoice(name) {
    return h(
      "div",
      { class: "choice" },
      h("input", {
        type: "radio",
        name: "format",
        id: `format-${name}`,
        value: name,
        checked: name === this.format,
        onchange: () => this.chooseFormat(name),
      }),
      h("label", { for: `format-${name}` }, h("strong", {}, name), " ", FORMATS[/** @type {keyof typeof FORMATS} */ (name)] ?? ""),
    );
  }

  createTeam() {
    return h(
      "fieldset",
      {},
      h("legend", {}, "Team"),
      this.agents.map((/** @type {any} */ each) =>
        h("div", { class: "choice" }, each.box, h("label", { for: each.box.id }, printable(each.name), each.role && each.role !== each.id ? h("span", { class: "hint" }, ` ${printable(each.role)}`) : null)),
      ),
    );
  }

  /** @param {string} name */
  chooseFormat(name) {
    this.format = name;
    replace(this.formatOptions, h("details", {}, h("summary", {}, `Options of ${name}`), this.ofFormats[name].element));
    this.estimateLater();
  }

  /** @param {Event} event */
  async addDocuments(event) {
    const files = [.../** @type {HTMLInputElement} */ (event.target).files ?? []];
    const size = files.reduce((sum, each) => sum + each.size, 0);
    if (size > MAX_DOCUMENT_BYTES) {
      this.showProblem("All documents together may have 4 MiB.");
      return;
    }
    this.documents = await Promise.all(files.map(async (each) => ({ path: each.name, text: await each.text() })));
    replace(this.documentList, this.documents.map((each) => h("li", {}, `${printable(each.path)}: ${each.text.length.toLocaleString("en")} characters`)));
    this.estimateLater();
  }

  /** Return what the form says, as the contract's `DebateSpec`. What nobody has changed is left out. */
  toSpec() {
    const chosen = this.agents.filter((/** @type {any} */ each) => each.box.checked).map((/** @type {any} */ each) => each.id);
    const isDefault = [...chosen].sort().join(" ") === this.defaultTeam;
    const ofFormat = this.ofFormats[this.format].values();
    return {
      question: this.question.value,
      context: this.documents,
      agents: isDefault ? [] : chosen.map((/** @type {string} */ agentId) => ({ agentId })),
      ...this.general.values(),
      [this.format]: ofFormat[this.format] ?? {},
    };
  }

  estimateLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.showEstimate(), ESTIMATE_AFTER_MS);
  }

  async showEstimate() {
    if (!this.question.value.trim()) {
      replace(this.estimate, "");
      return;
    }
    try {
      const { estimate } = await call("EstimateDebate", { spec: this.toSpec() }, this.page.signal);
      this.problem.hidden = true;
      replace(this.estimate, estimate ? toEstimateText(estimate) : "What it takes is known only when it begins.");
    } catch (error) {
      if (this.page.signal.aborted) return;
      replace(this.estimate, "");
      if (error instanceof ApiError) this.showProblem(error.message);
    }
  }

  async start() {
    this.problem.hidden = true;
    try {
      const { debateId } = await call("CreateDebate", { requestId: this.requestId, spec: this.toSpec() }, this.page.signal);
      this.page.go(`/debates/${encodeURIComponent(debateId)}`);
    } catch (error) {
      if (this.page.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      if (error.status < 500) this.requestId = crypto.randomUUID(); // refused: the next try may say something else
      this.showProblem(error.message);
    }
  }

  /** @param {string} text */
  showProblem(text) {
    replace(this.problem, text);
    this.problem.hidden = false;
  }
}

/** @param {any} estimate */
function toEstimateText(estimate) {
  const least = estimate.minCalls ?? 0;
  const most = estimate.maxCalls ?? 0;
  const calls = least === most ? `${most} calls` : `${least} to ${most} calls`;
  if (estimate.minCostMicros === undefined) return `Expected: ${calls}. No price is known for ${(estimate.unpricedRoutes ?? []).join(", ") || "the models"}.`;
  const [low, high] = [estimate.minCostMicros, estimate.maxCostMicros].map((each) => (Number(each) / 1e6).toFixed(2));
  return `Expected: ${calls}, about $${low} to $${high}.`;
}
