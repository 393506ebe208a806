// The agents, the routes to their models with their breakers, and ratings with how they came about.

import { ApiError, call } from "./api.js";
import { createLine } from "./charts.js";
import { h, replace } from "./dom.js";
import { age, printable, words } from "./text.js";

const REFRESH_MS = 5000;
const MATCHES = 200;
const RELATIONSHIPS = 200;

/** @param {import("./app.js").Page} page */
export async function open({ main, signal, setTitle }) {
  setTitle("Agents");
  const agents = h("div", {});
  const routes = h("div", {});
  const ratings = h("div", {});
  replace(main, h("h1", {}, "Agents and ratings"), agents, routes, ratings);
  const refresh = async () => {
    const team = await call("ListAvailableAgents", {}, signal);
    replace(agents, h("h2", {}, "Agents"), createAgentTable(team));
    replace(routes, h("h2", {}, "Routes"), createRouteTable(team.routes ?? []));
  };
  await refresh();
  replace(ratings, h("h2", {}, "Ratings"), await createRatings(signal));
  const timer = setInterval(() => {
    if (!document.hidden) refresh().catch(() => {}); // the next one may come through
  }, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/**
 * Return the ratings, or why there are none: agents and routes are shown all the same.
 * @param {AbortSignal} signal
 */
async function createRatings(signal) {
  try {
    const [rated, matches] = await Promise.all([
      call("ListAgentRatings", {}, signal),
      call("ListAgentMatches", { pageSize: MATCHES }, signal),
    ]);
    const ratings = rated.ratings ?? [];
    return h("div", {}, createRatingTable(ratings, matches.matches ?? []), ratings.map((/** @type {any} */ each) => createRelationships(each.agentId, signal)));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 401) throw error;
    return h("p", { class: "failure" }, error.message);
  }
}

/** @param {any} team */
function createAgentTable(team) {
  const standing = new Set(team.defaultTeam ?? []);
  return createTable(
    "Agents",
    ["Agent", "Role", "Routes", "By default"],
    (team.agents ?? []).map((/** @type {any} */ each) => [
      printable(each.name || each.id),
      printable(each.role ?? ""),
      (each.routes?.length ? each.routes : team.defaultRoutes ?? []).join(", "),
      [standing.has(each.id) && "debates", each.id === team.defaultJudge && "judges"].filter(Boolean).join(", "),
    ]),
    "No agent is configured.",
  );
}

/** @param {any[]} routes */
function createRouteTable(routes) {
  return createTable(
    "Routes",
    ["Route", "Breaker", "Prices a million tokens"],
    routes.map((each) => {
      const breaker = words(each.breaker, "BREAKER_STATE_") || "closed";
      const retry = each.retryAt ? `, tried again ${new Date(each.retryAt).toLocaleTimeString()}` : "";
      return [
        printable(each.name),
        h("span", { class: "state", "data-state": BREAKERS[/** @type {keyof typeof BREAKERS} */ (breaker)] }, `${breaker}${retry}`),
        each.priced ? `${toDollars(each.inputPriceMicros)} read, ${toDollars(each.outputPriceMicros)} written` : "not known",
      ];
    }),
    "No route is configured.",
  );
}

const BREAKERS = { closed: "completed", "half open": "waiting", open: "failed" };

/** @param {string} micros */
function toDollars(micros) {
  return `$${(Number(micros ?? 0) / 1e6).toFixed(2)}`;
}

/**
 * @param {any[]} ratings
 * @param {any[]} matches newest first
 */
function createRatingTable(ratings, matches) {
  return createTable(
    "Ratings",
    ["Agent", "Elo", "Matches", "Won, drawn, lost", "Over time"],
    ratings.map((each) => [
      printable(each.agentId),
      Math.round(each.elo ?? 0),
      each.matches ?? 0,
      `${each.wins ?? 0}, ${each.draws ?? 0}, ${each.losses ?? 0}`,
      createHistory(each, matches),
    ]),
    "No debate has been rated yet.",
  );
}

/**
 * @param {any} rating
 * @param {any[]} matches
 */
function createHistory(rating, matches) {
  const points = matches
    .flatMap((match) => (match.changes ?? []).filter((/** @type {any} */ each) => each.agentId === rating.agentId))
    .map((each) => each.after)
    .filter((each) => typeof each === "number")
    .reverse();
  if (points.length < 2) return rating.lastMatchAt ? age(rating.lastMatchAt) : "";
  return createLine(points, `Elo of ${rating.agentId} from ${Math.round(points[0])} to ${Math.round(points[points.length - 1])}`);
}

/**
 * Return how an agent gets along with those that it has debated with most, asked for when it is opened.
 * @param {string} agentId
 * @param {AbortSignal} signal
 */
function createRelationships(agentId, signal) {
  const title = `${printable(agentId)} and others`;
  const body = h("div", {});
  const load = async () => {
    try {
      const { relationships = [] } = await call("ListAgentRelationships", { agentId, pageSize: RELATIONSHIPS }, signal);
      replace(body, createTable(title, ["Agent", "Debates", "Won, drawn, lost", "Agreed", "Disagreed"], relationships.map(toRelationshipRow), "It has met no other agent yet."));
    } catch (error) {
      replace(body, h("p", { class: "failure" }, error instanceof Error ? error.message : String(error)));
    }
  };
  const details = /** @type {HTMLDetailsElement} */ (h("details", { ontoggle: () => details.open && load() }, h("summary", {}, title), body));
  return details;
}

/** @param {any} each */
function toRelationshipRow(each) {
  const { debates = 0, wins = 0, draws = 0, losses = 0, agreements = 0, disagreements = 0 } = each;
  return [printable(each.otherAgentId), debates, `${wins}, ${draws}, ${losses}`, agreements, disagreements];
}

/**
 * @param {string} name
 * @param {string[]} head
 * @param {(string | number | Node)[][]} rows
 * @param {string} none what is said without rows
 */
function createTable(name, head, rows, none) {
  if (rows.length === 0) return h("p", { class: "hint" }, none);
  return h(
    "div",
    { class: "scrolls", tabindex: 0, role: "region", "aria-label": name },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, head.map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((each) => h("td", {}, each))))),
    ),
  );
}
