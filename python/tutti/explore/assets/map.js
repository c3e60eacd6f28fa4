// The decision map: a grid of buttons, ranks over sizes, with the winner as colour.
import { byId, h, inkOn, point } from "./dom.js";
import * as format from "./format.js";

const key = (ranks, size) => `${ranks} ${size}`;

export function drawMap(found, chosen, onChoose) {
  const cells = new Map(found.cells.map((cell) => [key(cell.ranks, cell.size), cell]));
  const focused = document.activeElement?.dataset?.cell;
  const row = (ranks) => h("tr", {}, h("th", { scope: "row", text: format.count(ranks) }),
    ...found.sizes.map((size) => h("td", {}, button(cells.get(key(ranks, size)), found, chosen, onChoose))));
  const head = h("tr", {}, h("th", { scope: "col", text: "ranks" }),
    ...found.sizes.map((size) => h("th", { scope: "col", text: format.size(size) })));
  const table = h("table", { class: "map", "aria-label": "Fastest algorithm by ranks and size" },
    h("thead", {}, head), h("tbody", {}, ...found.ranks.map(row)));
  table.addEventListener("keydown", (event) => move(event, table));
  byId("map").replaceChildren(table);
  const buttons = [...table.querySelectorAll("button")];
  const first = buttons.find((one) => one.getAttribute("aria-pressed") === "true") ?? buttons[0];
  if (first) first.tabIndex = 0;
  if (focused) buttons.find((one) => one.dataset.cell === focused)?.focus();
  legend(found);
}

function button(cell, found, chosen, onChoose) {
  if (!cell) return h("span", { class: "empty", text: "" });
  const colour = found.styles[cell.algorithm].colour;
  const name = key(cell.ranks, cell.size);
  const shown = h("button", {
    type: "button", tabindex: -1, "data-cell": name, text: format.lead(cell.margin) || "·",
    "aria-pressed": String(name === chosen),
    "aria-label": `${cell.text.join(", ")}`,
    style: { background: colour, color: inkOn(colour) },
    onclick: () => onChoose(cell),
  });
  point(shown, cell.text.join("\n"));
  return shown;
}

// Arrow keys move between cells; only one cell is a stop of the Tab key.
function move(event, table) {
  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const step = steps[event.key], cell = event.target.closest("td");
  if (!step || !cell) return;
  event.preventDefault();
  const next = table.rows[cell.parentNode.rowIndex + step[0]]?.cells[cell.cellIndex + step[1]]?.querySelector("button");
  if (!next) return;
  for (const one of table.querySelectorAll("button")) one.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function legend(found) {
  const wins = new Map();
  for (const cell of found.cells) wins.set(cell.algorithm, (wins.get(cell.algorithm) ?? 0) + 1);
  const ordered = [...wins].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  byId("legend").replaceChildren(...ordered.map(([name, count]) => h("li", {},
    h("span", { class: "swatch", style: { background: found.styles[name].colour } }),
    `${name} `, h("span", { class: "soft", text: `${count}` }))));
}
