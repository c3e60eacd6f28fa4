"use strict";
(function () {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // Colours of the theme; the figures have only the colours of the data.
  function themed(layout) {
    const axis = {
      gridcolor: colour("--grid"), linecolor: colour("--line"), zerolinecolor: colour("--line"),
      tickcolor: colour("--line"), automargin: true,
    };
    const names = ["xaxis", "yaxis", ...Object.keys(layout).filter((name) => /^[xy]axis\d+$/.test(name))];
    return {
      font: { color: colour("--ink"), size: 13 },
      paper_bgcolor: colour("--paper"), plot_bgcolor: colour("--paper"),
      hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--line"), font: { color: colour("--ink"), size: 13 } },
      ...Object.fromEntries(names.map((name) => [name, axis])),
    };
  }

  function merged(layout, extra) {
    const out = { ...layout };
    for (const [key, value] of Object.entries(extra)) {
      const both = typeof value === "object" && typeof out[key] === "object";
      out[key] = both ? merged(out[key], value) : value;
    }
    return out;
  }

  // Ticks at 1, 2 and 5 of each decade for few decades, else at 1.
  function layoutOf(figure) {
    const layout = merged(figure.layout, themed(figure.layout));
    if (figure.layout.yaxis.type !== "log") { return layout; }
    const shown = figure.data.filter((trace) => trace.visible !== false).flatMap((trace) => trace.y);
    const decades = Math.log10(Math.max(...shown) / Math.min(...shown));
    const { tickvals, ticktext } = figure.layout.yaxis;
    const visible = tickvals.map((_, index) => decades < 3.5 || /^10* /.test(ticktext[index]));
    const only = (values) => values.filter((_, index) => visible[index]);
    return { ...layout, yaxis: { ...layout.yaxis, tickvals: only(tickvals), ticktext: only(ticktext) } };
  }

  async function draw() {
    const drawn = Object.entries(figures).map(([id, figure]) =>
      Plotly.react(id, figure.data, layoutOf(figure), config));
    await Promise.all(drawn);
    document.documentElement.dataset.ready = "true";
  }

  function choose(select) {
    for (const id of select.dataset.charts.split(" ")) {
      for (const trace of figures[id].data) {
        trace.visible = String(trace.meta) === select.value;
      }
      // Each choice has a separate range.
      const layout = layoutOf(figures[id]);
      Plotly.react(id, figures[id].data, merged(layout, { xaxis: { autorange: true }, yaxis: { autorange: true } }), config);
    }
  }

  function sort(table, header) {
    const column = [...header.parentNode.children].indexOf(header);
    const up = header.getAttribute("aria-sort") !== "ascending";
    const sign = up ? 1 : -1;
    const rows = [...table.tBodies[0].rows];
    const value = (row) => row.cells[column].dataset.value;
    const numeric = header.classList.contains("number");
    rows.sort((a, b) => sign * (numeric ? Number(value(a)) - Number(value(b)) : value(a).localeCompare(value(b))));
    for (const other of header.parentNode.children) { other.removeAttribute("aria-sort"); }
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    table.tBodies[0].append(...rows);
  }

  for (const select of document.querySelectorAll("select[data-charts]")) {
    select.addEventListener("change", () => choose(select));
    // Browsers restore the state of a form on reload; the charts follow it.
    if (select.selectedOptions.length && !select.selectedOptions[0].defaultSelected) {
      window.addEventListener("load", () => choose(select));
    }
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const header of table.tHead.rows[0].cells) {
      header.querySelector("button").addEventListener("click", () => sort(table, header));
    }
  }
  dark.addEventListener("change", draw);
  draw();
})();
