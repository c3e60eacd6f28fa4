// The decision map: a grid of buttons, ranks over sizes, with the winner as colour.
import { byId, h, inkOn, point } from "./dom.js";
import * as format from "./format.js";

const key = (ranks, size) => `${ranks} ${size}`;

// The drawn table: its buttons and cells by place. A redraw with the same places reuses it.
let drawn = { places: "", cells: new Map(), buttons: new Map() };

export function drawMap(found, chosen, onChoose) {
  const places = JSON.stringify([found.ranks, found.sizes, found.cells.map((cell) => key(cell.ranks, cell.size))]);
  if (places !== drawn.places) build(found, places, chosen, onChoose);
  updateCells(found);
  byId("map").firstChild.classList.remove("waiting");
}

// Updates some cells of the drawn map; returns whether no other waits for its time.
export function updateCells({ cells, styles }) {
  for (const cell of cells) {
    const name = key(cell.ranks, cell.size), shown = drawn.buttons.get(name);
    if (!shown) continue;
    const { colour } = styles[cell.algorithm];
    drawn.cells.set(name, cell);
    shown.textContent = format.lead(cell.margin) || "·";
    shown.setAttribute("aria-label", cell.text.join(", "));
    shown.style.setProperty("background", colour);
    shown.style.setProperty("color", inkOn(colour));
    shown.classList.add("fresh");
  }
  legend(styles);
  return [...drawn.buttons.values()].every((one) => one.classList.contains("fresh"));
}

// Marks all cells as waiting for new times.
export function awaitCells() {
  for (const one of drawn.buttons.values()) one.classList.remove("fresh");
  byId("map").firstChild?.classList.add("waiting");
}

function build(found, places, chosen, onChoose) {
  drawn = { places, cells: new Map(), buttons: new Map() };
  const known = new Set(found.cells.map((cell) => key(cell.ranks, cell.size)));
  const focused = document.activeElement?.dataset?.cell;
  const cell = (name) => (known.has(name) ? button(name, name === chosen, onChoose) : h("span", { class: "empty", text: "" }));
  const row = (ranks) => h("tr", {}, h("th", { scope: "row", text: format.count(ranks) }),
    ...found.sizes.map((size) => h("td", {}, cell(key(ranks, size)))));
  const head = h("tr", {}, h("th", { scope: "col", text: "ranks" }),
    ...found.sizes.map((size) => h("th", { scope: "col", text: format.size(size) })));
  const table = h("table", { class: "map", "aria-label": "Fastest algorithm by ranks and size" },
    h("thead", {}, head), h("tbody", {}, ...found.ranks.map(row)));
  table.addEventListener("keydown", (event) => move(event, table));
  byId("map").replaceChildren(table);
  const buttons = [...drawn.buttons.values()];
  const first = buttons.find((one) => one.getAttribute("aria-pressed") === "true") ?? buttons[0];
  if (first) first.tabIndex = 0;
  if (focused) drawn.buttons.get(focused)?.focus();
}

function button(name, pressed, onChoose) {
  const shown = h("button", {
    type: "button", tabindex: -1, "data-cell": name, "aria-pressed": String(pressed),
    onclick: () => onChoose(drawn.cells.get(name)),
  });
  point(shown, () => drawn.cells.get(name)?.text.join("\n") ?? "");
  drawn.buttons.set(name, shown);
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

function legend(styles) {
  const wins = new Map();
  for (const cell of drawn.cells.values()) wins.set(cell.algorithm, (wins.get(cell.algorithm) ?? 0) + 1);
  const ordered = [...wins].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  byId("legend").replaceChildren(...ordered.map(([name, count]) => h("li", {},
    h("span", { class: "swatch", style: { background: styles[name].colour } }),
    `${name} `, h("span", { class: "soft", text: `${count}` }))));
}
