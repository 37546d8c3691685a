// SPDX-License-Identifier: Apache-2.0
//
// Selecting, searching and moving: by the pointer and by keys.

const place = document.getElementById("passes"), box = document.getElementById("search");
const counter = document.getElementById("count"), only = document.getElementById("changed");
const help = document.getElementById("help");
const columns = passes.map((pass, i) => new Column(pass, i));
let current = columns.find(each => !each.isFolded) || columns[0];
let selected; // { column, index }

const paintAll = () => columns.forEach(each => each.paintSoon());
const open = () => columns.filter(each => !each.isFolded);

function setCurrent(next) {
  for (const each of columns) {
    each.element.classList.toggle("current", each === next);
    each.list.setAttribute("tabindex", each === next ? "0" : "-1");
  }
  current = next;
}

// The cursor, with its column in sight and in focus.
function moveTo(next, index) {
  const isMoved = next !== current;
  if (next.isFolded) next.fold(false);
  setCurrent(next);
  next.cursor = Math.max(0, Math.min(next.pass.count - 1, index));
  next.show(next.cursor);
  if (isMoved) next.element.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (document.activeElement !== box) next.list.focus({ preventScroll: true });
  paintAll();
}

const marksOf = (pass, index) => relationsOf(namesOf(pass, index), kernelOf(operationOf(pass, index)));

function select(next, index) {
  selected = { column: next, index };
  const marks = marksOf(next.pass, index);
  columns.forEach((each, i) => {
    each.marks = marks[i];
    each.selected = each === next ? index : undefined;
    const first = each === next ? index : each.firstRelated();
    if (first >= 0) each.show(first);
  });
  showOperation(next.pass, index, marks, (number, at) => moveTo(columns[number], at), searchFor);
  moveTo(next, index);
}

function clear() {
  selected = undefined;
  for (const each of columns) each.marks = each.selected = undefined;
  showNothing();
  paintAll();
}

// ---- Search

function searchFor(text) {
  box.value = text;
  find();
}

function find() {
  const matches = matchesOf(box.value);
  columns.forEach((each, i) => { each.matches = matches && matches[i]; });
  const total = matches ? matches.reduce((sum, found) => sum + found.reduce((all, flag) => all + flag, 0), 0) : 0;
  counter.textContent = !matches ? "" : total ? number(total) + " matches" : "nothing matches";
  paintAll();
}

// From the cursor on, and round; in passes that are open.
function nextMatch(step) {
  if (!current.matches) return;
  const all = open().flatMap(each =>
    [...each.matches.keys()].filter(i => each.matches[i]).map(index => ({ column: each, index })));
  if (!all.length) return;
  const order = at => at.column.number * 1e9 + at.index;
  const here = order({ column: current, index: current.cursor });
  const isHere = all.some(at => order(at) === here);
  let next = all.findIndex(at => order(at) > here);
  if (step > 0 && !nextMatch.went && isHere) next = all.findIndex(at => order(at) === here);
  if (step < 0) next = all.map(order).filter(number => number < here).length - 1;
  nextMatch.went = true;
  const at = all[(next + all.length) % all.length] || all[0];
  select(at.column, at.index);
  counter.textContent = `${number(all.indexOf(at) + 1)} of ${number(all.length)} in open passes`;
}

box.addEventListener("input", () => {
  nextMatch.went = false;
  find();
});
box.addEventListener("keydown", event => {
  if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
  else if (event.key === "ArrowDown") current.list.focus();
  else if (event.key === "Escape") {
    event.preventDefault();
    searchFor("");
    box.blur();
    current.list.focus();
  } else return;
  event.stopPropagation();
});

// ---- Passes

// What is related to the cursor's operation in another column, or else what stands as far down.
function counterpart(next) {
  const marks = marksOf(current.pass, current.cursor)[next.number], found = next.firstRelated(marks);
  return found >= 0 ? found : Math.round(current.cursor / current.pass.count * next.pass.count);
}

function moveAside(step) {
  const all = open(), next = all[all.indexOf(current) + step];
  if (next) moveTo(next, counterpart(next));
}

function toggle(each) {
  each.fold(!each.isFolded);
  if (each === current) each.list.focus({ preventScroll: true });
  paintAll();
}

for (const each of columns) {
  each.folder.addEventListener("click", () => toggle(each));
  each.opener.addEventListener("click", () => {
    showPass(each);
    setCurrent(each);
  });
  each.list.addEventListener("click", event => {
    const row = event.target.closest(".operation");
    if (row) select(each, Number(row.dataset.index));
  });
  each.list.addEventListener("focus", () => setCurrent(each));
}

function changeOnly() {
  place.classList.toggle("changed-only", only.checked);
}
only.addEventListener("change", changeOnly);
document.getElementById("keys").addEventListener("click", () => help.showModal());

// ---- Keys

const page = () => Math.max(1, Math.floor(current.list.clientHeight / rowHeight) - 1);
const moves = {
  ArrowDown: () => moveTo(current, current.cursor + 1),
  ArrowUp: () => moveTo(current, current.cursor - 1),
  PageDown: () => moveTo(current, current.cursor + page()),
  PageUp: () => moveTo(current, current.cursor - page()),
  Home: () => moveTo(current, 0),
  End: () => moveTo(current, current.pass.count - 1),
  ArrowLeft: () => moveAside(-1),
  ArrowRight: () => moveAside(1),
  Enter: () => select(current, current.cursor),
};
const commands = {
  Escape: () => box.value ? searchFor("") : clear(),
  "?": () => help.showModal(),
  c: () => { only.checked = !only.checked; changeOnly(); },
  o: () => toggle(current),
};

document.addEventListener("keydown", event => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || target === box) return;
  const isElsewhere = target.closest && target.closest("#details, button, input, summary");
  const act = commands[key] || (isElsewhere ? undefined : moves[key]);
  if (!act) return;
  event.preventDefault();
  act();
});

document.title = data.folder + " – trainc explorer";
document.getElementById("title").textContent = data.folder + ": from pass to pass";
place.append(...columns.map(each => each.element));
setCurrent(current);
showNothing();
columns.forEach(each => each.show(each.cursor + 8));
paintAll();
addEventListener("resize", paintAll);
