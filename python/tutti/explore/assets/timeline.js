// The timeline of a run on a canvas, which draws tens of thousands of ops quickly.
import { h, point } from "./dom.js";
import * as format from "./format.js";

const LEFT = 44, TOP = 4, BOTTOM = 24;
const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function drawTimeline(target, shown, path) {
  const row = shown.ranks.length > 32 ? 9 : shown.ranks.length > 16 ? 14 : 20;
  const width = Math.max(target.clientWidth, 320), height = TOP + row * shown.ranks.length + BOTTOM;
  const canvas = h("canvas", { role: "img", "aria-label": `Ops of ${shown.ranks.length} ranks over ${format.time(shown.end_ps)}` });
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const x = (ps) => LEFT + (width - LEFT - 10) * ps / (shown.end_ps || 1);
  const place = new Map(shown.ranks.map((rank, index) => [rank, TOP + index * row]));
  axes(context, shown, { x, place, row, width, height });
  for (const [rank, kind, start, end] of shown.bars) {
    context.fillStyle = shown.colours[kind];
    context.fillRect(x(start), place.get(rank) + 1, Math.max(x(end) - x(start) - 0.4, 0.5), row - 2);
  }
  messages(context, shown, { x, place, row });
  critical(context, path, { x, place, row });
  point(canvas, (event) => tip(event, canvas, shown, { row, width }));
  target.replaceChildren(canvas);
}

function axes(context, shown, { x, place, row, width, height }) {
  context.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  context.fillStyle = theme("--soft");
  context.strokeStyle = theme("--grid");
  context.textAlign = "right";
  shown.ranks.forEach((rank, index) => {
    if (index % Math.ceil(12 / row) === 0) context.fillText(rank, LEFT - 6, place.get(rank) + row / 2 + 4);
  });
  const parts = width < 520 ? 2 : 4;
  for (let part = 0; part <= parts; part += 1) {
    const at = shown.end_ps * part / parts;
    context.beginPath();
    context.moveTo(x(at), TOP);
    context.lineTo(x(at), height - BOTTOM + 2);
    context.stroke();
    context.textAlign = part === parts ? "right" : part ? "center" : "left";
    context.fillText(at ? format.time(at) : "0", x(at), height - 7);
  }
}

function messages(context, shown, { x, place, row }) {
  context.strokeStyle = theme("--edge");
  context.globalAlpha = 0.55;
  context.lineWidth = 0.6;
  context.beginPath();
  for (const [from, to, sent, arrives] of shown.arrows) {
    context.moveTo(x(sent), place.get(from) + row / 2);
    context.lineTo(x(arrives), place.get(to) + row / 2);
  }
  context.stroke();
}

// The critical path, from the last op back to the start; parts on ranks that are not drawn are left out.
function critical(context, path, { x, place, row }) {
  context.globalAlpha = 1;
  for (const [width, colour] of [[4, theme("--paper")], [2, theme("--alarm")]]) {
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.beginPath();
    for (const [rank, kind, start, end, source] of path) {
      const from = kind === "message" ? source : rank;
      if (!place.has(from) || !place.has(rank)) continue;
      context.moveTo(x(start), place.get(from) + row / 2);
      context.lineTo(x(end), place.get(rank) + row / 2);
    }
    context.stroke();
  }
}

// The op under the pointer.
function tip(event, canvas, shown, { row, width }) {
  if (event.clientX === undefined) return "";
  const box = canvas.getBoundingClientRect();
  const rank = shown.ranks[Math.floor((event.clientY - box.top - TOP) / row)];
  const at = (event.clientX - box.left - LEFT) / (width - LEFT - 10) * shown.end_ps;
  const bar = shown.bars.find((one) => one[0] === rank && one[2] <= at && at < one[3]);
  if (!bar) return "";
  const size = bar[6] ? `, ${format.size(bar[6])}` : "";
  return `rank ${bar[0]}: ${bar[4]}${size}\nstep ${bar[5]}\n${format.time(bar[2])} to ${format.time(bar[3])}, ${format.time(bar[3] - bar[2])}`;
}
