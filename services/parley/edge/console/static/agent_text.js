// Texts of agents: plain at once, Markdown as soon as they are looked at. However long or odd, they stay in their place.

import { renderMarkdown } from "./api.js";
import { h, replace } from "./dom.js";
import { printable } from "./text.js";

const SHOWN = 20_000;
const FOLDED = 1_500;

const observer = new IntersectionObserver(
  (entries) => {
    for (const each of entries) {
      if (!each.isIntersecting) continue;
      observer.unobserve(each.target);
      pending.get(each.target)?.();
      pending.delete(each.target);
    }
  },
  { rootMargin: "400px" },
);
/** @type {WeakMap<Element, () => void>} */
const pending = new WeakMap();

/**
 * Return an element that shows a Markdown text. Of a very long one it shows the beginning, and the rest when asked.
 * @param {string} text
 * @param {{folds?: boolean}} [options] `folds`: whether a long text is low at first
 * @returns {HTMLElement}
 */
export function createText(text, { folds = false } = {}) {
  const clean = printable(text);
  const isFolded = folds && clean.length > FOLDED;
  const body = h("div", { class: isFolded ? "text streams folded" : "text streams" }, clean.slice(0, SHOWN));
  const whole = h("div", { class: "agent-text" }, body);
  /** @param {string} shown */
  const render = async (shown) => {
    try {
      body.innerHTML = await renderMarkdown(shown); // cleaned by the edge: no scripts, styles or pictures
      body.classList.remove("streams");
    } catch {
      replace(body, shown); // plain text is better than none
    }
  };
  if (isFolded) {
    const unfold = h("button", { type: "button", class: "quiet", "aria-expanded": "false", onclick: () => toggle(body, unfold) }, "More");
    whole.append(unfold);
  }
  pending.set(body, () => render(clean.slice(0, SHOWN)));
  observer.observe(body);
  if (clean.length > SHOWN) {
    const more = h(
      "button",
      {
        type: "button",
        class: "quiet",
        onclick: () => {
          more.remove();
          render(clean);
        },
      },
      `Show all ${clean.length.toLocaleString("en")} characters`,
    );
    whole.append(more);
  }
  return whole;
}

/**
 * @param {HTMLElement} body
 * @param {HTMLElement} control
 */
function toggle(body, control) {
  const isFolded = body.classList.toggle("folded");
  control.setAttribute("aria-expanded", String(!isFolded));
  replace(control, isFolded ? "More" : "Less");
}
