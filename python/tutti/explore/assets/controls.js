// The form: reads and writes the state of the page.
import { byId, h, options } from "./dom.js";
import * as format from "./format.js";

const GROUPS = { link: "Links", model: "Model", endpoint: "Endpoint" };

export function fillChoices(choices) {
  const base = choices.base.platform ? [] : [["", `${choices.base.platform_name} (experiment)`]];
  options(byId("platform"), [...base, ...choices.platforms.map((one) => [one.name, one.name])], choices.base.platform);
  options(byId("collective"), choices.collectives.map((one) => [one, one]), choices.base.collective);
  options(byId("endpoint"), [["", "of the model"], ...choices.endpoints.map((one) => [one, one])], "");
  options(byId("datatype"), choices.datatypes.map((one) => [one, one]), choices.base.datatype);
}

// The state of a page that has no state in its address.
export function initialState(base) {
  const { sizes } = base;
  const listed = Array.isArray(base.algorithms) ? base.algorithms : base.algorithms === "all" ? "all" : "defaults";
  const ratio = sizes.length > 1 ? bytes(sizes[1]) / bytes(sizes[0]) : 4;
  const regular = Number.isInteger(ratio) && sizes.every((one, index) => !index || bytes(one) === bytes(sizes[index - 1]) * ratio);
  return {
    platform: base.platform, collective: base.collective, datatype: base.datatype, ranks: base.ranks,
    sizes: regular && sizes.length > 1 ? { from: sizes[0], to: sizes[sizes.length - 1], factor: ratio } : sizes,
    algorithms: listed, changes: {},
  };
}

function bytes(text) {
  const [, value, unit] = /^([\d.]+) ?(\w+)$/.exec(text);
  return Number(value) * { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }[unit];
}

export function showState(state) {
  byId("platform").value = state.platform ?? "";
  byId("collective").value = state.collective;
  byId("datatype").value = state.datatype;
  byId("ranks").value = ranksText(state.ranks);
  const span = Array.isArray(state.sizes) ? { from: state.sizes[0], to: state.sizes[state.sizes.length - 1], factor: "" } : state.sizes;
  byId("size-from").value = span.from;
  byId("size-to").value = span.to;
  byId("size-factor").value = span.factor;
  byId("algorithms").value = Array.isArray(state.algorithms) ? "selected" : state.algorithms;
}

function ranksText(ranks) {
  if (!Array.isArray(ranks)) return typeof ranks === "object" ? `${ranks.from}:${ranks.to}:${ranks.factor ?? 2}` : String(ranks);
  return ranks.map((one) => (typeof one === "object" ? ranksText(one) : one)).join(", ");
}

export function readRanks(text) {
  return text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => {
    const [from, to, factor] = part.split(":").map(Number);
    return part.includes(":") ? { from, to, factor: factor ?? 2 } : from;
  });
}

export function readSizes(state) {
  const [from, to, factor] = ["size-from", "size-to", "size-factor"].map((id) => byId(id).value.trim());
  return factor ? { from: withUnit(from), to: withUnit(to), factor: Number(factor) } : state.sizes;
}

const withUnit = (text) => (/^\d+$/.test(text) ? `${text} B` : text);

export function showPlatform(found, state, { onSlide, onSet, onSelect }) {
  options(byId("model"), found.models.map((one) => [one.name, one.name]), state.model ?? found.model);
  const most = found.most_ranks ? `, ${format.count(found.most_ranks)} NPUs` : "";
  byId("about").textContent = [found.summary, found.topology ? `${found.topology}${most}` : "no topology"].filter(Boolean).join(". ");
  byId("note").textContent = found.note;
  byId("note").hidden = !found.note || state.algorithms !== "defaults";
  showSelected(found, state, onSelect);
  const groups = Object.entries(GROUPS).map(([group, title]) => {
    const rows = found.parameters.filter((one) => one.group === group);
    return rows.length ? h("fieldset", {}, h("legend", { text: title }), ...rows.map((one) => slider(one, state, onSlide, onSet))) : "";
  });
  const reset = h("button", { type: "button", id: "reset", text: "Reset parameters", onclick: () => onSet(null) });
  byId("parameters").replaceChildren(...groups, reset);
}

function showSelected(found, state, onSelect) {
  const box = byId("selected");
  box.hidden = !Array.isArray(state.algorithms);
  const chosen = new Set(Array.isArray(state.algorithms) ? state.algorithms : []);
  const names = [...new Set([...found.algorithms, ...chosen])];
  box.replaceChildren(...names.map((name) => h("label", {},
    h("input", { type: "checkbox", value: name, checked: chosen.has(name), onchange: onSelect }), ` ${name}`)));
}

// Multiplies a parameter by 2^-4 to 2^4.
function slider(one, state, onSlide, onSet) {
  const current = state.changes?.[one.key];
  const output = h("output", { text: format.parameter(current ?? one.value) });
  const short = one.key.replace(/^topology\.links\[(\d+)\]\./, "link $1 ").replace(/^models\.[^.]+\./, "").replace(/^(compute|topology)\./, "");
  const input = h("input", {
    type: "range", min: -4, max: 4, step: 0.25, value: current ? position(one.value, current) : 0,
    "data-key": one.key, "aria-label": short, title: one.source,
    oninput: () => {
      const value = format.multiplied(one.value, 2 ** Number(input.value));
      output.textContent = format.parameter(value);
      input.setAttribute("aria-valuetext", output.textContent);
      onSlide(one.key, Number(input.value) ? value : null);
    },
    onchange: () => onSet(one.key),
  });
  return h("label", { class: current ? "slider changed" : "slider" }, h("span", { text: short }), output, input);
}

function position(original, current) {
  const number = (text) => {
    const found = /^([\d.]+(?:e[+-]?\d+)?) ?(\S+)$/.exec(text);
    return Number(found?.[1]) * ({ s: 1e12, ms: 1e9, us: 1e6, ns: 1e3, ps: 1 }[found?.[2]] ?? 1);
  };
  const power = Math.log2(number(current) / number(original));
  return Number.isFinite(power) ? Math.max(-4, Math.min(4, Math.round(power * 4) / 4)) : 0;
}
