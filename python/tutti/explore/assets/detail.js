// One run: figures, causes of its time, timeline and links.
import { byId, h, point } from "./dom.js";
import * as format from "./format.js";
import { drawLinks } from "./links.js";
import { drawTimeline } from "./timeline.js";

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
  drawTimeline(byId("timeline"), run.timeline, run.path);
  byId("timeline-notes").textContent = ["Bars are ops, thin lines are messages, the thick line is the critical path.", ...run.timeline.notes].join(" ");
  byId("kinds").replaceChildren(...kindsOf(run.timeline));
  drawLinks(byId("links"), byId("links-notes"), run);
}

// The time behind an endpoint model, compared with that of the platform's model.
export function drawEndpoint(box, found, run) {
  const ratio = Number((found.time_ps / run.time_ps).toPrecision(3));
  const server = found.server ? ` Its busiest server is ${found.server}: ${format.time(found.server_ps)}.` : "";
  box.replaceChildren("Behind ", h("b", { text: found.endpoint }), `: ${format.time(found.time_ps)}, ${ratio} times the time of the model, `,
    `${format.share(found.bound_ps / found.time_ps)} of its lower bound.${server}`);
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

function kindsOf(shown) {
  const kinds = new Set(shown.bars.map((bar) => bar[1]));
  return [...kinds].map((kind) => h("li", {}, h("span", { class: "swatch", style: { background: shown.colours[kind] } }), kind));
}
