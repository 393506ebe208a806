// Elements by one function. Texts become text nodes: nothing in them is read as HTML.

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 */

/**
 * Create an element. `on…` properties are listeners, `class`, `data-…`, `aria-…` and the like attributes.
 * A property that is null, undefined or false is left out; true is an attribute without a value.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  setProperties(element, properties);
  element.append(...toNodes(children));
  return element;
}

/**
 * Create an element of a drawing.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setProperties(element, properties);
  element.append(...toNodes(children));
  return element;
}

/**
 * Create a button; it cannot be pressed while it acts.
 * @param {string} text
 * @param {() => any} act
 * @param {string} [kind]
 */
export function button(text, act, kind = "") {
  const element = /** @type {HTMLButtonElement} */ (
    h(
      "button",
      {
        type: "button",
        class: kind,
        onclick: async () => {
          element.disabled = true; // one click, one act
          try {
            await act();
          } finally {
            element.disabled = false;
            if (document.activeElement === document.body) element.focus(); // it had lost it while disabled
          }
        },
      },
      text,
    )
  );
  return element;
}

/**
 * Put other children into an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function replace(element, ...children) {
  element.replaceChildren(...toNodes(children));
}

/**
 * @param {Element} element
 * @param {Record<string, any>} properties
 */
function setProperties(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function toNodes(children) {
  return children
    .flat()
    .filter((each) => each !== null && each !== undefined && each !== false)
    .map((each) => (each instanceof Node ? each : String(each)));
}
