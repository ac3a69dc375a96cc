// Filters, sorting, search, addresses, keyboard and colours.

const at = (id) => document.getElementById(id);
const filters = at("filters");
const reader = at("reader");
const state = { opened: -1, beside: -1, sought: "", hits: null, search: 0 };
const list = new List(at("list"), at("rows"), () => state.opened);

// ---- colours

const LOOKS = ["auto", "light", "dark"];
function look(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  at("theme").textContent = `Colours: ${name}`;
  at("theme").setAttribute("aria-label", name === "auto" ? "Colours: follow the system" : `Colours: ${name}`);
}
function remembered(name) {
  try {
    if (name) localStorage.setItem("jurygraph-look", name);
    return localStorage.getItem("jurygraph-look");
  } catch {
    return name; // Browsers may deny storage to a page that was opened from a file.
  }
}
let lookNow = LOOKS.includes(remembered()) ? remembered() : "auto";
look(lookNow);
at("theme").addEventListener("click", () => {
  lookNow = LOOKS[(LOOKS.indexOf(lookNow) + 1) % LOOKS.length];
  look(lookNow);
  remembered(lookNow);
});

// ---- sections, of which a telephone shows the first alone until another is asked for

const folds = [...document.querySelectorAll("details.fold")];
if (matchMedia("(max-width: 48rem)").matches) for (const fold of folds.slice(1)) fold.open = false;
for (const nav of document.querySelectorAll("header nav, nav.within")) {
  nav.addEventListener("click", (event) => {
    const fold = document.querySelector(`${event.target.hash || "#top"} > details.fold`);
    if (fold) fold.open = true;
  });
}

// ---- sorting and filters

const lowest = Number.NEGATIVE_INFINITY;
const ORDERS = {
  apart: ["Absolute error, largest first", (row) => rows.gap[row] ?? lowest],
  unresolved: ["Unresolved first", (row) => (["max_rounds", "budget"].includes(reasonOf(row)) ? 1 : 0)],
  failed: ["Failed first", (row) => (failed(row) ? 1 : 0)],
  changed: ["Score change, largest first", (row) => rows.moved[row] ?? lowest],
  dear: ["Cost, highest first", (row) => rows.cost[row] ?? lowest, (row) => rows.tokens[row]],
  long: ["Rounds, most first", (row) => rows.rounds[row] ?? lowest, (row) => rows.tokens[row]],
  run: ["Run order", () => 0],
};

/** Rows sorted by one of ORDERS; ties are broken by the absolute error, then by the order of the run. */
function ordered(found, name) {
  const [, first, second = (row) => rows.gap[row] ?? lowest] = ORDERS[name];
  if (name === "run") return found;
  const keys = new Map(found.map((row) => [row, [first(row), second(row)]]));
  return found.sort((one, other) => {
    const [a, b] = [keys.get(one), keys.get(other)];
    return b[0] - a[0] || b[1] - a[1] || one - other;
  });
}

function choices(select, named, all) {
  select.replaceChildren(...(all ? [make("option", { value: "" }, all)] : []), ...named.map(([value, text]) => make("option", { value }, inLine(text))));
  select.closest(".field").hidden = Boolean(all) && named.length < 2;
}

function prepare() {
  const labels = rows.gap.some((gap) => gap !== null);
  choices(at("sort"), Object.entries(ORDERS).filter(([name]) => labels || name !== "apart").map(([name, [text]]) => [name, text]));
  choices(at("run"), carried.runs.map(({ name }, number) => [number, name]), "All");
  choices(at("protocol"), carried.protocols.map((name, number) => [number, name]), "All");
  choices(at("aspect"), carried.aspects.map((name, number) => [number, name]), "All");
  choices(at("reason"), carried.reasons.map((name, number) => [number, name.replaceAll("_", " ")]), "All");
  const some = rows.ok.includes(0);
  choices(at("status"), some ? [["ok", "Judged"], ["failed", "Failed"]] : [], "All");
  if (labels) at("sort").value = "apart";
  else at("sort").value = "unresolved";
}

function chosen() {
  const wanted = ["run", "protocol", "aspect", "reason"].filter((name) => at(name).value !== "").map((name) => [rows[name], Number(at(name).value)]);
  const status = { ok: 1, failed: 0 }[at("status").value];
  const found = [];
  for (let row = 0; row < total; row += 1) {
    if (status !== undefined && rows.ok[row] !== status) continue;
    if (state.hits && !state.hits.has(row)) continue;
    if (wanted.every(([column, value]) => column[row] === value)) found.push(row);
  }
  return ordered(found, at("sort").value);
}

function refresh(note = "") {
  list.show(chosen());
  const of = list.found.length === total ? "" : ` of ${count(total)}`;
  at("count").textContent = `${count(list.found.length)}${of} ${total === 1 ? "verdict" : "verdicts"}${note}`;
}

// ---- search: one block at a time, so that the page stays responsive and shows first results early

const turnOfTheLoop = () => new Promise((resolve) => setTimeout(resolve));

async function search(sought) {
  const mine = ++state.search;
  state.sought = sought;
  state.hits = sought ? new Set() : null;
  if (!sought) return refresh();
  const needle = sought.toLowerCase();
  const within = namedSo(needle);
  const escaped = JSON.stringify(needle).slice(1, -1);
  const steps = [...stepsOf(texts, "texts"), ...stepsOf(transcripts, "transcripts")];
  const rowsIn = rowsByBlock();
  let told = performance.now();
  refresh(", searching …");
  for (const [place, { blocks, kind, number }] of steps.entries()) {
    const text = await blocks.text(number);
    if (mine !== state.search) return undefined;
    if (text.toLowerCase().includes(escaped)) {
      if (kind === "texts") findItems(JSON.parse(text), number, needle, within);
      else findDebates(JSON.parse(text), rowsIn[number], needle);
    }
    if (performance.now() - told > 120) {
      addRowsOf(within);
      refresh(`, searching: ${Math.round((100 * (place + 1)) / steps.length)}% …`);
      await turnOfTheLoop();
      if (mine !== state.search) return undefined;
      told = performance.now();
    }
  }
  addRowsOf(within);
  return refresh();
}

const stepsOf = (blocks, kind) => Array.from({ length: blocks.count }, (_, number) => ({ blocks, kind, number }));

function namedSo(needle) {
  const found = new Set();
  items.id.forEach((id, item) => id.toLowerCase().includes(needle) && found.add(item));
  return found;
}

function addRowsOf(within) {
  if (!within.size) return;
  for (let row = 0; row < total; row += 1) if (within.has(rows.item[row])) state.hits.add(row);
  within.clear();
}

function rowsByBlock() {
  const found = Array.from({ length: transcripts.count }, () => []);
  for (let row = 0; row < total; row += 1) found[rows.block[row]].push(row);
  return found;
}

function findItems({ items: held, strings }, number, needle, within) {
  const hit = strings.map((text) => text.toLowerCase().includes(needle));
  for (let item = 0; item < items.id.length; item += 1) {
    if (items.block[item] === number && held[items.place[item]].some(([, place]) => hit[place])) within.add(item);
  }
}

function findDebates(debates, rowsHere, needle) {
  for (const row of rowsHere) {
    const { transcript, error, warnings } = debates[rows.place[row]];
    const said = (transcript ?? []).some(({ content }) => content.toLowerCase().includes(needle));
    if (said || error?.toLowerCase().includes(needle) || warnings?.some((text) => text.toLowerCase().includes(needle))) state.hits.add(row);
  }
}

// ---- addresses: every debate, and every pair of debates, can be linked to

function addressOf(row, beside = -1) {
  const parts = new URLSearchParams({ item: itemOf(row), protocol: protocolOf(row) });
  if (aspectOf(row) !== null) parts.set("aspect", aspectOf(row));
  if (carried.runs.length > 1) parts.set("run", rows.run[row] + 1);
  if (rows.repeat[row]) parts.set("repeat", rows.repeat[row]);
  if (beside >= 0) parts.set("beside", [rows.run[beside] + 1, rows.repeat[beside], protocolOf(beside), aspectOf(beside) ?? ""].join("/"));
  return `#${parts}`;
}

function addressed() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (!parts.has("item")) return null;
  const wanted = (name, value) => !parts.has(name) || parts.get(name) === String(value ?? "");
  const row = rows.item.findIndex((_, place) =>
    itemOf(place) === parts.get("item") && wanted("protocol", protocolOf(place)) && wanted("aspect", aspectOf(place)) &&
    wanted("run", rows.run[place] + 1) && (parts.has("repeat") ? wanted("repeat", rows.repeat[place]) : true));
  const [run, repeat, protocol, ...aspect] = (parts.get("beside") ?? "").split("/");
  const beside = !protocol || row < 0 ? -1 : rowsOfItem(rows.item[row]).concat(others(row)).find((place) =>
    rows.run[place] + 1 === Number(run) && rows.repeat[place] === Number(repeat) && protocolOf(place) === protocol && (aspectOf(place) ?? "") === aspect.join("/")) ?? -1;
  return { row, beside, item: parts.get("item") };
}

/** The other debates on the same item: those on the same aspect first. */
function others(row) {
  const same = (place) => Number(aspectOf(place) === aspectOf(row));
  return rowsOfItem(rows.item[row]).filter((place) => place !== row).sort((one, other) => same(other) - same(one) || one - other);
}

async function route({ focus = false } = {}) {
  const found = addressed();
  if (!found) return close();
  if (found.row < 0) {
    state.opened = -1;
    at("open").replaceChildren(make("p", { class: "empty" }, `No verdict on the item ${inLine(found.item)} is on this page.`));
    return reader.parentElement.classList.add("reading");
  }
  await openRow(found.row, found.beside);
  if (focus) at("open").querySelector("h3")?.focus({ preventScroll: true });
  return undefined;
}

async function openRow(row, beside) {
  const again = state.opened === row;
  Object.assign(state, { opened: row, beside });
  list.mark(row);
  let shown;
  try {
    shown = await sheets([row, beside].filter((place) => place >= 0), state.sought);
  } catch (error) {
    shown = [make("p", { class: "error" }, `This transcript cannot be unpacked: ${error.message}`)];
  }
  if (state.opened !== row || state.beside !== beside) return;
  reader.parentElement.classList.add("reading");
  at("open").replaceChildren(bar(row, beside), ...shown);
  const top = at("open").getBoundingClientRect().top;
  if (!again || top < 0) scrollBy({ top: top - 76, behavior: "instant" });
}

function close() {
  Object.assign(state, { opened: -1, beside: -1 });
  reader.parentElement.classList.remove("reading");
  list.mark(-1, false);
  at("open").replaceChildren(make("p", { class: "empty" }, total ? "Select a verdict to read its transcript." : "There are no verdicts."));
}

function bar(row, beside) {
  const button = (text, act, attributes = {}) => {
    const made = make("button", { type: "button", ...attributes }, text);
    made.addEventListener("click", act);
    return made;
  };
  const made = make("div", { class: "bar" }, button("← All verdicts", leave, { class: "back" }), button("Previous", () => step(-1)), button("Next", () => step(1)));
  const rest = others(row);
  if (rest.length) {
    const select = make("select", { id: "beside" }, make("option", { value: "" }, "nothing"), ...rest.map((place) => make("option", { value: place }, inLine(title(place)))));
    select.value = beside >= 0 ? String(beside) : "";
    select.addEventListener("change", () => {
      history.pushState(null, "", addressOf(row, select.value === "" ? -1 : Number(select.value)));
      route().then(() => at("beside")?.focus({ preventScroll: true }));
    });
    made.append(make("label", { for: "beside", class: "push" }, "Compare with"), select);
  }
  return made;
}

function step(steps) {
  const row = list.beyond(steps);
  if (row === undefined || row === state.opened) return;
  history.replaceState(null, "", addressOf(row));
  route();
}

/** Go back to the list, to the debate that was open. */
function leave() {
  const { opened } = state;
  history.pushState(null, "", "#debates");
  close();
  list.mark(opened);
  list.focus();
}

// ---- keys

function typing(target) {
  return target.matches("input, select, textarea, [contenteditable]");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const { key, target } = event;
  if (key === "Escape") return escape(target);
  if (typing(target)) {
    if (key === "Enter" && target.id === "search") event.preventDefault();
    return;
  }
  const inList = at("list").contains(target);
  if (key === "/") {
    at("search").focus();
    at("search").select();
  } else if (key === "j" || (key === "ArrowDown" && inList)) step(1);
  else if (key === "k" || (key === "ArrowUp" && inList)) step(-1);
  else return;
  event.preventDefault();
});

function escape(target) {
  if (target.id === "search") {
    if (target.value) {
      clearTimeout(waiting);
      target.value = "";
      search("");
    } else list.focus();
  } else if (state.beside >= 0) {
    history.replaceState(null, "", addressOf(state.opened));
    route();
  } else if (state.opened >= 0) leave();
}

// ---- start

let waiting = 0;
at("search").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => search(at("search").value.trim()), 150);
});
filters.addEventListener("submit", (event) => event.preventDefault());
filters.addEventListener("change", (event) => event.target.matches("select") && refresh());
at("rows").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  route({ focus: true });
});
addEventListener("popstate", () => route());

prepare();
filters.hidden = reader.hidden = false;
at("unscripted").remove();
if (total === 0) filters.hidden = true;
refresh();
route();
document.documentElement.dataset.ready = "";
