// Small drawings: lines, bars, and who criticized whom. Each says in words what it shows.

import { h, svg } from "./dom.js";
import { printable } from "./text.js";

/**
 * Return a line through values, from left to right.
 * @param {number[]} values
 * @param {string} label
 * @param {{min?: number, max?: number, width?: number, height?: number}} [options]
 */
export function createLine(values, label, { min = Math.min(...values), max = Math.max(...values), width = 160, height = 40 } = {}) {
  const span = max - min || 1;
  const step = values.length > 1 ? (width - 8) / (values.length - 1) : 0;
  const points = values.map((each, index) => [4 + index * step, height - 4 - ((each - min) / span) * (height - 8)]);
  return svg(
    "svg",
    { class: "line", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": printable(label) },
    svg("polyline", { points: points.map((each) => each.map((value) => value.toFixed(1)).join(",")).join(" ") }),
    points.map(([x, y]) => svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 2.5 })),
  );
}

/**
 * Return a bar for a share.
 * @param {number} share 0 to 1
 * @param {string} label
 */
export function createBar(share, label) {
  const percent = Math.round(share * 100);
  return h(
    "span",
    { class: "bar-row" },
    svg(
      "svg",
      { class: "bar-chart", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "bar-ground", width: 100, height: 8 }),
      svg("rect", { class: "bar-share", width: percent, height: 8 }),
    ),
    h("span", {}, `${percent} % ${label}`),
  );
}

/**
 * @typedef {{critic: string, target: string, issues: number, severity: number}} CritiqueEdge
 */

/**
 * Return agents in a circle, with an arrow for what one found wrong with another's work.
 * @param {string[]} agents names, each once
 * @param {CritiqueEdge[]} edges
 */
export function createCritiqueGraph(agents, edges) {
  const [width, height, radius] = [520, 320, 110];
  const places = new Map(
    agents.map((each, index) => {
      const angle = (index / agents.length) * 2 * Math.PI - Math.PI / 2;
      return [each, { x: width / 2 + radius * 1.6 * Math.cos(angle), y: height / 2 + radius * Math.sin(angle) }];
    }),
  );
  const label = edges.map((each) => `${each.critic} found ${each.issues} with ${each.target}`).join("; ") || "no critiques";
  return svg(
    "svg",
    { class: "graph", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": printable(`Issues: ${label}`) },
    svg(
      "defs",
      {},
      svg("marker", { id: "arrow", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0 L10 5 L0 10 z" })),
    ),
    edges.map((each) => createEdge(each, places.get(each.critic), places.get(each.target))),
    [...places].map(([name, { x, y }]) => [
      svg("circle", { cx: x, cy: y, r: 9 }),
      svg("text", { x, y: y + (y < height / 2 ? -14 : 26), "text-anchor": "middle" }, printable(name).slice(0, 24)),
    ]).flat(),
  );
}

/**
 * @param {CritiqueEdge} edge
 * @param {{x: number, y: number} | undefined} from
 * @param {{x: number, y: number} | undefined} to
 */
function createEdge(edge, from, to) {
  if (!from || !to) return null;
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  // Bent to one side, so that both directions can be seen.
  const bend = { x: (from.x + to.x) / 2 - uy * 22, y: (from.y + to.y) / 2 + ux * 22 };
  const start = `${(from.x + ux * 10).toFixed(1)} ${(from.y + uy * 10).toFixed(1)}`;
  const end = `${(to.x - ux * 12).toFixed(1)} ${(to.y - uy * 12).toFixed(1)}`;
  return svg("path", {
    class: "edge",
    d: `M${start} Q${bend.x.toFixed(1)} ${bend.y.toFixed(1)} ${end}`,
    "stroke-width": Math.min(6, 1 + edge.issues / 2),
    "data-severe": edge.severity >= 7,
    "marker-end": "url(#arrow)",
  });
}
