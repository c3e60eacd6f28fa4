// Elements and SVG without inline styles, which the content security policy refuses.
const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

export const h = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
export const s = (name, attributes = {}, ...children) => filled(document.createElementNS(SVG, name), attributes, children);

export function options(select, values, chosen) {
  select.replaceChildren(...values.map(([value, text]) => h("option", { value, text, selected: value === chosen })));
  if (values.some(([value]) => value === chosen)) select.value = chosen;
}

// Shows a text next to the pointer or the focused element.
const tip = byId("tip");
export function point(element, text) {
  const show = (event) => {
    tip.textContent = typeof text === "function" ? text(event) : text;
    tip.hidden = !tip.textContent;
    const box = element.getBoundingClientRect();
    const x = event.clientX ?? box.left, y = event.clientY ?? box.bottom;
    tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${y + 16 + tip.offsetHeight > innerHeight ? Math.max(4, y - tip.offsetHeight - 10) : y + 16}px`;
  };
  const hide = () => { tip.hidden = true; };
  element.addEventListener("pointermove", show);
  element.addEventListener("focus", (event) => { if (element.matches(":focus-visible")) show(event); });
  element.addEventListener("pointerleave", hide);
  element.addEventListener("blur", hide);
}

// Black or white, whichever is more readable on a colour.
export function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}
