// SPDX-License-Identifier: Apache-2.0
//
// The sections of the page, each from what the JSON in it has.

const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs, several = runs.length > 1, program = data.program, profile = data.profile;
const nameOf = run => run.run;
const main = document.getElementById("main"), links = document.getElementById("sections");

function section(title, ...children) {
  const id = title.toLowerCase().replaceAll(" ", "-");
  links.append(make("a", { href: "#" + id }, title));
  main.append(make("section", { id, "aria-labelledby": id + "-title" },
    make("h2", { id: id + "-title" }, title), ...children));
}
const column = (title, text, kind) => ({ title, text, kind });
const quiet = text => make("p", { class: "quiet" }, text);
const small = text => make("small", {}, text);

// ---- Charts

const charts = [];
function chartOf(title, members, wide) {
  const lines = [];
  runs.forEach((run, i) => members.forEach(member => {
    const series = run.series && run.series[member.name];
    if (!series || !series.steps.length) return;
    const ofRun = nameOf(run) + (members.length > 1 ? ", " + member.title : "");
    lines.push({ ...series, run: i, dashed: member.dashed, title: several ? ofRun : member.title });
  }));
  if (!lines.length) return [];
  charts.push(new Chart(title, lines, wide));
  return [charts[charts.length - 1].figure];
}

const heldOut = "held_out_";
const members = [...new Set(runs.flatMap(run => Object.keys(run.series || {})))];
const capital = text => text[0].toUpperCase() + text.slice(1);

function losses() {
  const loss = [{ name: "loss", title: "loss" }, { name: heldOut + "loss", title: "held-out loss", dashed: true }];
  const found = chartOf("Loss", loss, true);
  for (const name of members)
    if (name.startsWith(heldOut) && name !== heldOut + "loss") {
      const title = words(name.slice(heldOut.length));
      found.push(...chartOf("Held-out " + title, [{ name, title }]));
    }
  if (found.length) section("Losses and metrics", make("div", { class: "charts" }, found));
}

function training() {
  const first = ["gradient_norm", "learning_rate", "tokens_per_second", "samples_per_second", "milliseconds"];
  const left = members.includes("tokens_per_second") ? ["loss", "samples_per_second"] : ["loss"];
  const found = [...new Set([...first, ...members])]
    .filter(name => !left.includes(name) && !name.startsWith(heldOut))
    .map(name => ({ name, title: words(name) + (name === "milliseconds" ? " per step" : "") }))
    .flatMap(member => chartOf(capital(member.title), [member]));
  if (found.length) section("Rate, norms and throughput", make("div", { class: "charts" }, found));
}

// ---- The header

const stateOf = run => make("span", { class: "state", "data-state": run.state }, run.state);
const lossOf = figure => figure ? [number(figure.value), small("at step " + number(figure.step))] : "–";
const bestOf = run => lossOf(run.figures.best_held_out_loss || run.figures.least_loss);
const bestMetrics = run => run.figures.best_metrics || {};
const metricNames = [...new Set(runs.flatMap(run => Object.keys(bestMetrics(run))))];
function durationOf(run) {
  const whole = run.summary && run.summary.seconds;
  if (typeof whole !== "number") return [seconds(run.figures.seconds_of_logged_steps), small("in logged steps")];
  return [seconds(whole), run.resumed_after && small("after the resume at step " + number(run.resumed_after))];
}
function rateOf(run) {
  const unit = run.figures.tokens_per_second ? "tokens" : "samples", rate = run.figures[unit + "_per_second"];
  return rate ? [number(rate, 4), small(unit + " per second")] : "–";
}
function stepsOf(run) {
  const asked = Number(run.options && run.options.steps);
  return [number(run.last_step), asked > 0 ? small("of " + number(asked)) : undefined];
}
const tile = (title, text) => make("div", { class: "tile" }, make("dt", {}, title), make("dd", {}, text));

function programHeader() {
  document.title = program.folder + " – trainc report";
  document.getElementById("header").append(make("h1", {}, program.folder),
    make("p", { class: "quiet" }, "An output of trainc, and no run"));
}

function header() {
  if (!runs.length) return programHeader();
  const models = [...new Set(runs.map(run => run.model || "unknown model"))].join(", ");
  document.title = models + " – trainc report";
  const about = [runs[0].objective, runs[0].optimizer, runs[0].precision].filter(Boolean).map(text => " · " + text);
  const place = document.getElementById("header");
  const what = several ? runs.length + " runs" : [make("span", { class: "mono" }, nameOf(runs[0])), about];
  place.append(make("h1", {}, models), make("p", { class: "quiet" }, what));
  const best = runs.some(run => run.figures.best_held_out_loss) ? "Best held-out loss" : "Least loss";
  const metrics = metricNames.map(name => ["Best held-out " + words(name.slice(heldOut.length)),
                                           run => lossOf(bestMetrics(run)[name])]);
  const figures = [["State", stateOf], ["Final loss", run => lossOf(run.figures.last_loss)], [best, bestOf],
    ...metrics,
    ["Steps", stepsOf], ["Duration", durationOf], ["Throughput", rateOf]];
  if (several) {
    const name = run => [swatch(runs.indexOf(run)), " ", make("span", { class: "mono" }, nameOf(run))];
    const columns = figures.map(([title, text], i) => column(title, text, i > 0 ? "number" : undefined));
    section("Runs", table("Runs in comparison", [column("run", name, "name"), ...columns], runs));
  } else {
    place.append(make("dl", { class: "tiles" }, figures.map(([title, text]) => tile(title, text(runs[0])))));
  }
}

function warnings() {
  const texts = runs.flatMap(run => run.warnings.map(text => (several ? nameOf(run) + ": " : "") + text));
  if (texts.length) section("Warnings", texts.map(text => make("p", { class: "warning" }, text)));
}

// ---- Where the time went, kernels, memory, schedule

function timeOf(run) {
  const whole = run.summary.seconds;
  const parts = ["computing", "data", "exchanging", "evaluating", "saving"].map((name, i) =>
    ({ name, colour: colour(i), seconds: run.summary["seconds_" + name] || 0 }));
  const rest = whole - parts.reduce((sum, part) => sum + part.seconds, 0);
  if (rest > whole * 1e-3) parts.push({ name: "the rest", colour: colour(7), seconds: rest });
  const spent = parts.filter(part => part.seconds > 0), share = part => percent(part.seconds / whole);
  const piece = part =>
    make("span", { style: `flex: ${part.seconds / whole} 0 0; background: ${part.colour}`, title: part.name });
  const entry = part => make("span", { class: "entry" },
    make("span", { class: "swatch", style: "background: " + part.colour }),
    ` ${part.name} ${seconds(part.seconds)}, ${share(part)}`);
  const title = (several ? nameOf(run) : run.resumed_after ? "The last start" : "The run") + ": " + seconds(whole);
  const label = spent.map(part => part.name + " " + share(part)).join(", ");
  return make("div", { class: "card time" }, make("h3", {}, title),
    make("div", { class: "stack", role: "img", "aria-label": label }, spent.map(piece)),
    make("div", { class: "legend" }, spent.map(entry)));
}

// Of rows with seconds of a step as profiled.
const profiled = [
  column("stage", row => number(row.stage), "number"),
  column("times", row => number(row.times, 3), "number"),
  column("seconds", row => seconds(row.seconds), "number"),
  column("of a step", row => shareOf(row.seconds / profile.seconds), "share"),
];

function time() {
  const children = runs.filter(run => run.summary && run.summary.seconds > 0).map(timeOf);
  if (profile)
    children.push(table(`A step as profiled: ${seconds(profile.seconds)}, mean of ${profile.steps}`,
      [column("action", row => row.action, "name"), ...profiled,
        column("waiting", row => seconds(row.waiting), "number")], profile.actions));
  if (children.length) section("Where the time went", children);
}

const more = list => list.all > list.rows.length
  ? `and ${number(list.all - list.rows.length)} more, which take less` : undefined;
const kernelNames = [column("step of the plan", row => row.step, "name mono"), column("function", row => row.entry)];

function kernels() {
  const children = [], planned = program && program.kernels;
  if (profile)
    children.push(table("Costliest kernels, as profiled on " + (profile.device || "this machine"),
      [...kernelNames, ...profiled], profile.kernels.rows, { filter: true, below: more(profile.kernels) }));
  if (planned && planned.rows.length)
    children.push(table("Kernels as planned, by the bytes that they move",
      [...kernelNames, column("form", row => row.form), column("times", row => number(row.times), "number"),
        column("operations", row => operations(row.flops), "number"),
        column("bytes", row => bytes(row.bytes), "number"),
        column("of the greatest", row => shareOf(row.bytes / planned.rows[0].bytes), "share")],
      planned.rows, { filter: true, below: more(planned) }));
  if (children.length) section("Kernels", children);
}

// A picture of trainc-inspect --svg. The page's style has its colours.
function picture(text, label) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  parsed.setAttribute("role", "img");
  parsed.setAttribute("aria-label", label);
  return make("div", { class: "card picture" }, document.importNode(parsed, true));
}

// Of the last step that --memory-every looked at: a row for each rank and phase.
const isNumber = value => typeof value === "number";
function phases(run) {
  const rows = run.memory, known = ["memory", "rank", "phase"];
  const names = Object.keys(rows[0]).filter(name => !known.includes(name) && rows.some(row => isNumber(row[name]) && row[name] > 0));
  return table((several ? nameOf(run) + ": memory" : "Memory") + " at the phases of step " + number(rows[0].memory),
    [column("rank", row => String(row.rank), "number"), column("phase", row => words(String(row.phase))),
      ...names.map(name => column(words(name), row => isNumber(row[name]) ? bytes(row[name]) : "–", "number"))], rows);
}

function memory() {
  const children = [], measured = runs.filter(run => run.summary && run.summary.peak_resident_bytes > 0);
  if (measured.length)
    children.push(table("Peak of resident memory, of the first rank", [column("run", nameOf, "name mono"),
      column("bytes", run => bytes(run.summary.peak_resident_bytes), "number")], measured));
  for (const run of runs.filter(run => run.memory)) children.push(phases(run));
  if (program && program.arenas)
    children.push(table("Arenas as planned", [column("arena", row => words(row.arena), "name"),
      column("bytes", row => bytes(row.bytes), "number"),
      column("lower bound", row => bytes(row.lower_bound), "number")], program.arenas));
  if (program && program.memory_picture)
    children.push(picture(program.memory_picture, "activations arena over the steps of the plan"));
  if (program && program.at_peak && program.at_peak.rows.length)
    children.push(table("Tensors alive at the peak", [column("tensor", row => row.tensor, "name mono"),
      column("bytes", row => bytes(row.bytes), "number"),
      column("steps", row => `${row.first_step} to ${row.last_step}`, "number")],
      program.at_peak.rows, { filter: true, below: more(program.at_peak) }));
  if (children.length) section("Memory", children);
}

function schedule() {
  const plan = program && program.schedule;
  if (!plan) return;
  const tooLarge = "The picture is too large for a page: trainc-inspect FOLDER schedule --svg FILE draws it.";
  section("Schedule of stages",
    make("p", {}, make("strong", {}, `Bubble: ${percent(plan.bubble)}`), " of the ranks' time"),
    plan.picture ? picture(plan.picture, "what each stage does when: " + plan.title) : quiet(tooLarge));
}

// ---- Configuration, data, machine, checkpoints

function compared(title, caption, of, filter) {
  const names = [...new Set(runs.flatMap(run => Object.keys(of(run))))];
  if (!names.length) return;
  const text = (run, name) => {
    const value = of(run)[name];
    return value === undefined ? "–" : value === "" ? "empty" : String(value);
  };
  const differs = several ? name => new Set(runs.map(run => text(run, name))).size > 1 : undefined;
  const columns = runs.map(run => column(several ? nameOf(run) : "value", name => text(run, name), "mono"));
  section(title, table(caption, [column("name", name => name, "name"), ...columns], names, { filter, differs }));
}

const ofRun = several ? [column("run", row => nameOf(row.run), "mono")] : [];

function files() {
  const filesOf = (run, use) => (run[use] || []).map(file => ({ run, use, ...file }));
  const rows = runs.flatMap(run => [...filesOf(run, "data"), ...filesOf(run, "validation")]);
  if (!rows.length) return;
  section("Data", table("Files that were read", [column("input", row => String(row.input), "name mono"), ...ofRun,
    column("use", row => row.use === "data" ? "training" : "validation"),
    column("file", row => String(row.file), "mono"), column("type", row => String(row.type || "–")),
    column("bytes", row => typeof row.bytes === "number" ? bytes(row.bytes) : "–", "number"),
    column("digest", row => String(row.digest || "–"), "mono")], rows));
}

// A word of a command as a shell takes it.
const shellWord = word =>
    /^[\w%+=:,./-]+$/.test(word) ? word : "'" + String(word).replaceAll("'", "'\\''") + "'";

function machineOf(run) {
  const summary = run.summary || {}, machine = run.machine || {}, start = run.last_start || {};
  const facts = {
    "last start": start.date,
    "host": start.host,
    "command": start.command && [start.command].flat().map(shellWord).join(" "),
    "ranks": run.ranks,
    "threads or device": start.device,
    "precision": run.precision,
    "compiler": run.compiler && "trainc " + run.compiler,
    "device, as profiled": profile && profile.device,
    "GFLOP/s of a rank in the steps": summary.gflops_per_rank && number(summary.gflops_per_rank),
    "GFLOP/s of a large matrix product": machine.gflops_of_product && number(machine.gflops_of_product),
    "share of the product": machine.share_of_product && number(machine.share_of_product),
  };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

function history() {
  const rows = runs.flatMap(run => (run.checkpoints || []).map(checkpoint => ({ run, ...checkpoint })));
  const lines = [];
  for (const run of runs) {
    const name = several ? nameOf(run) + " " : "";
    const origin = run.began_with && (run.began_with.checkpoint || run.began_with.initialise);
    if (origin) lines.push(name + "began with " + origin);
    if (run.resumed_after) lines.push(`${name}was resumed after step ${number(run.resumed_after)}, at its last start`);
  }
  if (!rows.length && !lines.length) return;
  const columns = [column("checkpoint", row => row.checkpoint, "name mono"), ...ofRun,
    column("step", row => number(row.step), "number"), column("loss", row => number(row.loss), "number"),
    column("held-out loss", row => number(row.held_out_loss), "number"),
    column("size", row => bytes(row.bytes), "number")];
  section("Resumes and checkpoints", lines.map(text => make("p", {}, capital(text))),
    rows.length ? table("Checkpoints that are kept", columns, rows) : undefined);
}

function absent() {
  if (data.absent.length)
    section("Not here", make("ul", { class: "quiet" }, data.absent.map(text => make("li", {}, text))));
}

header();
warnings();
losses();
training();
time();
kernels();
memory();
schedule();
compared("Configuration", "Options of the run", run => run.options || {}, true);
files();
compared("Machine", "Who computed, and how fast", machineOf, false);
history();
absent();
const paintAll = () => charts.forEach(chart => chart.paint());
paintAll();
addEventListener("resize", paintAll);
