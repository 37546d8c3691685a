// SPDX-License-Identifier: Apache-2.0
//
// Elements, numbers as people read them, and tables with a filter. Every text goes into a text node or an
// attribute, so none becomes markup.
"use strict";

const svgSpace = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  for (const child of children.flat(Infinity))
    if (child !== undefined && child !== null) node.append(child);
  return node;
}
const make = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(svgSpace, tag), attributes, children);

// ---- Numbers as people read them

function number(value, digits = 5) {
  if (typeof value !== "number" || !isFinite(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return value.toLocaleString("en-US");
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return String(Number(value.toPrecision(digits)).toExponential());
  return Number(value.toPrecision(digits)).toLocaleString("en-US", { maximumFractionDigits: 8 });
}
function scaled(value, units, base) {
  let unit = 0;
  while (Math.abs(value) >= base && unit + 1 < units.length) { value /= base; ++unit; }
  return number(value, 4) + " " + units[unit];
}
const bytes = value => scaled(value, ["bytes", "KiB", "MiB", "GiB", "TiB"], 1024);
const operations = value => scaled(value, ["", "K", "M", "G", "T", "P"], 1000).trim();
function seconds(value) {
  if (value >= 3600) return Math.floor(value / 3600) + " h " + Math.round(value % 3600 / 60) + " min";
  if (value >= 60) return Math.floor(value / 60) + " min " + Math.round(value % 60) + " s";
  if (value >= 1 || value === 0) return number(value, 3) + " s";
  return value >= 1e-3 ? number(value * 1e3, 3) + " ms" : number(value * 1e6, 3) + " µs";
}
const percent = share => number(100 * share, 3) + " %";
const words = name => name.replaceAll("_", " ");
// ---- Tables

// Columns: { title, kind: "number" | "name" | "share" | undefined, text: row => text or node }.
function table(caption, columns, rows, options = {}) {
  const cellOf = (row, column, i) =>
    make(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : undefined, class: column.kind }, column.text(row));
  const rowOf = row =>
    make("tr", { class: options.differs && options.differs(row) ? "differs" : undefined },
      columns.map((column, i) => cellOf(row, column, i)));
  const titles = columns.map(column => make("th", { scope: "col", class: column.kind }, column.title));
  const body = make("tbody", {}, rows.map(rowOf));
  const filter = options.filter ? filterOf(caption, body, options.differs) : undefined;
  const below = options.below ? make("p", { class: "quiet" }, options.below) : undefined;
  const whole = make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, titles)), body);
  const place = { class: "rows", tabindex: 0, role: "region", "aria-label": caption }; // it scrolls by keys
  return make("div", { class: "card table" }, filter, options.filter ? make("div", place, whole) : whole, below);
}

function filterOf(caption, body, differs) {
  const box = make("input", { type: "search", placeholder: "filter", "aria-label": "filter: " + caption });
  const count = make("span", { class: "quiet", role: "status" });
  const only = differs && make("input", { type: "checkbox" });
  function apply() {
    const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      const isSame = only && only.checked && !row.classList.contains("differs");
      row.hidden = isSame || !wanted.every(word => text.includes(word));
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${body.rows.length} rows`;
  }
  box.addEventListener("input", apply);
  if (only) only.addEventListener("change", apply);
  apply();
  return make("div", { class: "filter" }, box, only ? make("label", {}, only, " only what differs") : undefined, count);
}

document.addEventListener("keydown", event => {
  const boxes = [...document.querySelectorAll("input[type=search]")];
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !boxes.length) return;
  if (event.target.matches("input[type=search]") && event.target.value) return;
  event.preventDefault();
  boxes[(boxes.indexOf(document.activeElement) + 1) % boxes.length].focus();
});

function shareOf(share) {
  return [draw("svg", { width: 60, height: 10, "aria-hidden": "true" },
    draw("rect", { width: Math.max(0, Math.min(60, 60 * share)), height: 10, rx: 2 })), percent(share)];
}

