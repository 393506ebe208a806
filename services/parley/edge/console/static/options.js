// Fields for settings, from what the contract says of each: kind, range, default and meaning.

import { h } from "./dom.js";

/**
 * @typedef {object} Option
 * @property {string[]} path where its value stands in the debate's specification
 * @property {string} label
 * @property {"integer" | "number" | "boolean" | "text" | "seconds" | "choice"} kind
 * @property {string} help
 * @property {string} [default]
 * @property {string} [otherwise]
 * @property {string} [unit]
 * @property {number} [min]
 * @property {number} [max]
 * @property {{value: string, label: string}[]} [choices]
 */

/**
 * Create fields for options. An empty field leaves the default.
 * @param {Option[]} options
 * @param {string} prefix keeps the fields' ids apart
 * @returns {{element: HTMLElement, values: () => any}}
 */
export function createOptions(options, prefix) {
  const fields = options.map((option) => ({ option, field: createField(option, `${prefix}-${option.path.join("-")}`) }));
  const element = h(
    "div",
    { class: "options" },
    fields.map(({ option, field }) =>
      h(
        "div",
        { class: "option" },
        h("label", { for: field.id }, option.unit ? `${option.label} (${option.unit})` : option.label),
        field,
        h("p", { class: "hint", id: `${field.id}-help` }, toCode(option.help)),
      ),
    ),
  );
  const values = () => {
    const found = {};
    for (const { option, field } of fields) {
      if (field.value !== "") put(found, option.path, toValue(option, field.value));
    }
    return found;
  };
  return { element, values };
}

/**
 * @param {Option} option
 * @param {string} id
 * @returns {HTMLInputElement | HTMLSelectElement}
 */
function createField(option, id) {
  const common = { id, "aria-describedby": `${id}-help` };
  const unset = (option.default || option.otherwise || "default").replaceAll("`", "");
  const choices =
    option.kind === "boolean" ? [{ value: "true", label: "yes" }, { value: "false", label: "no" }] : option.choices;
  if (choices) {
    const shown = option.kind === "boolean" ? { true: "yes", false: "no" }[unset] ?? unset : unset;
    return /** @type {HTMLSelectElement} */ (
      h(
        "select",
        common,
        h("option", { value: "" }, `default: ${shown}`),
        choices.map((each) => h("option", { value: each.value }, each.label)),
      )
    );
  }
  const isNumber = option.kind !== "text";
  return /** @type {HTMLInputElement} */ (
    h("input", {
      ...common,
      type: isNumber ? "number" : "text",
      min: option.min,
      max: option.max,
      step: option.kind === "integer" ? 1 : "any",
      placeholder: unset,
    })
  );
}

/**
 * Return a text with what is between backticks as code.
 * @param {string} text
 */
function toCode(text) {
  return text.split("`").map((each, place) => (place % 2 ? h("code", {}, each) : each));
}

/**
 * @param {Option} option
 * @param {string} text
 */
function toValue(option, text) {
  if (option.kind === "boolean") return text === "true";
  if (option.kind === "seconds") return `${text}s`;
  if (option.kind === "integer" || option.kind === "number") return Number(text);
  return text;
}

/**
 * @param {any} target
 * @param {string[]} path
 * @param {any} value
 */
function put(target, [first, ...rest], value) {
  if (rest.length === 0) target[first] = value;
  else put((target[first] ??= {}), rest, value);
}
