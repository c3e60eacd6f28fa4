// The page: state in the address, comparisons, and the run of the selected cell.
import * as api from "./api.js";
import * as controls from "./controls.js";
import { drawCurves } from "./curves.js";
import { drawDetail, drawEndpoint } from "./detail.js";
import { byId, h, options } from "./dom.js";
import * as format from "./format.js";
import { awaitCells, drawMap, updateCells } from "./map.js";

let state, platform;
let shown = null; // the comparison on the page
let known = { key: "", complete: false }; // the comparison whose schedules a slider re-times
let loading = Promise.resolve(); // the parameters of the platform
let chosen = null; // the selected run: ranks, size, schedule
let endpoint = ""; // the endpoint model behind which the selected run is shown, too
let job = null; // the running comparison: its controller, whether it is a preview, and has drawn
let waiting = false; // whether a slider has moved since the running preview started

const ready = (value) => { document.documentElement.dataset.ready = String(value); };

function address() {
  const kept = { ...state, ...(chosen && { at: chosen }), ...(endpoint && { endpoint }) };
  return `#${encodeURIComponent(JSON.stringify(kept))}`;
}

function fromAddress() {
  try {
    const { at = null, endpoint: model = "", ...found } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    [chosen, endpoint] = [at, model];
    return found;
  } catch {
    return null;
  }
}

function fail(error) {
  if (error.name === "AbortError") return;
  const box = byId("problem");
  box.hidden = false;
  box.replaceChildren(h("p", { text: `error: ${error.problem ?? error}` }), ...(error.hint ? [h("p", { class: "soft", text: `hint: ${error.hint}` })] : []));
  byId("status").textContent = "";
}

function busy(is) {
  byId("progress").hidden = !is;
  byId("cancel").hidden = !is;
  if (is) byId("progress").removeAttribute("value");
  ready(!is);
}

// Draws the map, then the rest after the browser has painted it.
async function draw() {
  const mine = shown;
  byId("title").textContent = `${shown.collective} on ${shown.platform}`;
  document.title = `${shown.collective} on ${shown.platform}: tutti explore`;
  drawMap(shown, chosen ? `${chosen.ranks} ${chosen.size}` : "", choose);
  await painted();
  if (mine !== shown) return;
  const select = byId("curve-ranks");
  const current = shown.ranks.map(String).includes(select.value) ? select.value : String(chosen?.ranks ?? shown.ranks[shown.ranks.length - 1]);
  options(select, shown.ranks.map((one) => [String(one), format.count(one)]), current);
  drawBoth();
  byId("summary").replaceChildren(...shown.summary.map((one) => h("li", {}, h("b", { text: one.name }), ` ${one.found} `, h("span", { class: "soft", text: one.why }))));
  const left = byId("left-out");
  left.hidden = !shown.left_out.length;
  left.querySelector("summary").textContent = `Left out: ${shown.left_out.length}`;
  left.querySelector("ul").replaceChildren(...shown.left_out.map((text) => h("li", { text })));
}

// A hidden page paints nothing, so that the timer alone resolves.
const painted = () => new Promise((resolve) => {
  requestAnimationFrame(() => setTimeout(resolve));
  setTimeout(resolve, 100);
});

function drawBoth() {
  const ranks = Number(byId("curve-ranks").value);
  for (const quantity of ["time", "busbw"]) drawCurves(byId(`curve-${quantity}`), shown, ranks, quantity, choose);
}

function report(found, started, preview) {
  const took = ((performance.now() - started) / 1000).toFixed(2);
  const what = preview ? "preview: the fastest schedules re-timed" : `${format.count(found.measurements)} measurements`;
  byId("status").textContent = found.complete || preview ? `${what}, ${took} s` : `${format.count(found.measurements)} of ${format.count(found.total)} measurements`;
}

// Compares all algorithms of the state, or only re-times the fastest while a slider moves.
async function compare({ preview = false } = {}) {
  job?.controller.abort();
  const mine = job = { controller: new AbortController(), preview, drawn: false };
  const started = performance.now();
  busy(true);
  byId("cancel").hidden = preview;
  byId("progress").hidden = preview;
  if (preview) awaitCells();
  else history.replaceState(null, "", address());
  let ended = false, drawing = null;
  const on = (name, value) => {
    if (mine !== job) return;
    if (name === "stage" && !preview) byId("status").textContent = `${value} ...`;
    if (name === "progress") { byId("progress").max = value[1]; byId("progress").value = value[0]; }
    if (name === "cells" && updateCells(value)) report(value, started, true);
    if (name === "partial" || name === "result") {
      drawing = receive(value, preview) ?? drawing;
      if (!preview || value.complete) report(value, started, false);
    }
    if (name === "failed") fail(value);
    ended ||= ["result", "failed", "cancelled"].includes(name);
    mine.drawn ||= ["cells", "partial", "result"].includes(name);
    if (waiting && mine.drawn) { waiting = false; compare({ preview: true }); }
  };
  try {
    await api.stream("/api/compare", { state, known: preview ? known.key : "" }, on, mine.controller.signal);
    if (mine === job && !ended) throw { problem: "the comparison failed", hint: "the terminal shows the reason" };
    await Promise.all([drawing, loading]);
    if (mine === job && !preview) await refresh();
  } catch (error) {
    if (mine === job) fail(error);
  }
  if (mine !== job) return;
  job = null;
  if (waiting) { waiting = false; compare({ preview: true }); return; }
  busy(false);
}

// Draws a comparison. After a preview the complete comparison replaces it, no unfinished one.
function receive(value, preview) {
  byId("problem").hidden = true;
  if (value.key && (value.complete || !known.complete)) known = { key: value.key, complete: value.complete };
  if (!preview && !value.complete && shown?.preview) return null;
  shown = { ...value, preview: preview && !value.complete };
  return draw();
}

async function setPlatform() {
  platform = await api.post("/api/platform", { state });
  controls.showPlatform(platform, state, { onSlide: slide, onSet: setParameter, onSelect: select });
}

// Compares the changed state; a `reload` also reads the parameters of the platform again.
async function changed(reload, { slid = false } = {}) {
  try {
    if (!slid) { known = { key: "", complete: false }; if (shown) shown.preview = false; }
    loading = reload ? setPlatform().catch(fail) : Promise.resolve();
    controls.showState(state);
    await compare();
  } catch (error) {
    fail(error);
    busy(false);
  }
}

// A newer position replaces a preview that has drawn; otherwise the map would never change.
function slide(key, value) {
  state.changes = { ...state.changes };
  if (value === null) delete state.changes[key];
  else state.changes[key] = value;
  if (job?.preview && !job.drawn) waiting = true;
  else compare({ preview: true });
}

function setParameter(key) {
  waiting = false;
  if (key === null) state.changes = {};
  for (const input of document.querySelectorAll("#parameters input")) {
    input.parentNode.classList.toggle("changed", input.dataset.key in state.changes);
  }
  changed(key === null, { slid: true });
}

function select() {
  const names = [...document.querySelectorAll("#selected input:checked")].map((one) => one.value);
  if (names.length) { state.algorithms = names; changed(false); }
}

// Selects a run; a second click on a cell keeps the selection.
async function choose({ ranks, size, schedule }) {
  chosen = { ranks, size, schedule };
  history.replaceState(null, "", address());
  for (const one of document.querySelectorAll(".map button")) one.setAttribute("aria-pressed", String(one.dataset.cell === `${ranks} ${size}`));
  byId("curve-ranks").value = String(ranks);
  drawBoth();
  await refresh();
}

// Shows the selected run in the current state; a schedule that is gone makes room for the winner.
async function refresh() {
  if (!chosen || !shown) return;
  const here = shown.rows.filter((row) => row[0] === chosen.ranks && row[1] === chosen.size).sort((a, b) => a[4] - b[4]);
  if (!here.length) { byId("detail").hidden = true; return; }
  const own = here.find((row) => row[3] === chosen.schedule) ?? here[0];
  chosen.schedule = own[3];
  options(byId("schedule"), here.map((row) => [row[3], `${row[3]} (${format.time(row[4])})`]), chosen.schedule);
  const rival = own === here[0] ? here[1]?.[3] : here[0][3];
  try {
    const run = await api.post("/api/run", { state, ...chosen, rival });
    drawDetail(run);
    await showEndpoint(run);
  } catch (error) {
    fail(error);
  }
}

// Runs the selected schedule behind the chosen endpoint model.
async function showEndpoint(run) {
  const box = byId("endpoint-found");
  box.hidden = !endpoint;
  if (!endpoint) return;
  box.textContent = `running behind ${endpoint} ...`;
  try {
    drawEndpoint(box, await api.post("/api/endpoint", { state, ...chosen, endpoint }), run);
  } catch (error) {
    box.textContent = `${error.problem ?? error}. ${error.hint ?? ""}`;
  }
}

function listen() {
  const on = (id, event, act) => byId(id).addEventListener(event, act);
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  on("platform", "change", () => { state = { ...state, platform: byId("platform").value, model: null, changes: {} }; fitRanks(); });
  on("model", "change", () => { state = { ...state, model: byId("model").value, changes: {} }; changed(true); });
  for (const id of ["collective", "datatype"]) on(id, "change", () => { state[id] = byId(id).value; changed(true); });
  on("ranks", "change", () => { state.ranks = controls.readRanks(byId("ranks").value); changed(true); });
  for (const id of ["size-from", "size-to", "size-factor"]) on(id, "change", () => { state.sizes = controls.readSizes(state); changed(false); });
  on("algorithms", "change", () => {
    const value = byId("algorithms").value;
    const winners = shown ? [...new Set(shown.cells.map((cell) => cell.schedule))] : platform.algorithms;
    state.algorithms = value === "selected" ? winners : value;
    changed(true);
  });
  on("curve-ranks", "change", drawBoth);
  on("schedule", "change", () => choose({ ...chosen, schedule: byId("schedule").value }));
  on("endpoint", "change", () => { endpoint = byId("endpoint").value; history.replaceState(null, "", address()); refresh(); });
  on("cancel", "click", () => { job?.controller.abort(); job = null; busy(false); byId("status").textContent = "cancelled"; });
  on("share", "click", share);
  for (const button of document.querySelectorAll("[data-export]")) button.addEventListener("click", () => exported(button.dataset.export));
  addEventListener("hashchange", start);
  let timer;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(() => { if (shown) { drawBoth(); refresh(); } }, 200); });
}

// Removes rank counts that the new platform does not have.
async function fitRanks() {
  const all = shown?.ranks ?? [];
  try {
    await setPlatform();
  } catch {
    state.ranks = all.length ? [all[0]] : [4];
  }
  await changed(true);
}

async function share() {
  history.replaceState(null, "", address());
  const link = `${location.origin}/${address()}`;
  try {
    await navigator.clipboard.writeText(link);
    byId("status").textContent = "link copied";
  } catch {
    byId("status").textContent = "the address of this page is the link";
  }
}

async function exported(kind) {
  try {
    byId("status").textContent = "exporting ...";
    if (kind === "trace" && !chosen) throw { problem: "no run is selected", hint: "select a cell of the decision map" };
    await api.download(`/api/export/${kind}`, { state, ...(chosen ?? {}) });
    byId("status").textContent = "exported";
  } catch (error) {
    fail(error);
  }
}

async function start() {
  state = fromAddress() ?? controls.initialState((await choosing).base);
  const comparing = changed(true);
  controls.fillChoices(await choosing);
  controls.showState(state);
  byId("endpoint").value = endpoint;
  await comparing;
}

const choosing = api.get("/api/choices");
try {
  byId("parameters-box").open = innerWidth > 900;
  listen();
  await start();
} catch (error) {
  fail(error);
}
