// SPDX-License-Identifier: Apache-2.0
//
// What the JSON in the page says of a compilation, and how operations of different passes are related: by the names
// in their locations, and by the symbols of kernels.

const data = JSON.parse(document.getElementById("data").textContent);
const strings = data.strings, subjects = data.subjects, passes = data.passes;
const stepsOfPlan = data.steps || [], tensors = data.tensors || [], nodes = data.nodes || [];

// A title with that of what it is a part of, if another: `gradient of h.0.ln_1` of `gradient of h.0.ln_1.mul`.
const titles = data.titles.map(([text, subject]) => {
  const name = subjects[subject].name, part = subjects[subject].part_of;
  const title = strings[text], before = title.slice(0, title.length - name.length);
  return { title, subject, whole: part === undefined ? title : before + subjects[part].name,
    wholeSubject: part === undefined ? subject : part };
});
for (const pass of passes) {
  pass.count = pass.line.length;
  pass.stepOf = new Map();
}
for (const [index, step] of data.steps_of_last_pass || []) passes[passes.length - 1].stepOf.set(index, step);

const operationOf = (pass, index) => strings[pass.operation[index]];
const kindOf = operation => operation.split(" ", 1)[0];
const namesOf = (pass, index) => data.sets[pass.names[index]].map(number => titles[number]);

// The kernel that an operation is or launches.
function kernelOf(operation) {
  const [kind, symbol] = operation.split(" ", 2);
  return (kind === "kernel.launch" || kind === "kernel.function") && symbol ? symbol.slice(1) : undefined;
}
const isFunction = operation => kindOf(operation) === "kernel.function";

const SAME = 2, RELATED = 1;

// Whether one is the other, or a part of it.
const isSame = (a, b) => a.title === b.title || a.title === b.whole || a.whole === b.title;

// For each operation of each pass: SAME if its location or that of `names` begins with a name that the other has too,
// or that is a part of one; RELATED if they share another name, or the computation that a gradient is of. Kernels are
// SAME where such an operation launches them.
function relationsOf(names, ownKernel) {
  const about = new Set(names.map(name => name.wholeSubject));
  const isNamed = titles.map(name => names.some(each => isSame(each, name)));
  const isFirst = titles.map(name => names.length > 0 && isSame(names[0], name));
  const ofSet = data.sets.map(set => set.some((title, i) => isFirst[title] || (i === 0 && isNamed[title])) ? SAME
    : set.some(title => about.has(titles[title].wholeSubject)) ? RELATED : 0);
  const kernels = new Set(ownKernel ? [ownKernel] : []);
  for (const pass of passes)
    for (let i = 0; i < pass.count; ++i)
      if (ofSet[pass.names[i]] === SAME && !isFunction(operationOf(pass, i))) {
        const kernel = kernelOf(operationOf(pass, i));
        if (kernel) kernels.add(kernel);
      }
  const marks = pass => {
    const found = Uint8Array.from({ length: pass.count }, (_, i) => ofSet[pass.names[i]]);
    for (let i = 0; kernels.size && i < pass.count; ++i)
      if (isFunction(operationOf(pass, i)) && kernels.has(kernelOf(operationOf(pass, i)))) found[i] = SAME;
    return found;
  };
  return passes.map(marks);
}

// How often each kind stands in a pass and in the one before.
function changesOf(number) {
  const kinds = new Map();
  const count = (pass, at) => {
    for (let i = 0; pass && i < pass.count; ++i) {
      const kind = kindOf(operationOf(pass, i));
      if (!kinds.has(kind)) kinds.set(kind, { kind, before: 0, after: 0 });
      ++kinds.get(kind)[at];
    }
  };
  count(passes[number - 1], "before");
  count(passes[number], "after");
  const rows = [...kinds.values()].map(row => ({ ...row, change: row.after - row.before }));
  rows.sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || b.after - a.after || (a.kind < b.kind ? -1 : 1));
  const sum = sign => rows.reduce((total, row) => total + Math.max(0, sign * row.change), 0);
  return { rows, added: sum(1), removed: sum(-1), fresh: passes[number].new.reduce((total, flag) => total + flag, 0) };
}

// Operations whose names, or those of their node and tensors, have the text; undefined where it is empty.
function matchesOf(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return undefined;
  const has = name => name !== undefined && name.toLowerCase().includes(wanted);
  const inString = strings.map(has);
  const inSubject = subjects.map(subject => has(subject.name) || (subject.labels || []).some(has) ||
    (subject.parameter || []).some(has) || (subject.tensors || []).some(i => has(tensors[i].tensor)) ||
    (subject.nodes || []).some(i => has(nodes[i].node) || has(nodes[i].operator) || nodes[i].values.some(has)));
  const inTitle = data.titles.map(([title, subject]) => inString[title] || inSubject[subject]);
  const inSet = data.sets.map(set => set.some(title => inTitle[title]));
  return passes.map(pass => Uint8Array.from({ length: pass.count },
    (_, i) => inString[pass.operation[i]] || inString[pass.results[i]] || inSet[pass.names[i]] ? 1 : 0));
}

// ---- The emitted source

const sourceLines = {};
function linesOf(file, [first, last]) {
  if (!data.source) return undefined;
  sourceLines[file] = sourceLines[file] || data.source[file].text.split("\n");
  return { file: data.source[file].file, first, lines: sourceLines[file].slice(first - 1, last) };
}
