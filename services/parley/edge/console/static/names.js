// Names of agents in place of the letters by which they know each other, as `runtime/agent_names.py` puts them.

const ONE = String.raw`[A-Z]{1,2}(?![\w.]*\d)\b`;
const BETWEEN = String.raw`(?:[ \t]*,[ \t]*(?:(?:and|or|&)[ \t]+)?|[ \t]+(?:and|or|&)[ \t]+)`;
const AGENTS = new RegExp(String.raw`\b[Aa]gents?[ \t]+(${ONE}(?:${BETWEEN}${ONE})*)`, "g");
const NUMBERED = /(?:\b(?:([IiPp])(?:ssues?|oints?)|[Aa]gent)[ \t]+)?(?<![\w.\-/])([A-Z]{1,2})\.(\d{1,2})(?![\w\-/]|\.\d)/g;
const MAY_NAME = /gents?[ \t]+[A-Z]|[A-Z]\.\d/;

/**
 * Return a text of an agent with names in place of letters: `agent B` becomes its name, `B.2` its issue, or whatever is numbered.
 * @param {string} text
 * @param {string[]} names of the agents that debate, in their order
 * @param {string} numbered what `B.2` is one of
 */
export function putNames(text, names, numbered) {
  return text
    .split("\n")
    .map((line) => (MAY_NAME.test(line) ? putInLine(line, names, numbered) : line))
    .join("\n");
}

/**
 * @param {string} line
 * @param {string[]} names
 * @param {string} numbered
 */
function putInLine(line, names, numbered) {
  /** @param {string} letters */
  const find = (letters) => names[letters.charCodeAt(0) - 65 + 26 * (letters.length - 1)];
  return line
    .replace(AGENTS, (whole, letters) => {
      const [first] = letters.match(/\b[A-Z]{1,2}\b/) ?? [];
      return find(first) ? letters.replace(/\b[A-Z]{1,2}\b/g, (/** @type {string} */ each) => find(each) ?? each) : whole;
    })
    .replace(NUMBERED, (whole, initial, letters, number) => {
      if (!find(letters)) return whole;
      const name = `${numbered} ${number} of ${find(letters)}`;
      return initial === "I" || initial === "P" ? name[0].toUpperCase() + name.slice(1) : name;
    });
}
