// SPDX-License-Identifier: Apache-2.0
//
// Lines over the steps of runs. The pointer or the arrow keys show the values at a step, buttons hide a line.

const colour = run => `var(--run-${run % 8})`;

function swatch(run, dashed) {
  return make("span", { class: dashed ? "swatch dashed" : "swatch", "aria-hidden": "true",
    style: `background: ${colour(run)}; border-color: ${colour(run)}` });
}

function linearTicks(least, most, count) {
  let step = 10 ** Math.floor(Math.log10((most - least) / count));
  for (const factor of [2, 2.5, 2]) if ((most - least) / step > count) step *= factor;
  const ticks = [];
  for (let i = Math.ceil(least / step - 1e-9); i * step <= most + step * 1e-9; ++i)
    ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}
function logTicks(least, most, count) {
  const decades = Math.log10(most / least), ticks = [];
  const every = Math.max(1, Math.ceil(decades / count));
  const factors = decades < 2 ? [1, 2, 5] : [1];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power += every)
    for (const factor of factors) {
      const tick = Number((factor * 10 ** power).toPrecision(2));
      if (tick >= least * 0.999 && tick <= most * 1.001) ticks.push(tick);
    }
  return ticks.length > 1 ? ticks : linearTicks(least, most, count);
}

function nearest(steps, step) {
  let low = 0, high = steps.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle; else high = middle;
  }
  return step - steps[low] <= steps[high] - step ? low : high;
}

// Lines over steps. Each of `lines` has run, title, dashed, steps, values.
class Chart {
  constructor(title, lines, wide) {
    this.title = title;
    const bounded = value => Math.max(-1e300, Math.min(1e300, value)); // differences are finite
    this.lines = lines.map(line => ({ ...line, values: line.values.map(bounded), visible: true }));
    this.wide = wide;
    const values = this.lines.flatMap(line => line.values), positive = values.filter(value => value > 0);
    positive.sort((a, b) => a - b);
    const most = positive[positive.length - 1], middle = positive[positive.length >> 1];
    this.mayBeLog = positive.length === values.length && most > positive[0];
    this.isLog = this.mayBeLog && most > 20 * middle; // a spike would hide the rest
    this.build();
  }

  build() {
    this.at = make("span", { class: "at", "aria-live": "polite" });
    const log = { type: "button", class: "log", "aria-pressed": String(this.isLog) };
    this.log = make("button", log, "log scale");
    this.log.addEventListener("click", () => {
      this.isLog = !this.isLog;
      this.log.setAttribute("aria-pressed", String(this.isLog));
      this.paint();
    });
    this.picture = draw("svg", { role: "img", tabindex: 0, "aria-label": this.description() });
    this.picture.addEventListener("pointermove", event => this.point(event));
    this.picture.addEventListener("pointerleave", () => this.show(undefined));
    this.picture.addEventListener("keydown", event => this.key(event));
    this.picture.addEventListener("blur", () => this.show(undefined));
    this.figure = make("figure", { class: "card chart" + (this.wide ? " wide" : "") },
      make("figcaption", {}, make("h3", {}, this.title), this.mayBeLog ? this.log : undefined, this.at),
      make("div", { class: "legend", role: "group", "aria-label": "lines of " + this.title },
        this.lines.map(line => this.button(line))), this.picture);
  }

  description() {
    return this.title + " by step. " + this.lines.map(line => {
      const end = line.values.length - 1;
      const least = line.values.reduce((a, b) => Math.min(a, b));
      const most = line.values.reduce((a, b) => Math.max(a, b));
      const at = place => `${number(line.values[place])} at step ${line.steps[place]}`;
      return `${line.title}: ${at(0)}, ${at(end)}, from ${number(least)} to ${number(most)}`;
    }).join("; ");
  }

  button(line) {
    line.text = make("span", { class: "value" });
    line.button = make("button", { type: "button", "aria-pressed": "true", title: "show or hide" },
      swatch(line.run, line.dashed), make("span", { class: "name" }, line.title), line.text);
    line.button.addEventListener("click", () => {
      line.visible = !line.visible;
      line.button.setAttribute("aria-pressed", String(line.visible));
      this.paint();
    });
    return line.button;
  }

  get shown() { return this.lines.filter(line => line.visible); }

  measure() {
    const shown = this.shown.length ? this.shown : this.lines;
    const fold = (list, by, start) => list.reduce((a, b) => by(a, b), start);
    this.first = fold(shown.map(line => line.steps[0]), Math.min, Infinity);
    this.last = fold(shown.map(line => line.steps[line.steps.length - 1]), Math.max, -Infinity);
    this.least = fold(shown.flatMap(line => line.values), Math.min, Infinity);
    this.most = fold(shown.flatMap(line => line.values), Math.max, -Infinity);
    if (this.most - this.least <= Math.abs(this.most) * 1e-12 + 1e-300) { // too near for ticks between them
      const room = Math.abs(this.most) * 0.1 || 1;
      this.least -= room;
      this.most += room;
    } else if (!this.isLog) {
      const room = (this.most - this.least) * 0.04;
      this.least = this.least >= 0 && this.least < room * 10 ? 0 : this.least - room;
      this.most += room;
    }
  }

  paint() {
    this.measure();
    this.width = Math.max(260, this.picture.parentElement.clientWidth - 30);
    this.height = this.wide ? 300 : 190;
    const bottom = this.height - 22, top = 8, right = this.width - 12;
    const ticks = (this.isLog ? logTicks : linearTicks)(this.least, this.most, this.wide ? 6 : 5);
    const left = 14 + 6.6 * Math.max(4, ...ticks.map(tick => number(tick).length));
    const scale = value => this.isLog ? Math.log(value) : value;
    const low = scale(this.least), high = scale(this.most);
    const span = this.last - this.first;
    this.x = step => span > 0 ? left + (right - left) * (step - this.first) / span : (left + right) / 2;
    this.y = value => bottom - (bottom - top) * (scale(value) - low) / (high - low);
    this.stepAt = x => this.first + (x - left) / (right - left) * span;
    const parts = ticks.map(tick => [
      draw("line", { class: "grid", x1: left, x2: right, y1: this.y(tick), y2: this.y(tick) }),
      draw("text", { x: left - 7, y: this.y(tick) + 4, "text-anchor": "end" }, number(tick))]);
    const steps = span > 0 ? linearTicks(this.first, this.last, this.wide ? 9 : 5) : [this.first];
    for (const step of steps.filter(Number.isInteger)) {
      const anchor = this.x(step) > right - 20 ? "end" : "middle";
      parts.push(draw("text", { x: this.x(step), y: bottom + 16, "text-anchor": anchor }, number(step)));
    }
    parts.push(draw("text", { x: left - 7, y: bottom + 16, "text-anchor": "end" }, "step"));
    parts.push(draw("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    for (const line of this.shown) parts.push(this.path(line));
    this.marks = draw("g", {});
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.picture.replaceChildren(...parts.flat(), this.marks);
    this.show(undefined);
  }

  path(line) {
    const points = line.steps.map((step, i) => this.x(step).toFixed(1) + " " + this.y(line.values[i]).toFixed(1));
    if (points.length === 1) {
      const [x, y] = points[0].split(" ");
      return draw("circle", { cx: x, cy: y, r: 3, style: "fill: " + colour(line.run) });
    }
    const look = { class: "plot-line" + (line.dashed ? " dashed" : ""), style: "stroke: " + colour(line.run) };
    return draw("path", { ...look, d: "M" + points.join("L") });
  }

  point(event) {
    const box = this.picture.getBoundingClientRect();
    this.show(this.stepAt((event.clientX - box.left) * this.width / box.width));
  }

  key(event) {
    const span = this.last - this.first, most = Math.max(1, Math.round(span / 100));
    const from = this.cursor === undefined ? this.last : this.cursor;
    const to = { ArrowLeft: from - most, ArrowRight: from + most, Home: this.first, End: this.last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.show(Math.min(this.last, Math.max(this.first, to)));
  }

  // The values at a step, or at the end without one.
  show(step) {
    this.cursor = step;
    this.marks.replaceChildren();
    for (const line of this.lines) {
      const place = step === undefined ? line.steps.length - 1 : nearest(line.steps, step);
      line.text.textContent = line.visible ? number(line.values[place]) : "";
      if (step === undefined || !line.visible) continue;
      const at = { cx: this.x(line.steps[place]), cy: this.y(line.values[place]) };
      this.marks.append(draw("circle", { ...at, r: 3.5, style: "fill: " + colour(line.run) }));
    }
    const first = this.shown[0];
    if (step === undefined || !first) {
      this.at.textContent = first ? "at the end" : "";
      return;
    }
    const near = first.steps[nearest(first.steps, step)];
    this.at.textContent = "step " + number(near);
    const x = this.x(near);
    this.marks.prepend(draw("line", { class: "cursor", x1: x, x2: x, y1: 8, y2: this.height - 22 }));
  }
}

