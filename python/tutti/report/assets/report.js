"use strict";
(function () {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 700px)");
  const ROW = 22; // height of a row of a legend
  const extra = {}; // height of further rows of the legend, by chart
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // Colours of the theme; the figures have only the colours of the data.
  function themed(layout) {
    const axis = {
      gridcolor: colour("--grid"), linecolor: colour("--line"), zerolinecolor: colour("--line"),
      tickcolor: colour("--line"), automargin: true, title: { font: { size: 13 } },
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

  // Ticks of a logarithmic axis whose texts do not overlap.
  function spaced(axis, width) {
    const values = axis.tickvals.map(Math.log10);
    const per = width / (values[values.length - 1] - values[0] || 1);
    const least = 8 * Math.max(...axis.ticktext.map((text) => text.length)) + 8;
    let last = -Infinity;
    return values.map((value) => {
      const fits = (value - last) * per >= least;
      if (fits) { last = value; }
      return fits;
    });
  }

  // Ticks at 1, 2 and 5 of each decade if they fit, else at 1.
  function decades(figure, height) {
    const shown = figure.data.filter((trace) => trace.visible !== false).flatMap((trace) => trace.y);
    const per = height / (Math.log10(Math.max(...shown) / Math.min(...shown)) || 1);
    return figure.layout.yaxis.ticktext.map((text) => per > 56 || /^10* /.test(text));
  }

  function only(axis, visible) {
    const kept = (values) => values.filter((_, index) => visible[index]);
    return { ...axis, tickvals: kept(axis.tickvals), ticktext: kept(axis.ticktext) };
  }

  function layoutOf(id) {
    const figure = figures[id], element = document.getElementById(id);
    const layout = merged(figure.layout, themed(figure.layout));
    const { xaxis = {}, yaxis = {}, height } = figure.layout;
    // A drawing with equal scales is at most as high as wide.
    layout.height = yaxis.scaleanchor ? Math.min(height, element.clientWidth) : height;
    layout.height += extra[id] ?? 0;
    if (xaxis.type === "log") { layout.xaxis = only(layout.xaxis, spaced(xaxis, element.clientWidth - 110)); }
    if (yaxis.type === "log") { layout.yaxis = only(layout.yaxis, decades(figure, height - 110)); }
    return layout;
  }

  // Draws a chart, and increases its height by that of all but one row of its legend.
  async function drawChart(id) {
    const element = document.getElementById(id);
    extra[id] = 0;
    await Plotly.react(id, figures[id].data, layoutOf(id), config);
    const legend = element.querySelector(".legend .scrollbox");
    const more = legend ? Math.round(legend.getBBox().height) - ROW : 0;
    if (more > ROW / 2) {
      extra[id] = more;
      await Plotly.react(id, figures[id].data, layoutOf(id), config);
    }
  }

  async function draw() {
    await Promise.all(Object.keys(figures).map(drawChart));
    document.documentElement.dataset.ready = "true";
  }

  function choose(select) {
    for (const id of select.dataset.charts.split(" ")) {
      for (const trace of figures[id].data) {
        trace.visible = String(trace.meta) === select.value;
      }
      // Each choice has a separate range, unless the chart fixes it.
      const layout = layoutOf(id);
      const free = Object.fromEntries(["xaxis", "yaxis"].filter((name) => !layout[name].range)
        .map((name) => [name, { autorange: true }]));
      Plotly.react(id, figures[id].data, merged(layout, free), config);
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
  narrow.addEventListener("change", draw);
  draw();
})();
