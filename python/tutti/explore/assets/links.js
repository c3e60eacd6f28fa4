// The topology with its links coloured by utilisation.
import { h, point, s } from "./dom.js";
import * as format from "./format.js";

// The style sheet has a colour per step of utilisation, in both themes.
const STEPS = 6;

export function drawLinks(target, notes, run) {
  const found = run.topology;
  if (!found) {
    target.replaceChildren();
    notes.textContent = "The platform has no topology, or it is too large to draw.";
    return;
  }
  const busiest = [...found.links].sort((a, b) => b[4] - a[4])[0];
  const used = found.links.filter((link) => link[3] > 0).length;
  notes.textContent = [
    `${found.name}: ${format.count(used)} links carry data.`,
    busiest?.[4] ? `Busiest: ${busiest[0]} to ${busiest[1]}, ${format.share(busiest[4] / run.time_ps)} of the time.` : "",
    found.reduced ? "Only vertices that messages pass are drawn." : "",
  ].join(" ");
  const width = Math.max(target.clientWidth, 280);
  const { place, height } = placed(found.vertices, width);
  const chart = s("svg", { width, height, role: "img", "aria-label": "Topology with the utilisation of links" });
  const links = [...found.links].sort((a, b) => a[4] - b[4]);
  for (const link of links) chart.append(line(link, place, run.time_ps));
  const named = found.vertices.length * 18 <= 1.2 * width;
  for (const vertex of found.vertices) chart.append(...shape(vertex, place, named));
  const scale = h("ul", { class: "legend" }, ...Array.from({ length: STEPS + 1 }, (_, step) => h("li", {},
    h("span", { class: `swatch use${step}` }), step ? `to ${Math.round(100 * step / STEPS)} %` : "idle")));
  target.replaceChildren(chart, scale);
}

function placed(vertices, width) {
  const xs = vertices.map((one) => one[3]), ys = vertices.map((one) => one[4]);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const margin = 18, wide = right - left || 1, tall = high - low;
  const height = Math.min(520, Math.max(120, (width - 2 * margin) * tall / wide + 2 * margin));
  const place = new Map(vertices.map(([name, , , x, y]) => [name, [
    margin + (width - 2 * margin) * (right === left ? 0.5 : (x - left) / wide),
    margin + (height - 2 * margin) * (high === low ? 0.5 : (high - y) / tall),
  ]]));
  return { place, height };
}

// Both directions of a cable are drawn, each to the right of the centre line.
function line([source, target, rate, bytes, busy], place, total) {
  const [x1, y1] = place.get(source), [x2, y2] = place.get(target);
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [dx, dy] = [-(y2 - y1) / length * 1.4, (x2 - x1) / length * 1.4];
  const use = Math.min(busy / total, 1);
  const drawn = s("line", {
    x1: x1 + dx, y1: y1 + dy, x2: x2 + dx, y2: y2 + dy,
    "stroke-width": bytes ? 1 + 1.5 * use : 0.7, class: `link use${Math.ceil(use * STEPS)}`,
  });
  point(drawn, `${source} to ${target}, ${rate}\n${format.share(busy / total)} busy, ${format.size(bytes)}`);
  return drawn;
}

function shape([name, kind, rank], place, named) {
  const [x, y] = place.get(name), r = 5;
  const drawn = kind === "npu"
    ? s("circle", { class: "npu", cx: x, cy: y, r: named ? 7 : 3 })
    : s("rect", { class: "switch", x: x - r, y: y - r, width: 2 * r, height: 2 * r });
  point(drawn, rank === null ? name : `rank ${rank} (${name})`);
  const label = named && kind === "npu" ? [s("text", { class: "rank", x, y: y + 3, "text-anchor": "middle", text: rank })] : [];
  return [drawn, ...label];
}
