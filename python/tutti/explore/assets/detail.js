// One run: figures, causes of its time, timeline and links.
import { byId, h, point, s } from "./dom.js";
import * as format from "./format.js";
import { drawLinks } from "./links.js";

const CAUSES = { latency: "#56B4E9", bandwidth: "#0072B2", contention: "#D55E00", reduction: "#009E73", endpoint: "#E69F00", other: "#7F7F7F" };

export function drawDetail(run) {
  byId("detail").hidden = false;
  byId("detail-title").textContent = `${run.schedule}, ${format.count(run.ranks)} ranks, ${format.size(run.size)}`;
  const figures = [
    ["completion time", format.time(run.time_ps)], ["lower bound", format.time(run.bound_ps)],
    ["of the lower bound", format.share(run.bound_ps / run.time_ps)], ["bus bandwidth", format.rate(run.busbw)],
    ["messages", format.count(run.messages)], ["bytes sent", format.size(run.bytes)],
    ["verified", run.not_verified ? `no: ${run.not_verified}` : "yes"],
  ];
  byId("figures").replaceChildren(...figures.map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { text: value }))));
  byId("reason").textContent = run.reason;
  drawCauses(run);
  drawPath(run);
  drawTimeline(run.timeline);
  drawLinks(byId("links"), byId("links-notes"), run);
}

function drawCauses(run) {
  const parts = Object.entries(run.causes).filter(([, ps]) => ps > 0);
  const bar = h("div", { class: "bar", role: "img", "aria-label": parts.map(([name, ps]) => `${name} ${format.share(ps / run.time_ps)}`).join(", ") },
    ...parts.map(([name, ps]) => {
      const part = h("span", { style: { "flex-grow": ps / run.time_ps, background: CAUSES[name] } });
      point(part, `${name}: ${format.time(ps)}, ${format.share(ps / run.time_ps)}`);
      return part;
    }));
  const legend = h("ul", { class: "legend" }, ...parts.map(([name, ps]) => h("li", {},
    h("span", { class: "swatch", style: { background: CAUSES[name] } }), `${name} `,
    h("b", { text: format.share(ps / run.time_ps) }), h("span", { class: "soft", text: ` ${format.time(ps)}` }))));
  byId("causes").replaceChildren(bar, legend);
}

function drawPath(run) {
  const rows = run.path.map(([rank, kind, start, end, source, bytes]) => h("tr", {},
    h("td", { text: kind === "message" ? `message ${source} to ${rank}` : `rank ${rank}: ${kind}` }),
    h("td", { class: "number", text: bytes === null ? "" : format.size(bytes) }),
    h("td", { class: "number", text: format.time(start) }), h("td", { class: "number", text: format.time(end - start) })));
  const head = ["part", "size", "start", "duration"].map((text, index) => h("th", { scope: "col", class: index ? "number" : "", text }));
  const cut = run.path_length > run.path.length ? `, the first ${run.path.length} are listed` : "";
  byId("path").querySelector("summary").textContent = `Critical path: ${format.count(run.path_length)} parts${cut}`;
  byId("path").querySelector("div").replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)));
}

function drawTimeline(shown) {
  const target = byId("timeline");
  const left = 44, top = 4, row = shown.ranks.length > 32 ? 9 : shown.ranks.length > 16 ? 14 : 20;
  const width = Math.max(target.clientWidth, 320), height = top + row * shown.ranks.length + 26;
  const x = (ps) => left + (width - left - 10) * ps / (shown.end_ps || 1);
  const place = new Map(shown.ranks.map((rank, index) => [rank, top + index * row]));
  const chart = s("svg", { width, height, role: "img", "aria-label": "Ops of each rank over time" });
  shown.ranks.forEach((rank, index) => {
    if (index % Math.ceil(11 / row)) return;
    chart.append(s("text", { class: "tick", x: left - 6, y: place.get(rank) + row / 2 + 4, "text-anchor": "end", text: rank }));
  });
  for (let part = 0; part <= 4; part += 1) {
    const at = shown.end_ps * part / 4;
    chart.append(s("line", { class: "grid", x1: x(at), x2: x(at), y1: top, y2: height - 22 }),
      s("text", { class: "tick", x: x(at), y: height - 7, "text-anchor": part === 4 ? "end" : part ? "middle" : "start", text: format.time(at) }));
  }
  const bars = s("g");
  shown.bars.forEach(([rank, kind, start, end], index) => bars.append(s("rect", {
    x: x(start).toFixed(2), y: place.get(rank) + 1, width: Math.max(x(end) - x(start), 0.4).toFixed(2),
    height: row - 2, fill: shown.colours[kind], "data-bar": index,
  })));
  const arrows = s("path", { class: "arrow", d: shown.arrows.map(([from, to, sent, arrives]) =>
    `M${x(sent).toFixed(1)} ${place.get(from) + row / 2}L${x(arrives).toFixed(1)} ${place.get(to) + row / 2}`).join("") });
  chart.append(bars, arrows);
  point(chart, (event) => {
    const bar = shown.bars[event.target.dataset?.bar];
    return bar ? `rank ${bar[0]}: ${bar[4]}${bar[6] ? `, ${format.size(bar[6])}` : ""}\nstep ${bar[5]}\n${format.time(bar[2])} to ${format.time(bar[3])}` : "";
  });
  target.replaceChildren(chart);
  byId("timeline-notes").textContent = ["Bars are ops, lines are messages.", ...shown.notes].join(" ");
  const kinds = new Set(shown.bars.map((bar) => bar[1]));
  byId("kinds").replaceChildren(...[...kinds].map((kind) => h("li", {},
    h("span", { class: "swatch", style: { background: shown.colours[kind] } }), kind)));
}
