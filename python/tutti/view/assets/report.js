"use strict";
(function () {
  const [light, shades] = ["figures", "dark"].map((id) => JSON.parse(document.getElementById(id).textContent));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let figures = coloured();
  const narrow = window.matchMedia("(max-width: 700px)");
  const ROW = 22; // height of a row of a legend
  const extra = {}; // height of further rows of the legend, by chart
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // The figures with the colours of the data on the page: every colour has a shade for dark pages.
  function coloured() {
    if (!dark.matches) { return light; }
    const text = JSON.stringify(light).replace(/#[0-9A-F]{6}/g, (found) => shades[found] ?? found);
    return JSON.parse(text);
  }

  // Colours of the theme; the figures have only the colours of the data.
  function themed(layout) {
    const axis = {
      gridcolor: colour("--grid"), linecolor: colour("--line"), zerolinecolor: colour("--line"),
      tickcolor: colour("--line"), automargin: true, title: { font: { size: 13 }, standoff: 12 },
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
    // By default, a legend scrolls within half of the height.
    if (extra[id]) { layout.legend = { ...layout.legend, maxheight: 1 }; }
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

  // Adds plotly.js, which the page has compressed, and draws the charts.
  async function start() {
    try {
      const packed = atob(document.getElementById("library").textContent);
      const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
      const script = document.createElement("script");
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      script.textContent = await new Response(stream).text();
      document.head.append(script);
    } catch (problem) {
      const text = `This browser cannot draw the charts (${problem.message}). Browsers since May 2023 can.`;
      for (const chart of document.querySelectorAll(".chart")) { chart.textContent = text; }
      return;
    }
    await draw();
    // Browsers restore the state of a form on reload; the charts follow it.
    for (const select of document.querySelectorAll("select[data-charts]")) {
      if (select.selectedOptions.length && !select.selectedOptions[0].defaultSelected) { choose(select); }
    }
  }

  async function draw() {
    await Promise.all(Object.keys(figures).map(drawChart));
    document.documentElement.dataset.ready = "true";
  }

  function choose(select) {
    if (!window.Plotly) { return; }
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

  // Applies the selectors again to figures of another theme.
  function restore() {
    for (const select of document.querySelectorAll("select[data-charts]")) {
      for (const id of select.dataset.charts.split(" ")) {
        for (const trace of figures[id].data) { trace.visible = String(trace.meta) === select.value; }
      }
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

  // The rows of a table with unscaled values; estimates have a second column, their half-width.
  function exported(table) {
    const heads = [...table.tHead.rows[0].cells], rows = [...table.tBodies[0].rows];
    const columns = heads.flatMap((head, place) => {
      const numeric = head.matches(".number, .hidden");
      const value = (row) => {
        const cell = row.cells[place], text = cell.innerText.trim();
        if (text === "-") { return ""; }
        return numeric ? cell.dataset.value ?? text : text.replace(/\s*\n\s*/g, "; ");
      };
      const half = (row) => row.cells[place].dataset.half ?? "";
      const name = head.dataset.export;
      return [{ name, value }, ...(rows.some(half) ? [{ name: `${name}, 95 % CI half-width`, value: half }] : [])];
    });
    return [columns.map((one) => one.name), ...rows.map((row) => columns.map((one) => one.value(row)))];
  }

  function save(table) {
    const quoted = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    const lines = exported(table).map((row) => row.map(quoted).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }));
    link.download = `${table.dataset.name.toLowerCase().replace(/[^a-z0-9]+/g, "_")}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // Pages from disk may lack the clipboard interface, so a selected text is copied.
  function copy(table, button) {
    const area = document.createElement("textarea");
    area.value = exported(table).map((row) => row.join("\t")).join("\n");
    area.style.position = "fixed";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    button.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  for (const button of document.querySelectorAll("button[data-export]")) {
    const table = button.closest(".export").nextElementSibling.querySelector("table");
    button.addEventListener("click", () => button.dataset.export === "csv" ? save(table) : copy(table, button));
  }
  for (const select of document.querySelectorAll("select[data-charts]")) {
    select.addEventListener("change", () => choose(select));
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const header of table.tHead.rows[0].cells) {
      header.querySelector("button").addEventListener("click", () => sort(table, header));
    }
  }
  start().then(() => {
    dark.addEventListener("change", () => { figures = coloured(); restore(); draw(); });
    narrow.addEventListener("change", draw);
  });
})();
