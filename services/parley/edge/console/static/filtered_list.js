// A list that comes page by page, below a form that says which items.

import { ApiError, call } from "./api.js";
import { h, replace } from "./dom.js";
import { createFilters } from "./filters.js";

const PAGE_SIZE = 20;

/**
 * @typedef {object} Kind of list
 * @property {string} title
 * @property {string} method
 * @property {string} field of the answer, with the items
 * @property {import("./filters.js").Field[]} filters
 * @property {(item: any) => Node} createItem
 * @property {string} none what is said if there is nothing
 */

/** A list on a page. */
export class FilteredList {
  /** @param {Kind} kind @param {AbortSignal} signal */
  constructor(kind, signal) {
    const { title, filters } = kind;
    const name = title.toLowerCase();
    this.kind = kind;
    this.signal = signal;
    this.filters = createFilters(filters, "Filter", { "aria-label": `Filter ${name}` }, () => this.try(() => this.reload()));
    this.state = h("p", { class: "hint", role: "status" });
    this.problem = h("p", { class: "failure", role: "alert", hidden: true });
    this.items = h("ol", { class: "positions", "aria-label": title, hidden: true });
    this.more = h("button", { type: "button", hidden: true, onclick: () => this.try(() => this.loadPage()) }, `More ${name}`);
    this.element = h("section", {}, h("h2", {}, title), this.filters.element, this.problem, this.items, this.state, this.more);
    /** @type {Record<string, any>} */
    this.asked = {};
    this.pageToken = "";
    this.calls = 0;
  }

  /** Show the first page. A filter that is refused is shown here; throws any other ApiError, since the page is of no use then. */
  async open() {
    try {
      await this.reload();
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "invalid_argument") throw error;
      this.showProblem(error);
    }
  }

  /** Show the first page of what the form asks now. */
  async reload() {
    this.asked = this.filters.read();
    this.pageToken = "";
    replace(this.items);
    replace(this.state);
    this.items.hidden = true;
    await this.loadPage();
  }

  /** Add a page. The answer to an earlier call is of no use any more. */
  async loadPage() {
    const number = ++this.calls;
    this.more.hidden = true; // a second click would load the same page
    this.problem.hidden = true;
    const { method, field, createItem } = this.kind;
    const page = await call(method, { ...this.asked, pageSize: PAGE_SIZE, pageToken: this.pageToken }, this.signal);
    if (number !== this.calls) return;
    this.items.append(...(page[field] ?? []).map(createItem));
    this.pageToken = page.nextPageToken ?? "";
    this.drawState();
  }

  drawState() {
    const count = this.items.childElementCount;
    const none = Object.keys(this.asked).length ? "Nothing fits this filter." : this.kind.none;
    this.items.hidden = count === 0;
    this.more.hidden = !this.pageToken;
    replace(this.state, this.pageToken ? `${count} shown, and there are more` : count ? `${count} shown` : none);
  }

  /** @param {() => Promise<void>} load */
  async try(load) {
    const number = this.calls + 1;
    try {
      await load();
    } catch (error) {
      if (!this.signal.aborted && number === this.calls) this.showProblem(error);
    }
  }

  /** @param {unknown} error */
  showProblem(error) {
    replace(this.problem, error instanceof Error ? error.message : String(error));
    this.problem.hidden = false;
    this.more.hidden = !this.pageToken; // so that it can be tried again
  }
}
