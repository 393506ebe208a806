// Values as people read them.

const UNPRINTABLE =
  /\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff]/g;

/**
 * Return text of others without what hides it or turns its direction (as `runtime/printable.py` does it for the terminal).
 * @param {string} text
 */
export function printable(text) {
  return text.replace(UNPRINTABLE, "");
}

/**
 * Return a constant of the contract in words, such as `completed` for `DEBATE_STATUS_COMPLETED`.
 * @param {string} value
 * @param {string} prefix such as `DEBATE_STATUS_`
 */
export function words(value, prefix) {
  return (value || "").replace(prefix, "").toLowerCase().replaceAll("_", " ");
}

/**
 * Return how long ago a time was, such as `5 min ago`.
 * @param {string} time in RFC 3339
 */
export function age(time) {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

/**
 * Return a duration such as `4.2 s` or `2 min 3 s`.
 * @param {number} seconds
 */
export function duration(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/**
 * Return an amount of money such as `$0.0213`, or `$0`.
 * @param {number} micros millionths of a US dollar
 */
export function dollars(micros) {
  return micros ? `$${(micros / 1e6).toFixed(4)}` : "$0";
}

/** How sure a decision is, never as if it was certain: in the words of `probability_text`. @param {number} percent */
export function probability(percent) {
  if (percent > 99) return "over 99 %";
  return percent >= 1 ? `${Math.round(percent)} %` : "under 1 %";
}
