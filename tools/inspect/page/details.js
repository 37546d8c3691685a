// SPDX-License-Identifier: Apache-2.0
//
// What the page says of an operation or a pass that is selected.

const panel = document.getElementById("details");
const mostShown = 12; // rows of a list

const column = (title, text, kind) => ({ title, text, kind });
const heading = text => make("h3", {}, text);
const quiet = text => make("p", { class: "quiet" }, text);
const small = text => make("small", {}, text);
const ways = (text, go, title) => {
  const button = make("button", { type: "button", class: "to", title }, text);
  button.addEventListener("click", go);
  return button;
};
const more = (all, text) => all > mostShown ? quiet(`and ${number(all - mostShown)} more ${text}`) : undefined;
const rowsOf = (columns, rows) => make("div", { class: "scroll" }, make("table", {},
  make("thead", {}, make("tr", {}, columns.map(each => make("th", { scope: "col", class: each.kind }, each.title)))),
  make("tbody", {}, rows.map(row =>
    make("tr", {}, columns.map(each => make("td", { class: each.kind }, each.text(row))))))));

// ---- Where it came from

// `h.0.ln_1`, each part a way to what the module has.
function pathOf(name, search) {
  const parts = name.split(".");
  return make("span", { class: "path mono" }, parts.map((part, i) => [i ? "." : "",
    ways(part, () => search(parts.slice(0, i + 1).join(".")), "search this module")]));
}

function originsOf(names, search) {
  const known = [...new Set(names.map(name => name.subject))];
  if (!known.length) return [quiet("Its location has no name.")];
  const rows = known.slice(0, mostShown).map(number => {
    const subject = subjects[number], own = (subject.nodes || []).map(i => nodes[i]);
    const labels = own.length ? own.map(node => `${node.node} (${node.operator})`) : subject.labels || [];
    const module = subject.name.split(".").slice(0, -1).join(".");
    return make("li", {}, pathOf(subject.name, search),
      module ? small(" in module " + module) : undefined,
      subject.part_of !== undefined ? small(" part of " + subjects[subject.part_of].name) : undefined,
      subject.parameter ? small(" parameter " + subject.parameter.join(", ")) : undefined,
      labels.length ? make("div", { class: "quiet" }, "node " + labels.slice(0, mostShown).join(", ")) : undefined);
  });
  return [heading("From the model"), make("ul", {}, rows), more(known.length, "names")];
}

// ---- What became of it

// Within a kernel, its arguments and what they begin and end with say nothing new.
const isShort = operation => !operation.startsWith("argument %arg") && operation !== "kernel.yield";

function throughPasses(marks, go) {
  const rows = passes.map((pass, number) => {
    const at = mark => [...marks[number].keys()].filter(i => marks[number][i] === mark);
    return { pass, number, same: at(SAME), related: at(RELATED) };
  });
  const first = row => row.same.length ? row.same[0] : row.related[0];
  const summary = row => {
    const kinds = new Map();
    for (const i of row.same) {
      const operation = operationOf(row.pass, i);
      if (isShort(operation)) kinds.set(operation, (kinds.get(operation) || 0) + 1);
    }
    const isNamed = ([operation]) => operation.includes(" @");
    const texts = [...kinds].sort((a, b) => isNamed(b) - isNamed(a))
      .map(([operation, count]) => count > 1 ? `${operation} × ${count}` : operation);
    return texts.slice(0, 4).join(", ") + (texts.length > 4 ? ` and ${texts.length - 4} more` : "") || "–";
  };
  return [heading("Through the passes"), rowsOf([
    column("pass", row => first(row) === undefined ? row.pass.pass
      : ways(row.pass.pass, () => go(row.number, first(row)), "go there"), "stays"),
    column("operations", summary, "mono"),
    column("also of it", row => row.related.length ? number(row.related.length) : "", "number")], rows),
  quiet("Also of it: its gradient, what is recomputed, and what is computed together with a part of it.")];
}

// ---- The plan

function sourceOf(title, file, lines, isOpen) {
  const found = lines && linesOf(file, lines);
  if (!found) return undefined;
  const width = String(lines[1]).length;
  return make("details", { open: isOpen }, make("summary", {}, `${title} – `,
    make("span", { class: "mono" }, `${found.file}:${found.first}`)),
  make("pre", {}, found.lines.map((line, i) =>
    [make("span", { class: "line-number" }, String(found.first + i).padStart(width) + "  "), line + "\n"])));
}

function stepText(step, isOwn) {
  const time = step.seconds === undefined ? undefined
    : small(`${seconds(step.seconds)} a launch, ${number(step.times)} in a step of training`);
  return make("div", { class: "step" },
    make("p", {}, make("strong", {}, `${step.entry}, step ${step.step}: `), make("span", { class: "mono" }, step.text),
      " ", time),
    sourceOf("call", "steps", step.lines, isOwn),
    sourceOf("kernel", "kernels", step.kernel_lines, isOwn));
}

// The step itself, or else steps that compute what it is about: these titles first.
function stepsFor(names, own) {
  const wanted = new Set(names.flatMap(name => [name.title, name.whole]));
  const all = [...new Set(names.flatMap(name => subjects[name.subject].steps || []))].map(i => stepsOfPlan[i]);
  const isMeant = step => step.computes.some(title => wanted.has(title));
  return own !== undefined ? [stepsOfPlan[own]] : [...all.filter(isMeant), ...all.filter(step => !isMeant(step))];
}

function planOf(names, own) {
  if (!data.steps) return [];
  const found = stepsFor(names, own);
  if (!found.length)
    return [heading("Steps"), quiet("None: nothing is left to compute, or an operation that it is a part of does.")];
  return [heading(own !== undefined ? "Its step" : "Steps that compute it"),
    found.slice(0, mostShown).map((step, i) => stepText(step, i === 0)), more(found.length, "steps")];
}

function memoryOf(names, own) {
  if (!data.tensors) return [];
  const step = own === undefined ? undefined : stepsOfPlan[own];
  const ofStep = i => step && tensors[i].entry === step.entry && (tensors[i].used_by || []).includes(step.step);
  const named = new Set(names.flatMap(name => subjects[name.subject].tensors || []));
  const found = [...tensors.keys()].filter(i => named.has(i) || ofStep(i))
    .map(i => ({ ...tensors[i], own: ofStep(i) }));
  found.sort((a, b) => Boolean(b.own) - Boolean(a.own));
  if (!found.length) return [heading("Memory"), quiet("None: its value does not leave the step that computes it.")];
  return [heading("Memory"), rowsOf([
    column("tensor", row => [row.own ? make("strong", {}, row.tensor) : row.tensor, " ", small(row.entry)], "mono"),
    column("arena", row => words(row.arena), "stays"), column("offset", row => number(row.offset), "number"),
    column("bytes", row => number(row.bytes), "number"),
    column("steps", row => `${row.first_step} to ${row.last_step}`, "number")], found.slice(0, 2 * mostShown)),
  found.length > 2 * mostShown ? quiet(`and ${number(found.length - 2 * mostShown)} more tensors`) : undefined,
  step ? quiet("Bold: its step reads or writes it.") : undefined];
}

// ---- The panel

function showOperation(pass, index, marks, go, search) {
  const names = namesOf(pass, index), own = pass.stepOf.get(index), text = pass.text[index];
  panel.replaceChildren(make("h2", { class: "mono" }, operationOf(pass, index)),
    make("p", { class: "mono quiet" }, `${pass.file}:${pass.line[index]}`),
    make("p", {}, names.map(name => name.title).slice(0, mostShown).join(", ")),
    text >= 0 ? make("pre", { class: "wrapped" }, strings[text]) : quiet("The dump has its text."),
    ...[originsOf(names, search), throughPasses(marks, go), planOf(names, own), memoryOf(names, own)].flat(2)
      .filter(Boolean));
  panel.scrollTop = 0;
}

function changeText({ pass, changes, number: position }) {
  const after = number(pass.count) + " operations";
  if (position === 0) return after + ".";
  const same = pass.reordered ? " The same operations are in another order." : "";
  return `${after}, ${number(passes[position - 1].count)} before. By kind ${number(changes.added)} are added and `
    + `${number(changes.removed)} removed. The text of ${number(changes.fresh)} does not stand in the pass before.`
    + same;
}

function showPass(shown) {
  const { pass, changes } = shown, isFirst = shown.number === 0;
  const signed = value => value > 0 ? "+" + number(value) : value < 0 ? "−" + number(-value) : "";
  panel.replaceChildren(make("h2", {}, pass.pass), make("p", { class: "mono quiet" }, pass.file),
    make("p", {}, changeText(shown)),
    rowsOf([column("operation", row => row.kind, "mono"), ...(isFirst ? [] : [
      column("before", row => number(row.before), "number")]),
    column(isFirst ? "times" : "after", row => number(row.after), "number"),
    ...(isFirst ? [] : [column("change", row => signed(row.change), "number")])], changes.rows));
  panel.scrollTop = 0;
}

function showNothing() {
  panel.replaceChildren(make("h2", {}, data.folder),
    make("p", {}, "Each column is a pass with the operations after it. Select an operation to see the node that it "
      + "came from, what later passes made of it, its step, its lines of the source and its memory. Select the name "
      + "of a pass to see what it changed."),
    quiet(`${number(passes.length)} passes; ${number(stepsOfPlan.length)} steps; ${number(tensors.length)} tensors. `
      + "Passes that change nothing are folded."),
    ...(data.absent.length ? [heading("Not here"),
      make("ul", { class: "quiet" }, data.absent.map(text => make("li", {}, text)))] : []));
}
