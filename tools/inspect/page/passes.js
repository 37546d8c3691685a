// SPDX-License-Identifier: Apache-2.0
//
// A column for each pass. Of its operations those in sight are elements.

const rowHeight = 22; // pixels, as the style has it

// What stands before the first operation that computes something.
const isFrame = operation => ["module", "func.func", "argument"].includes(kindOf(operation));

class Column {
  constructor(pass, position) {
    this.pass = pass;
    this.number = position;
    this.changes = changesOf(position);
    this.marks = this.matches = this.selected = undefined;
    this.build();
    this.cursor = Math.max(0, pass.operation.findIndex(text => !isFrame(strings[text])));
    this.fold(this.change() === "no change");
  }

  // In a few words.
  change() {
    const { added, removed, fresh } = this.changes;
    if (this.number === 0) return number(this.pass.count);
    if (this.pass.reordered) return "other order";
    if (added + removed + fresh === 0) return "no change";
    const texts = [added && "+" + number(added), removed && "−" + number(removed)].filter(Boolean);
    return texts.join(" ") || `${number(fresh)} changed`;
  }

  build() {
    this.opener = make("button", { type: "button", class: "open", title: "what the pass changed" }, this.pass.pass);
    this.folder = make("button", { type: "button", class: "fold", title: "open or fold" });
    const small = make("small", { title: "operations added and removed, by kind" }, this.change());
    this.space = make("div", { style: `height: ${this.pass.count * rowHeight}px` });
    this.list = make("div", { class: "operations", role: "listbox", tabindex: -1, "aria-label": this.pass.pass },
      this.space);
    this.element = make("section", { class: "card", "aria-label": "pass " + this.pass.pass },
      make("div", { class: "pass-title" }, this.folder, this.opener, small), this.list);
    this.list.addEventListener("scroll", () => this.paintSoon());
  }

  fold(isFolded) {
    this.isFolded = isFolded;
    this.element.classList.toggle("folded", isFolded);
    this.folder.textContent = isFolded ? "▸" : "▾";
    this.folder.setAttribute("aria-expanded", String(!isFolded));
    this.folder.setAttribute("aria-label", (isFolded ? "open " : "fold ") + this.pass.pass);
  }

  paintSoon() {
    if (this.isPainting) return;
    this.isPainting = true;
    requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.isPainting = false;
    if (this.isFolded) return;
    const first = Math.max(0, Math.floor(this.list.scrollTop / rowHeight) - 5);
    const last = Math.min(this.pass.count, first + Math.ceil(this.list.clientHeight / rowHeight) + 10);
    const rows = [];
    for (let i = first; i < last; ++i) rows.push(this.row(i));
    this.space.replaceChildren(...rows);
    if (this.cursor >= first && this.cursor < last)
      this.list.setAttribute("aria-activedescendant", this.idOf(this.cursor));
    else this.list.removeAttribute("aria-activedescendant");
  }

  idOf(index) { return `operation-${this.number}-${index}`; }

  row(i) {
    const { pass } = this, mark = this.marks && this.marks[i];
    const classes = ["operation", mark === SAME && "same", mark === RELATED && "related",
      this.matches && this.matches[i] && "match", i === this.selected && "selected", i === this.cursor && "cursor",
      this.number > 0 && !pass.new[i] && "old"];
    const names = namesOf(pass, i).map(name => name.title), operation = operationOf(pass, i);
    const indent = `padding-left: ${0.4 + 0.7 * Math.max(0, pass.depth[i] - 1)}rem; top: ${i * rowHeight}px`;
    return make("div", { class: classes.filter(Boolean).join(" "), style: indent, role: "option", id: this.idOf(i),
      "data-index": i, "aria-selected": String(i === this.selected), "aria-setsize": pass.count,
      "aria-posinset": i + 1 },
    make("span", { class: "what" }, operation), make("span", { class: "of" }, operation.endsWith("%" + names[0]) ? ""
      : names.length > 2 ? `${names[0]} and ${names.length - 1} more` : names.join(", ")),
    make("span", { class: "type" }, strings[pass.type[i]]));
  }

  // Where the operation is not in sight, into the middle.
  show(index) {
    const top = index * rowHeight, { scrollTop, clientHeight } = this.list;
    if (top < scrollTop || top + rowHeight > scrollTop + clientHeight)
      this.list.scrollTop = Math.max(0, top - clientHeight / 2);
  }

  // The first with the mark, or at least a weaker one; -1 where there is none.
  firstRelated(marks = this.marks) {
    const found = marks.indexOf(SAME);
    return found >= 0 ? found : marks.indexOf(RELATED);
  }
}
