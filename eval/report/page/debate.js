// One debate, round by round: who said what, the parsed value, and score changes.

const DECIDING = new Set(["scores", "panel", "decides", "votes"]);
/** Agents on the right side of the page: those who object, and those who argue for the second answer. */
const against = ({ kind, role, agent }) => kind === "objects" || (kind === "argues" && agent.startsWith(`${role}_2`));
const BRIEF = 40;

/** One debate, or two side by side with the judged texts above both. */
async function sheets(shown, sought) {
  const [row] = shown;
  const made = await Promise.all(shown.map((one) => sheet(one, sought)));
  const about = await judgedTexts(row, sought);
  if (made.length === 1) made[0].querySelector(".facts").after(about);
  const holder = make("div", { class: made.length > 1 ? "sheets two" : "sheets" }, ...made);
  return made.length > 1 ? [about, holder] : [holder];
}

/** One verdict: its facts and its transcript. */
async function sheet(row, sought) {
  const debate = (await transcripts.list(rows.block[row]))[rows.place[row]];
  const heading = make("h3", { tabindex: "-1" }, ...nodes(itemOf(row), sought));
  return make(
    "article",
    { class: "sheet", "aria-label": inLine(`${itemOf(row)}: ${title(row)}`) },
    heading,
    make("p", { class: "about" }, inLine(title(row))),
    facts(row, debate),
    failed(row) ? make("div", { class: "error" }, ...nodes(debate.error ?? "no verdict, and no reason was recorded", sought)) : null,
    ...(debate.warnings ?? []).filter((text) => !carried.disclosures.includes(text)).map((text) => make("p", { class: "warning" }, ...nodes(text, sought))),
    ...rounds(debate.transcript ?? [], sought),
    more(debate.details),
  );
}

const title = (row) =>
  [protocolOf(row), aspectOf(row), rows.repeat[row] ? `repeat ${rows.repeat[row]}` : null, carried.runs.length > 1 ? runOf(row).name : null]
    .filter(Boolean).join(" · ");

function facts(row, debate) {
  const fact = (name, value, large = false) =>
    value === null || value === undefined ? null : make("div", {}, make("dt", {}, name), make("dd", { class: large ? "large" : null }, value));
  const path = (debate.score_by_round ?? []).map(valueOf).join(" → ");
  // A judge that works alone debates with nobody: it has no rounds, and nothing stopped it.
  const alone = reasonOf(row) === "complete" && rows.rounds[row] <= 1;
  return make(
    "dl",
    { class: "facts" },
    fact("Verdict", failed(row) ? "none" : inFull(verdictOf(row)), true),
    fact("Label", labelOf(row) === null ? null : inFull(labelOf(row), rows.winner[row] !== null), true),
    rows.gap[row] === null ? null : fact(rows.winner[row] === null ? "Absolute error" : "Compared with the label", error(row), true),
    fact("Score by round", alone ? null : path || null),
    fact("Stop reason", alone ? null : reasonOf(row)?.replaceAll("_", " ")),
    fact("Rounds", alone ? null : rows.rounds[row]),
    fact("Calls", count(rows.calls[row])),
    fact("Tokens", rows.tokens[row] === null ? "unknown" : count(rows.tokens[row])),
    fact("Cost", dollars(rows.cost[row])),
  );
}

/** `8 : 6 → 1` is `8 : 6 → answer 1`; so is `1` alone, where answers were compared. */
const inFull = (text, alone = false) => text.replace(alone ? /^([12])$/ : /→ ([12])$/, (found, winner) => found.replace(winner, `answer ${winner}`));

/** The error of a verdict: points of the scale, or whether the same answer won. */
function error(row) {
  if (rows.winner[row] === null) return figure(rows.distance[row]);
  return rows.gap[row] === 0 ? "same winner" : rows.gap[row] < 1 ? "one is a tie" : "other winner";
}

async function judgedTexts(row, sought) {
  const item = rows.item[row];
  if (items.block[item] < 0) return make("p", { class: "note" }, runOf(row).without);
  const { fields, strings } = await textsOf(item);
  const parts = fields.map(([name, place]) =>
    make("div", {}, make("h4", {}, inLine(name).replaceAll("_", " ")), prose(strings[place], sought, "div", "text")));
  const answers = fields.map(([name], place) => (name.startsWith("answer_") ? place : -1)).filter((place) => place >= 0);
  const pair = answers.length === 2 ? [make("div", { class: "pair" }, parts[answers[0]], parts[answers[1]])] : [];
  const others = pair.length ? parts.filter((_, place) => !answers.includes(place)) : parts;
  return make("details", { class: "texts", open: true }, make("summary", {}, "Judged texts"), make("div", {}, ...others, ...pair));
}

async function textsOf(item) {
  const block = await texts.list(items.block[item]);
  return { fields: block.items[items.place[item]], strings: block.strings };
}

function rounds(transcript, sought) {
  const before = new Map();
  const made = [];
  let current = null;
  for (let place = 0; place < transcript.length; place += 1) {
    const turn = transcript[place];
    const heading = headingOf(turn);
    if (current?.heading !== heading) {
      current = { heading, list: make("ol", { class: "turns" }) };
      made.push(make("section", { class: "round" }, make("h4", {}, inLine(heading)), current.list));
    }
    const samples = samplesFrom(transcript, place, heading);
    current.list.append(samples.length > 1 ? sampled(samples, sought) : said(turn, before, sought));
    place += Math.max(samples.length, 1) - 1;
  }
  return made;
}

/** The heading of a round; in wrappers also the judge of a cascade, the repeat, the order of the answers. */
function headingOf(turn) {
  const parts = [turn.stage, turn.repeat === undefined ? null : `run ${turn.repeat + 1}`];
  parts.push({ 1: "as given", 2: "answers swapped" }[turn.order], turn.round ? `round ${turn.round}` : "opening");
  return parts.filter(Boolean).join(" · ").replace(/^./, (letter) => letter.toUpperCase());
}

/** Consecutive short samples of one agent, which are shown as one turn. */
function samplesFrom(transcript, from, heading) {
  const first = transcript[from];
  if (first.sample === undefined) return [];
  let to = from;
  while (to < transcript.length && transcript[to].sample !== undefined && transcript[to].agent === first.agent && headingOf(transcript[to]) === heading) to += 1;
  const found = transcript.slice(from, to);
  const brief = found.every(({ content }) => content.length <= BRIEF) || found.every(({ content }) => content === first.content);
  return brief ? found : [];
}

function sampled(samples, sought) {
  const [first] = samples;
  const values = samples.map(({ value }) => make("span", { class: "chip" }, valueOf(value) ?? "unreadable"));
  return make(
    "li",
    { class: "turn deciding" },
    make("p", { class: "speaks" }, make("b", {}, speaker(first.agent)), `${samples.length} samples`, model(first)),
    first.content.length > BRIEF ? prose(first.content, sought) : null,
    make("p", { class: "speaks" }, ...values),
  );
}

function said(turn, before, sought) {
  if (turn.model === null && turn.kind === "assists") {
    return make("li", { class: "turn relay" }, prose(turn.content, sought));
  }
  const kind = against(turn) ? " against" : DECIDING.has(turn.kind) ? " deciding" : "";
  return make(
    "li",
    { class: `turn${kind}` },
    make("p", { class: "speaks" }, make("b", {}, speaker(turn.agent)), chip(turn.value), moved(turn, before), model(turn)),
    turn.problem ? make("p", { class: "speaks" }, make("span", { class: "chip warn" }, "left out"), inLine(turn.problem)) : null,
    ...(turn.evidence ?? []).map(evidence),
    prose(turn.content, sought),
  );
}

/** The result of a tool call, to be opened, and whether the reply cites it. */
function evidence({ id, tool, result, cited }) {
  const heading = `${id}, ${cited ? "cited" : "not cited"}: ${tool}`;
  return make("details", { class: "more" }, make("summary", {}, inLine(heading)), prose(result, "", "pre", ""));
}

const model = (turn) => (turn.model ? make("span", { class: "model" }, inLine(turn.model)) : null);

function chip(value) {
  const text = valueOf(value);
  if (text === null) return null;
  return make("span", { class: value === true ? "chip good" : value === false ? "chip warn" : "chip" }, text);
}

/** A chip that marks a turn in which an agent changes its value. */
function moved(turn, before) {
  if (typeof turn.value === "boolean" || turn.value === null || turn.value === undefined) return null;
  const key = [turn.agent, turn.order, turn.repeat, turn.stage].join("\n");
  const old = before.get(key);
  before.set(key, turn.value);
  if (old === undefined || String(old) === String(turn.value)) return null;
  return make("span", { class: "chip moved" }, `changed from ${valueOf(old)}`);
}

function more(details) {
  if (!details || !Object.keys(details).length) return null;
  return make("details", { class: "more" }, make("summary", {}, "Details"), prose(JSON.stringify(details, null, 2), "", "pre", ""));
}
