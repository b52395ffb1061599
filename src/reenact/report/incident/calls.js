// The list of calls: a tree of which only the rows in view exist, a search above it, the chosen call beside it.

const SPARE = 10; // rows kept above and below the view
const KEYS = "↑ ↓ move · ← → fold · Enter read the call · / search";

class Calls {
  constructor(list, data, home) {
    this.list = list;
    this.data = data;
    this.filter = new Filter(list, data);
    this.kinds = new Set();
    this.folded = new Set();
    this.chosen = -1;
    this.first = this.last = -1;
    this.relate();
    this.build(home);
    this.refresh();
  }

  // Work out parents, and each call's place among its siblings, from the depths.
  relate() {
    const rows = this.list.rows;
    this.parent = new Int32Array(rows.length).fill(-1);
    this.children = new Int32Array(rows.length + 1);
    this.nth = new Int32Array(rows.length);
    const open = [];
    for (let place = 0; place < rows.length; place++) {
      open.length = Math.min(open.length, rows[place][1]);
      const above = open.length ? open[open.length - 1] : -1;
      this.parent[place] = above;
      this.nth[place] = ++this.children[above < 0 ? rows.length : above];
      open.push(place);
    }
  }

  build(home) {
    const all = this.list.rows.length;
    this.query = el("input", { type: "search", id: "query", placeholder: "Search: any text, kind:tool, name:delete, \"a phrase\"",
      "aria-label": "Search the calls", autocomplete: "off", spellcheck: "false", on: { input: () => this.later(), keydown: (event) => this.typed(event) } });
    this.told = el("output", { class: "told", "aria-live": "polite" });
    const numbers = new Array(this.list.kinds.length).fill(0);
    for (const row of this.list.rows) numbers[row[2]]++;
    const chips = this.list.kinds.map((word, kind) => el("button", { type: "button", class: `chip k-${kindClass(word)}`, "aria-pressed": "false",
      on: { click: (event) => this.toggle(kind, event.currentTarget) } }, word, " ", el("span", { class: "dim" }, count(numbers[kind]))));
    this.only = el("input", { type: "checkbox", id: "only", on: { change: () => this.refresh() } });
    const differ = Object.keys(this.list.signs).length;
    const bar = el("div", { class: "tools", role: "search" }, this.query, el("div", { class: "chips", role: "group", "aria-label": "Kinds of calls" }, chips),
      differ ? el("label", { for: "only", class: "only" }, this.only, ` only the ${count(differ)} that differ`) : null, this.told);
    this.rows = el("div", { class: "rows", role: "presentation" });
    this.tree = el("div", { class: "tree", role: "tree", tabindex: "0", "aria-label": `The ${count(all)} calls of the run, as they hang below each other`,
      on: { scroll: () => this.draw(), keydown: (event) => this.pressed(event), click: (event) => this.clicked(event) } }, this.rows);
    this.side = el("div", { class: "chosen", role: "region", tabindex: "0", "aria-label": "The chosen call" });
    const heads = el("div", { class: "heads", "aria-hidden": "true" }, el("span", {}, "Call"), el("span", {}, "Asked → came to"), el("span", {}, "When"), el("span", {}, "Took"));
    home.append(bar, el("div", { class: "split" }, el("div", { class: "left" }, heads, this.tree, el("p", { class: "keys dim" }, this.list.parting === null ? KEYS : `${KEYS} · d first difference`)), this.side));
    if ("ResizeObserver" in window) new ResizeObserver(() => this.draw(true)).observe(this.tree);
  }

  toggle(kind, chip) {
    if (this.kinds.has(kind)) this.kinds.delete(kind); else this.kinds.add(kind);
    chip.setAttribute("aria-pressed", String(this.kinds.has(kind)));
    this.refresh();
  }

  later() {
    clearTimeout(this.waiting);
    this.tree.setAttribute("aria-busy", "true");
    this.waiting = setTimeout(() => this.refresh(), 60);
  }

  get narrowed() {
    return this.query.value.trim() !== "" || this.kinds.size > 0 || this.only.checked;
  }

  // Work out which rows there are: those that fit with what they hang below, or all that are not folded away.
  refresh() {
    const rows = this.list.rows;
    this.tree.removeAttribute("aria-busy");
    this.seen = [];
    if (this.narrowed) {
      this.fits = new Set(this.filter.matching(this.query.value, this.kinds, this.only.checked));
      const kept = new Set();
      for (const place of this.fits) for (let at = place; at >= 0 && !kept.has(at); at = this.parent[at]) kept.add(at);
      for (let place = 0; place < rows.length; place++) if (kept.has(place)) this.seen.push(place);
      this.told.textContent = `${count(this.fits.size)} of ${count(rows.length)} calls`;
    } else {
      this.fits = null;
      for (let place = 0; place < rows.length; place++) {
        this.seen.push(place);
        if (this.folded.has(place)) {
          const depth = rows[place][1];
          while (place + 1 < rows.length && rows[place + 1][1] > depth) place++;
        }
      }
      this.told.textContent = `${count(rows.length)} calls`;
    }
    this.high = 0; // measured again, for the number of rows
    this.draw(true);
  }

  // Rows are as high as the style says, which depends on the width.
  measure() {
    const high = parseInt(getComputedStyle(this.tree).getPropertyValue("--row"), 10) || 38;
    if (high === this.high) return;
    this.high = high;
    this.rows.style.height = `${this.seen.length * high}px`;
  }

  draw(anew = false) {
    if (anew) this.measure();
    const top = this.tree.scrollTop;
    const first = Math.max(0, Math.floor(top / this.high) - SPARE);
    const last = Math.min(this.seen.length, Math.ceil((top + (this.tree.clientHeight || 600)) / this.high) + SPARE);
    if (!anew && first === this.first && last === this.last) return;
    this.first = first;
    this.last = last;
    const made = [];
    for (let at = first; at < last; at++) made.push(this.row(this.seen[at], at));
    this.rows.replaceChildren(...made);
    if (!this.seen.length) this.rows.append(el("p", { class: "none" }, "No call fits. Search for fewer words, or take a filter off."));
    this.mark();
  }

  row(place, at) {
    const [number, depth, kind, name, start, took, question, answer, marks] = this.list.rows[place];
    const word = this.list.kinds[kind];
    const sign = this.list.signs[place];
    const below = this.children[place] > 0;
    const folded = this.folded.has(place);
    const above = this.parent[place];
    const indent = el("span", { class: "indent" });
    indent.style.width = `${Math.min(depth, 12) * 14}px`;
    const bar = el("span", { class: `bar k-${kindClass(word)}` });
    const share = (value) => Math.min(100, Math.max(0, 100 * value / this.list.total));
    bar.style.left = `${Math.min(99.4, share(start))}%`;
    bar.style.width = `${share(took || 0)}%`;
    const flags = marks.map((mark) => el("span", { class: "flag bad" }, shown(mark)));
    if (sign) flags.push(el("span", { class: `flag sign-${sign}` }, place === this.list.parting ? "parts here" : sign === "missing" ? "not made" : sign));
    const made = el("div", { class: "row", role: "treeitem", id: `row-${place}`, "data-place": place, "aria-level": depth + 1,
      "aria-posinset": this.nth[place], "aria-setsize": this.children[above < 0 ? this.list.rows.length : above],
      "aria-expanded": below ? String(!folded) : null, "aria-selected": String(place === this.chosen) },
    el("span", { class: "what" }, indent, el("span", { class: "fold", "aria-hidden": "true" }, below ? (folded ? "▸" : "▾") : ""),
      el("span", { class: `kind k-${kindClass(word)}` }, word), el("span", { class: "name" }, shown(name)), el("span", { class: "dim" }, `#${number}`)),
    el("span", { class: "sum" }, flags, flags.length ? " " : "", el("bdi", {}, shown(question)), question || answer ? el("span", { class: "dim" }, " → ") : "", el("bdi", {}, shown(answer))),
    el("span", { class: "track", "aria-hidden": "true" }, bar), el("span", { class: "took" }, duration(took)));
    made.style.top = `${at * this.high}px`;
    if (this.fits && !this.fits.has(place)) made.classList.add("around");
    if (place === this.list.parting) made.classList.add("parts");
    return made;
  }

  mark() {
    for (const row of this.rows.children) if (row.dataset.place) row.setAttribute("aria-selected", String(Number(row.dataset.place) === this.chosen));
    if (document.getElementById(`row-${this.chosen}`)) this.tree.setAttribute("aria-activedescendant", `row-${this.chosen}`);
    else this.tree.removeAttribute("aria-activedescendant");
  }

  // Choose a call: show it beside the list and bring its row into view.
  choose(place, { named = true } = {}) {
    if (!(place >= 0 && place < this.list.rows.length)) return false;
    this.chosen = place;
    if (!this.seen.includes(place)) this.reveal(place);
    const at = this.seen.indexOf(place);
    if (at >= 0) {
      const view = this.tree.clientHeight;
      if (at * this.high < this.tree.scrollTop) this.tree.scrollTop = (at - 1) * this.high;
      else if ((at + 2) * this.high > this.tree.scrollTop + view) this.tree.scrollTop = (at + 2) * this.high - view;
    }
    this.draw(true);
    this.side.replaceChildren(el("p", { class: "back" }, el("button", { type: "button", class: "small", on: { click: () => this.back() } }, "↑ Back to the list")),
      new Detail(this.list, this.data()).build(place));
    this.side.scrollTop = 0;
    if (named) { try { history.replaceState(null, "", `#call-${place}`); } catch { /* a page without an address */ } }
    return true;
  }

  // Take away what hides a call: filters, folded parents.
  reveal(place) {
    for (let at = this.parent[place]; at >= 0; at = this.parent[at]) this.folded.delete(at);
    if (this.fits && !this.fits.has(place)) {
      this.query.value = "";
      this.only.checked = false;
      this.kinds.clear();
      for (const chip of document.querySelectorAll(".chip")) chip.setAttribute("aria-pressed", "false");
    }
    this.refresh();
  }

  back() {
    this.tree.scrollIntoView({ block: "center" });
    this.tree.focus({ preventScroll: true });
  }

  fold(place, closed) {
    if (this.fits || !this.children[place]) return;
    if (closed) this.folded.add(place); else this.folded.delete(place);
    this.refresh();
  }

  clicked(event) {
    const row = event.target.closest(".row");
    if (!row) return;
    const place = Number(row.dataset.place);
    if (event.target.classList.contains("fold")) this.fold(place, !this.folded.has(place));
    else {
      this.choose(place);
      if (this.side.offsetTop > this.tree.offsetTop + 50) this.side.scrollIntoView({ block: "start" });
    }
  }

  typed(event) {
    if (event.key === "Escape" && this.query.value) { this.query.value = ""; this.refresh(); event.preventDefault(); }
    else if (event.key === "ArrowDown" || event.key === "Enter") {
      this.refresh();
      const first = this.fits ? [...this.fits][0] : this.seen[0];
      if (first !== undefined) { this.choose(first); this.tree.focus(); }
      event.preventDefault();
    }
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.seen.indexOf(this.chosen);
    const page = Math.max(1, Math.floor(this.tree.clientHeight / this.high) - 1);
    const go = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.seen.length - 1, PageDown: at + page, PageUp: at - page }[event.key];
    if (go !== undefined) this.choose(this.seen[Math.min(this.seen.length - 1, Math.max(0, go))]);
    else if (event.key === "ArrowLeft") {
      if (this.children[this.chosen] && !this.folded.has(this.chosen)) this.fold(this.chosen, true);
      else if (this.parent[this.chosen] >= 0) this.choose(this.parent[this.chosen]);
    } else if (event.key === "ArrowRight") this.fold(this.chosen, false);
    else if (event.key === "Enter") { this.side.focus(); this.side.scrollIntoView({ block: "nearest" }); }
    else return;
    event.preventDefault();
  }
}
