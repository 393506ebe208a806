// A form that says what to look for. Its values stand in the address, so that a page can be passed on.

import { h } from "./dom.js";

/**
 * @typedef {object} Field
 * @property {string} name in the address, unlike that of any other field of the page
 * @property {string} key in the request
 * @property {string} label
 * @property {Record<string, any>} [input] attributes; of the type `checkbox` it is yes or no
 * @property {{value: string, label: string, sent: string}[]} [choices] the values to choose from, the first one if nothing is asked
 */

/**
 * Create a form, filled in from the address.
 * @param {Field[]} fields
 * @param {string} act what its button says
 * @param {Record<string, any>} attributes of the form
 * @param {() => void} onSubmit called when the address has the values
 * @returns {{element: HTMLElement, read: () => Record<string, any>}} `read` returns what is asked, as fields of a request
 */
export function createFilters(fields, act, attributes, onSubmit) {
  const inputs = fields.map((field) => ({ field, input: createInput(field) }));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    putInAddress(inputs);
    onSubmit();
  };
  const read = () => Object.fromEntries(inputs.flatMap(({ field, input }) => readInput(field, input)));
  const labelled = inputs.map(({ field, input }) => {
    const label = h("label", { for: input.id }, field.label);
    return isBox(field) ? [h("span", { class: "choice" }, input, label)] : [label, input];
  });
  return { element: h("form", { class: "filters", ...attributes, onsubmit: submit }, ...labelled, h("button", {}, act)), read };
}

/** @param {Field} field */
const isBox = (field) => field.input?.type === "checkbox";

/**
 * @param {Field} field
 * @returns {HTMLInputElement | HTMLSelectElement}
 */
function createInput(field) {
  const { name, choices, input } = field;
  const given = new URLSearchParams(location.search).get(name) ?? "";
  if (choices) {
    const select = /** @type {HTMLSelectElement} */ (h("select", { id: name }, choices.map((each) => h("option", { value: each.value }, each.label))));
    select.value = choices.some((each) => each.value === given) ? given : choices[0].value;
    return select;
  }
  const found = /** @type {HTMLInputElement} */ (h("input", { id: name, ...input }));
  if (isBox(field)) found.checked = given !== "";
  else found.value = given;
  return found;
}

/**
 * @param {Field} field
 * @param {HTMLInputElement | HTMLSelectElement} input
 * @returns {[string, any][]} nothing if nothing is asked
 */
function readInput(field, input) {
  const value = toText(field, input);
  if (!value) return [];
  if (field.choices) return [[field.key, field.choices.find((each) => each.value === value)?.sent]];
  if (isBox(field)) return [[field.key, true]];
  return [[field.key, input.type === "number" ? Number(value) : value]];
}

/**
 * @param {Field} field
 * @param {HTMLInputElement | HTMLSelectElement} input
 */
function toText(field, input) {
  if (input instanceof HTMLInputElement && isBox(field)) return input.checked ? "yes" : "";
  return input.value.trim();
}

/** What others have put into the address stays. @param {{field: Field, input: HTMLInputElement | HTMLSelectElement}[]} inputs */
function putInAddress(inputs) {
  const address = new URL(location.href);
  for (const { field, input } of inputs) {
    const value = toText(field, input);
    if (value) address.searchParams.set(field.name, value);
    else address.searchParams.delete(field.name);
  }
  history.replaceState(null, "", address);
}
