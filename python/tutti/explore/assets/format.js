// Texts of quantities, as in reports.
const digits = (value) => (value === 0 ? "0" : String(Number(value.toPrecision(4))));

function scaled(value, units) {
  const [factor, unit] = units.find(([least]) => Math.abs(value) >= least) ?? units[units.length - 1];
  return `${digits(value / factor)} ${unit}`;
}

export const time = (ps) => scaled(ps, [[1e12, "s"], [1e9, "ms"], [1e6, "us"], [1e3, "ns"], [1, "ps"]]);
export const size = (bytes) => scaled(bytes, [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
export const rate = (perSecond) => scaled(perSecond, [[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]]);
export const share = (ratio) => {
  const percent = ratio * 100;
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  return `${percent < 99.95 ? Number(percent.toFixed(1)) : percent < 100 ? 99.9 : 100} %`;
};
export const count = (value) => value.toLocaleString("en");

export function lead(margin) {
  if (margin === null) return "";
  if (margin < 0.005) return "<1";
  return margin < 9.995 ? (margin * 100).toFixed(0) : `${(margin + 1).toFixed(0)}x`;
}

// A quantity such as "25 GB/s", multiplied; times are integers of picoseconds.
export function multiplied(text, factor) {
  const found = /^([\d.]+(?:e[+-]?\d+)?) ?(.+)$/.exec(text);
  if (!found) return text;
  const value = Number(found[1]) * factor, unit = found[2];
  const seconds = { s: 1e12, ms: 1e9, us: 1e6, ns: 1e3, ps: 1 };
  if (unit in seconds) return `${Math.max(0, Math.round(value * seconds[unit]))} ps`;
  return `${digits(value)} ${unit}`;
}

// A parameter as it is read best: times with a suitable unit.
export function parameter(text) {
  const found = /^(\d+) ps$/.exec(text);
  return found ? time(Number(found[1])) : text;
}
