// The data of the page: an index of all verdicts in columns, and transcripts and texts in compressed blocks.

const carried = JSON.parse(document.getElementById("index").textContent);
const { rows, items } = carried;
const total = rows.item.length;

/** Unpacks blocks and caches the last few, so that reading on is fast and memory stays small. */
class Blocks {
  static kept = 12;

  constructor(prefix, count) {
    this.prefix = prefix;
    this.count = count;
    this.parsed = new Map();
  }

  /** The text of a block: a JSON list. */
  async text(number) {
    const packed = atob(document.getElementById(`${this.prefix}${number}`).textContent);
    const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  /** The parsed content of a block. */
  async list(number) {
    let list = this.parsed.get(number);
    this.parsed.delete(number);
    list ??= JSON.parse(await this.text(number));
    this.parsed.set(number, list);
    if (this.parsed.size > Blocks.kept) this.parsed.delete(this.parsed.keys().next().value);
    return list;
  }
}

const transcripts = new Blocks("t", carried.blocks.transcripts);
const texts = new Blocks("i", carried.blocks.texts);

const itemOf = (row) => items.id[rows.item[row]];
const protocolOf = (row) => carried.protocols[rows.protocol[row]];
const aspectOf = (row) => (rows.aspect[row] < 0 ? null : carried.aspects[rows.aspect[row]]);
const runOf = (row) => carried.runs[rows.run[row]];
const reasonOf = (row) => (rows.reason[row] < 0 ? null : carried.reasons[rows.reason[row]]);
const failed = (row) => rows.ok[row] === 0;

/** The rows of each item, computed at the first call. */
let byItem = null;
function rowsOfItem(item) {
  if (!byItem) {
    byItem = new Map();
    rows.item.forEach((number, row) => (byItem.get(number) ?? byItem.set(number, []).get(number)).push(row));
  }
  return byItem.get(item) ?? [];
}
