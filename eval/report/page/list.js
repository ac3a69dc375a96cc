// The list of debates. Only the rows in view are in the document, so that it may be long.

const HEIGHT = 66;
const SPARE = 8;

class List {
  constructor(frame, holder, opened) {
    Object.assign(this, { frame, holder, opened, found: [], current: -1, shown: new Map() });
    frame.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(frame);
  }

  show(found) {
    this.found = found;
    this.clear();
    this.holder.style.height = `${found.length * HEIGHT}px`;
    this.draw();
  }

  clear() {
    this.holder.replaceChildren();
    this.shown.clear();
  }

  /** Mark the row that is open, and scroll it into view. */
  mark(row, intoView = true) {
    this.current = row;
    const place = this.found.indexOf(row);
    if (place >= 0 && intoView) {
      const top = place * HEIGHT;
      const { scrollTop, clientHeight } = this.frame;
      if (top < scrollTop) this.frame.scrollTop = top;
      else if (top + HEIGHT > scrollTop + clientHeight) this.frame.scrollTop = top + HEIGHT - clientHeight;
    }
    const focused = this.holder.contains(document.activeElement);
    this.draw();
    for (const [shown, element] of this.shown) {
      if (this.found[shown] === row) element.firstChild.setAttribute("aria-current", "true");
      else element.firstChild.removeAttribute("aria-current");
    }
    if (focused) this.focus();
  }

  focus() {
    const place = Math.max(0, this.found.indexOf(this.current));
    this.shown.get(place)?.firstChild.focus({ preventScroll: true });
  }

  draw() {
    const { scrollTop, clientHeight } = this.frame;
    const from = Math.max(0, Math.floor(scrollTop / HEIGHT) - SPARE);
    const to = Math.min(this.found.length, Math.ceil((scrollTop + clientHeight) / HEIGHT) + SPARE);
    for (const [place, element] of this.shown) {
      if ((place < from || place >= to) && !element.contains(document.activeElement)) {
        element.remove();
        this.shown.delete(place);
      }
    }
    for (let place = from; place < to; place += 1) {
      if (!this.shown.has(place)) this.add(place);
    }
  }

  add(place) {
    const row = this.found[place];
    const element = make("li", { "aria-setsize": this.found.length, "aria-posinset": place + 1 }, line(row));
    element.style.top = `${place * HEIGHT}px`;
    if (row === this.current) element.firstChild.setAttribute("aria-current", "true");
    this.shown.set(place, element);
    // Keep the document in reading order, whichever way was scrolled: screen readers follow it.
    const next = [...this.shown].filter(([other]) => other > place).sort(([one], [other]) => one - other)[0];
    this.holder.insertBefore(element, next ? next[1] : null);
  }

  /** The row `steps` places after the one that is open. */
  beyond(steps) {
    const place = this.found.indexOf(this.current);
    const next = place < 0 ? 0 : Math.min(this.found.length - 1, Math.max(0, place + steps));
    return this.found[next];
  }
}

function line(row) {
  const label = labelOf(row);
  const far = rows.gap[row] !== null && rows.gap[row] >= 0.5;
  const ended = reasonOf(row)?.replaceAll("_", " ");
  return make(
    "a",
    { href: addressOf(row) },
    make("span", { class: "id" }, inLine(itemOf(row))),
    make("span", { class: failed(row) ? "verdict failed" : far ? "verdict far" : "verdict" }, verdictOf(row)),
    make("span", { class: "what" }, inLine([title(row), ended].filter(Boolean).join(" · "))),
    make("span", { class: "people" }, label === null ? "" : `label ${label}`),
  );
}
