// Text of models, data and people reaches the page as text nodes only, never as markup; control characters are shown.

const LONGEST = 6000;
const STEERING = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;

/** An element with attributes and children; strings become text. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

/** Text as nodes: matches of the search are marked, control characters are shown by their code. */
function nodes(text, sought = "") {
  const parts = [];
  let from = 0;
  for (const { index, end, mark } of places(text, sought)) {
    if (index > from) parts.push(text.slice(from, index));
    const found = text.slice(index, end);
    parts.push(mark ? make("mark", {}, found) : make("span", { class: "steer" }, codeOf(found)));
    from = end;
  }
  parts.push(text.slice(from));
  return parts;
}

function places(text, sought) {
  const found = [...text.matchAll(STEERING)].map(({ index }) => ({ index, end: index + 1, mark: false }));
  for (const { index, 0: match } of sought ? text.matchAll(literally(sought)) : []) {
    if (match) found.push({ index, end: index + match.length, mark: true });
  }
  found.sort((one, other) => one.index - other.index);
  let end = 0;
  return found.filter((place) => place.index >= end && ((end = place.end), true));
}

const literally = (text) => new RegExp(text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"), "giu");
const codeOf = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** One line of text with control characters replaced by their codes, for lists and headings. */
const inLine = (text) => String(text).replace(STEERING, (found) => `[${codeOf(found)}]`);

/** A text, of which a long one is cut; a button shows the rest. */
function prose(text, sought, name = "div", className = "said") {
  const element = make(name, { class: className, dir: "auto", tabindex: className === "text" ? "0" : null });
  // Never between the two halves of a surrogate pair.
  const cut = text.length > LONGEST * 1.2 ? LONGEST - (text.codePointAt(LONGEST - 1) > 0xffff ? 1 : 0) : text.length;
  element.append(...nodes(text.slice(0, cut), sought));
  if (cut === text.length) return element;
  const button = make("button", { type: "button", class: "rest" }, `Show the other ${count(text.length - cut)} characters`);
  button.addEventListener("click", () => {
    button.remove();
    element.append(...nodes(text.slice(cut), sought));
  });
  return make("div", {}, element, button);
}

const count = (number) => number.toLocaleString("en");
const figure = (number, digits = 2) => String(Number(number.toFixed(digits)));
const dollars = (cost) => (cost === null ? "unknown" : cost ? `$${cost.toFixed(4)}` : "$0");

/** The parsed value of a turn, in short. */
function valueOf(value) {
  if (value === null || value === undefined) return null;
  if (value === true) return "no issue";
  if (value === false) return "objects";
  if (Array.isArray(value)) return value.map((part) => figure(part)).join(" : ");
  return typeof value === "number" ? figure(value) : inLine(value);
}

/** A verdict in short: `4`, `8 : 6 → 1`, `failed`. */
function verdictOf(row) {
  if (failed(row)) return "failed";
  const value = valueOf(rows.value[row]);
  const winner = rows.winner[row];
  return winner === null ? value ?? "none" : `${value ? `${value} → ` : ""}${winner}`;
}

const labelOf = (row) => (rows.human[row] === null ? null : valueOf(rows.human[row]));

/** An agent's name for readers: `tie_breaker` is `Tie breaker`, `advocate_1_3` is `Advocate 1.3`. */
function speaker(agent) {
  const name = inLine(agent).replace(/(?<=\d)_(?=\d)/g, ".").replaceAll("_", " ");
  return name.charAt(0).toUpperCase() + name.slice(1);
}
