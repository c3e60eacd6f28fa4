// Curves of time and bus bandwidth over size, with the lower bound.
import { h, point, s } from "./dom.js";
import * as format from "./format.js";

const HEIGHT = 280, LEFT = 62, RIGHT = 24, TOP = 8, BOTTOM = 34;
const DASHES = { solid: null, dash: "7 4", dot: "2 3" };
const MOST = 10;

// Draws one quantity: "time" in ps or "busbw" in bytes per second.
export function drawCurves(target, found, ranks, quantity, onChoose) {
  const rows = found.rows.filter((row) => row[0] === ranks && row[1] > 0);
  const value = (row) => (quantity === "time" ? row[4] : row[5]);
  const write = quantity === "time" ? format.time : format.rate;
  const bound = bounds(rows, quantity);
  const values = [...rows.map(value), ...bound.map(([, one]) => one)].filter((one) => one > 0);
  if (!values.length) { target.replaceChildren(); return; }
  const width = Math.max(target.clientWidth, 260);
  const sizes = found.sizes.filter((one) => one > 0);
  const x = logScale(sizes[0], sizes[sizes.length - 1], LEFT, width - RIGHT);
  const y = logScale(Math.min(...values), Math.max(...values), HEIGHT - BOTTOM, TOP);
  const chart = s("svg", { width, height: HEIGHT, role: "img", "aria-label": `${quantity} against size on ${ranks} ranks` });
  axes(chart, { width, x, y, sizes, values, write });
  const shown = kept(rows, value, quantity);
  for (const [name, points] of shown) chart.append(...curve(name, points, { found, x, y, value, write, onChoose }));
  chart.append(s("path", { class: "bound", d: path(bound.map(([size, one]) => [x(size), y(one)])) }));
  const names = [...shown.keys()].map((name) => h("li", {},
    h("span", { class: "swatch", style: { background: found.styles[name].colour } }), name));
  const others = new Set(rows.map((row) => row[2])).size - shown.size;
  if (bound.length) names.push(h("li", {}, h("span", { class: "swatch line" }), quantity === "time" ? "lower bound" : "upper bound"));
  if (others > 0) names.push(h("li", { class: "soft", text: `${others} slower not drawn` }));
  target.replaceChildren(chart, h("ul", { class: "legend" }, ...names));
}

// The lower bound of the time, or the bus bandwidth at it.
function bounds(rows, quantity) {
  const found = new Map();
  for (const row of rows) {
    if (row[6] > 0) found.set(row[1], quantity === "time" ? row[6] : row[5] * row[4] / row[6]);
  }
  return [...found].sort((a, b) => a[0] - b[0]);
}

// The algorithms that come closest to the fastest at any size.
function kept(rows, value, quantity) {
  const sign = quantity === "time" ? 1 : -1;
  const best = new Map();
  for (const row of rows) best.set(row[1], Math.min(best.get(row[1]) ?? Infinity, row[4]));
  const closest = new Map(), points = new Map();
  for (const row of rows) {
    closest.set(row[2], Math.min(closest.get(row[2]) ?? Infinity, row[4] / best.get(row[1])));
    if (!points.has(row[2])) points.set(row[2], []);
    points.get(row[2]).push(row);
  }
  const order = [...points.keys()].sort((a, b) => closest.get(a) - closest.get(b) || sign * (value(points.get(a)[0]) - value(points.get(b)[0])));
  return new Map(order.slice(0, MOST).map((name) => [name, points.get(name).sort((a, b) => a[1] - b[1])]));
}

function logScale(low, high, from, to) {
  const start = Math.log(low), span = Math.log(high) - start || 1;
  return (value) => from + (to - from) * (Math.log(value) - start) / span;
}

const path = (points) => points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

function axes(chart, { width, x, y, sizes, values, write }) {
  const stride = Math.ceil(sizes.length / Math.max(2, Math.floor((width - LEFT) / 64)));
  sizes.forEach((size, index) => {
    chart.append(s("line", { class: "grid", x1: x(size), x2: x(size), y1: TOP, y2: HEIGHT - BOTTOM }));
    if (index % stride === 0) chart.append(s("text", { class: "tick", x: x(size), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle", text: format.size(size) }));
  });
  const low = Math.floor(Math.log10(Math.min(...values))), high = Math.ceil(Math.log10(Math.max(...values)));
  const steps = high - low > 3 ? [1] : [1, 2, 5];
  for (let power = low; power <= high; power += 1) {
    for (const digit of steps) {
      const at = y(digit * 10 ** power);
      if (at < TOP - 1 || at > HEIGHT - BOTTOM + 1) continue;
      chart.append(s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: at, y2: at }));
      chart.append(s("text", { class: "tick", x: LEFT - 6, y: at + 4, "text-anchor": "end", text: write(digit * 10 ** power) }));
    }
  }
}

function curve(name, points, { found, x, y, value, write, onChoose }) {
  const { colour, dash } = found.styles[name];
  const line = s("path", { class: "curve", stroke: colour, "stroke-dasharray": DASHES[dash], d: path(points.map((row) => [x(row[1]), y(value(row))])) });
  const dots = points.map((row) => {
    const dot = s("circle", { class: "dot", cx: x(row[1]), cy: y(value(row)), r: 3.5, fill: colour });
    const limit = row[6] ? `\n${format.share(row[6] / row[4])} of the lower bound` : "";
    point(dot, `${row[3]}\n${format.size(row[1])}: ${write(value(row))}${limit}`);
    dot.addEventListener("click", () => onChoose({ ranks: row[0], size: row[1], schedule: row[3] }));
    return dot;
  });
  return [line, ...dots];
}
