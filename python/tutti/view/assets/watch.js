"use strict";
(() => {
  const scene = JSON.parse(document.getElementById("scene").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const CELL = 92, HALF = 21, LANE = 7, NIC = 29;
  const ASIDE = [[0, -1], [0, 1], [1, 0], [-1, 0]]; // offset of a lane from the centre line, by direction
  const STEP = [[1, 0], [-1, 0], [0, -1], [0, 1]]; // E, W, N, S on the screen
  const NAMES = ["east", "west", "north", "south"];
  const WHY = {
    local: ["L", "a flit buffered at this router uses the port"],
    farther: ["F", "a flit from farther away uses the port"],
    passing: ["C", "another passing flit uses the port"],
    no_buffer: ["B", "the next router has no free buffer"],
    order: ["O", "earlier flits of its packet are buffered here"],
    responses: ["W", "this router waits for further responses of the reduction"],
    preset: ["P", "the port is reserved for the preset path of a broadcast"],
  };
  const $ = (id) => document.getElementById(id);
  const state = { cycle: scene.start, phase: 1, playing: false, follow: -1, hover: -1, last: 0 };

  const make = (name, attributes, parent, text) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  };
  const dark = () => window.matchMedia("(prefers-color-scheme: dark)").matches;
  const colour = (message) =>
    `hsl(${(message * 137.508 + 205) % 360} ${62 + (message % 3) * 9}% ${(dark() ? 62 : 42) + (message % 2) * 6}%)`;
  const messageOf = (packet) => scene.packets[packet][0];
  const at = (router) => [
    CELL * (router % scene.columns) + CELL / 2 + 6,
    CELL * (scene.rows - 1 - Math.floor(router / scene.columns)) + CELL / 2,
  ];
  const named = (router) => `(${router % scene.columns}, ${Math.floor(router / scene.columns)})`;

  // Buffered packets by cycle and router.
  const stays = Array.from({ length: scene.cycles }, () => new Map());
  for (const [router, packet, start, end] of scene.stays) {
    for (let cycle = start; cycle <= Math.min(end, scene.cycles - 1); cycle += 1) {
      if (!stays[cycle].has(router)) stays[cycle].set(router, []);
      stays[cycle].get(router).push(packet);
    }
  }

  // The static drawing of the mesh.
  const mesh = $("mesh");
  mesh.setAttribute("viewBox", `0 0 ${CELL * scene.columns + 24} ${CELL * scene.rows + 8}`);
  const ground = make("g", {}, mesh), below = make("g", {}, mesh);
  const boxes = make("g", {}, mesh), above = make("g", {}, mesh);
  for (let router = 0; router < scene.columns * scene.rows; router += 1) {
    const [x, y] = at(router);
    STEP.forEach(([dx, dy], port) => {
      const [column, row] = [router % scene.columns + dx, Math.floor(router / scene.columns) - dy];
      if (column < 0 || row < 0 || column >= scene.columns || row >= scene.rows) return;
      const [ax, ay] = [ASIDE[port][0] * LANE, ASIDE[port][1] * LANE];
      make("line", { class: "wire", x1: x + dx * HALF + ax, y1: y + dy * HALF + ay,
        x2: x + dx * (CELL - HALF) + ax, y2: y + dy * (CELL - HALF) + ay }, ground);
    });
    make("line", { class: "stub", x1: x - HALF, y1: y + HALF, x2: x - NIC + 4, y2: y + NIC - 4 }, ground);
    make("circle", { class: "nic", cx: x - NIC, cy: y + NIC, r: 6 }, ground);
    make("rect", { class: "router", x: x - HALF, y: y - HALF, width: 2 * HALF, height: 2 * HALF, rx: 4 }, boxes);
    make("text", { class: "name", x: x + HALF + 2, y: y - HALF - 3 }, boxes, named(router));
  }
  const flits = make("g", {}, boxes);

  const shown = (message) => {
    const only = state.hover >= 0 ? state.hover : state.follow;
    return only < 0 || only === message;
  };
  const dim = (message) => (shown(message) ? "" : " dim");
  const pick = (node, packet) => {
    node.addEventListener("click", () => follow(messageOf(packet)));
    make("title", {}, node, described(messageOf(packet)));
    return node;
  };
  const described = (message) => {
    const one = scene.messages[message];
    if (one.kind === "reduction") return `${message}: reduction to ${named(one.to[0])}`;
    if (one.kind === "unicast") return `${message}: unicast from ${named(one.from)} to ${named(one.to[0])}`;
    const all = one.kind === "broadcast" ? " to all" : ` to ${one.to.length} nodes`;
    return `${message}: ${one.kind} from ${named(one.from)}${all}`;
  };

  const lane = (router, port, hops, share, shift) => {
    const [x, y] = at(router), [dx, dy] = STEP[port];
    const ax = ASIDE[port][0] * shift, ay = ASIDE[port][1] * shift;
    const start = HALF, end = CELL * hops - HALF, reach = start + (end - start) * share;
    return [[x + dx * start + ax, y + dy * start + ay], [x + dx * reach + ax, y + dy * reach + ay]];
  };

  const drawFlits = () => {
    flits.replaceChildren();
    for (const [router, packets] of stays[state.cycle]) {
      const [x, y] = at(router);
      packets.slice(0, 9).forEach((packet, place) => {
        const message = messageOf(packet);
        const dot = make("circle", { class: "flit" + dim(message), r: 5.4, fill: colour(message),
          cx: x - 12 + 12 * (place % 3), cy: y - 12 + 12 * Math.floor(place / 3) }, flits);
        pick(dot, packet);
      });
      if (packets.length > 9) {
        make("text", { class: "more", x: x + 4, y: y + HALF - 2 }, flits, `+${packets.length - 9}`);
      }
    }
  };

  const drawRequests = () => {
    const share = Math.min(1, state.phase / 0.35);
    for (const [packet, router, port, hops] of scene.requests[state.cycle]) {
      const message = messageOf(packet);
      const [[x1, y1], [x2, y2]] = lane(router, port, hops, share, LANE + 6);
      make("line", { class: "request" + dim(message), x1, y1, x2, y2, stroke: colour(message) }, below);
    }
  };

  const drawFlights = () => {
    const share = Math.max(0, Math.min(1, (state.phase - 0.2) / 0.7));
    for (const [packet, router, port, hops, copies, why] of scene.flights[state.cycle]) {
      const message = messageOf(packet), paint = colour(message), faded = dim(message);
      const [[x1, y1], [x2, y2]] = lane(router, port, hops, share, LANE);
      const line = make("line", { class: "flight" + faded, x1, y1, x2, y2, stroke: paint }, above);
      pick(line, packet);
      const gone = HALF + (CELL * hops - 2 * HALF) * share;
      for (const copy of copies) {
        const [cx, cy] = at(copy), [sx, sy] = at(router);
        if (Math.abs(cx - sx) + Math.abs(cy - sy) > gone + HALF) continue;
        make("circle", { class: "copy" + faded, r: 4.4, stroke: paint,
          cx: cx + ASIDE[port][0] * LANE, cy: cy + ASIDE[port][1] * LANE }, above);
      }
      const [dx, dy] = STEP[port];
      const [tip, wing] = [7, 5.5];
      const points = [[x2 + dx * tip, y2 + dy * tip], [x2 - dx * 3 + dy * wing, y2 - dy * 3 + dx * wing],
        [x2 - dx * 3 - dy * wing, y2 - dy * 3 - dx * wing]];
      const head = make("polygon", { class: "head" + faded, fill: paint, points: points.join(" ") }, above);
      pick(head, packet);
      if (share === 1 && WHY[why]) {
        const [bx, by] = [x2 - dx * 6 + ASIDE[port][0] * 11, y2 - dy * 6 + ASIDE[port][1] * 11];
        const badge = make("circle", { class: "badge" + faded, cx: bx, cy: by, r: 7 }, above);
        make("title", {}, badge, `premature stop: ${WHY[why][1]}`);
        make("text", { class: "letter" + faded, x: bx, y: by + 3.6 }, above, WHY[why][0]);
      }
    }
  };

  const drawMarks = () => {
    for (const [packet, router, what, port] of scene.marks[state.cycle]) {
      const message = messageOf(packet), paint = colour(message), faded = dim(message);
      const [x, y] = at(router);
      if (what === "idle") {
        const [[x1, y1], [x2, y2]] = lane(router, port, 1, 1, LANE);
        const line = make("line", { class: "idle" + faded, x1, y1, x2, y2 }, above);
        make("title", {}, line, "reserved for a flit that stopped earlier on its path");
      } else if (what === "arrived") {
        const nic = make("circle", { class: "flit" + faded, cx: x - NIC, cy: y + NIC, r: 7.5, fill: paint }, above);
        pick(nic, packet);
      } else if (what === "injected") {
        make("circle", { class: "mark" + faded, cx: x - NIC, cy: y + NIC, r: 9, stroke: paint }, above);
      } else {
        const [cx, cy] = [x + HALF - 6, y - HALF + 6];
        const path = what === "merged"
          ? `M${cx - 4} ${cy}h8M${cx} ${cy - 4}v8` : `M${cx - 3.5} ${cy - 3.5}l7 7M${cx - 3.5} ${cy + 3.5}l7 -7`;
        make("path", { class: "mark" + faded, d: path, stroke: paint }, above);
      }
    }
  };

  const counted = (count, one, many) => `${count} ${count === 1 ? one : many ?? one + "s"}`;
  const line = (packet, text) => {
    const item = document.createElement("li");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.background = colour(messageOf(packet));
    item.append(swatch, text);
    return item;
  };
  const drawLog = () => {
    const rows = [];
    const listed = (packet) => shown(messageOf(packet));
    const alike = new Map(); // equal events of a message at several nodes share a row
    for (const [packet, router, what, port] of scene.marks[state.cycle]) {
      if (!listed(packet)) continue;
      const key = `${messageOf(packet)},${what},${what === "idle" ? port : ""}`;
      if (!alike.has(key)) alike.set(key, { packet, what, port, routers: [] });
      alike.get(key).routers.push(router);
    }
    for (const { packet, what, port, routers } of alike.values()) {
      const place = routers.length < 4 ? routers.map(named).join(", ") : `${routers.length} routers`;
      const text = { injected: `injected at ${place}`, arrived: `arrived at ${place}`,
        dropped: `dropped at ${place}`, merged: `combined at ${place}`,
        idle: `${NAMES[port]} port reserved but idle: ${place}` }[what];
      rows.push(line(packet, text));
    }
    for (const [packet, router, port, hops] of scene.requests[state.cycle]) {
      if (listed(packet)) rows.push(line(packet, `requests ${counted(hops, "hop")} ${NAMES[port]} from ${named(router)}`));
    }
    for (const [packet, router, port, hops, copies, why] of scene.flights[state.cycle]) {
      if (!listed(packet)) continue;
      const retained = copies.length ? `, leaves ${counted(copies.length, "copy", "copies")}` : "";
      const stop = WHY[why] ? `, premature stop: ${WHY[why][1]}` : "";
      rows.push(line(packet, `traverses ${counted(hops, "hop")} ${NAMES[port]} from ${named(router)}${retained}${stop}`));
    }
    if (!rows.length) rows.push(Object.assign(document.createElement("li"), { textContent: "none" }));
    $("log").replaceChildren(...rows.slice(0, 200));
  };

  // The list of messages.
  const items = scene.messages.map((one, message) => {
    const item = document.createElement("li"), button = document.createElement("button");
    const swatch = document.createElement("span"), time = document.createElement("span");
    button.type = "button";
    swatch.className = "swatch";
    swatch.style.background = colour(message);
    time.className = "time";
    time.textContent = one.end < 0 ? `${one.cycle} to …` : `${one.cycle} to ${one.end} (${one.end - one.cycle})`;
    button.append(swatch, described(message), time);
    button.addEventListener("click", () => {
      follow(message);
      if (state.follow === message) go(one.cycle);
    });
    button.addEventListener("mouseenter", () => { state.hover = message; draw(); });
    button.addEventListener("mouseleave", () => { state.hover = -1; draw(); });
    item.append(button);
    return item;
  });
  $("messages").replaceChildren(...items);

  // The activity chart, which also selects the cycle.
  const activity = $("activity");
  const LEFT = 34, HIGH = 42; // width of the labels, height of the bars
  const nice = (least) => [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => step >= least) ?? least;
  const drawAxes = (width, each, most) => {
    make("rect", { class: "ground", x: LEFT, y: 0, width: width - LEFT, height: HIGH }, activity);
    for (const [value, y] of [[most, 9], [0, HIGH]]) make("text", { class: "up", x: LEFT - 5, y }, activity, value);
    const step = nice(Math.ceil(44 / each));
    for (let cycle = 0; cycle < scene.cycles; cycle += step) {
      const x = LEFT + (cycle + 0.5) * each;
      make("line", { class: "tick", x1: x, x2: x, y1: HIGH, y2: HIGH + 4 }, activity);
      make("text", { class: "across", x, y: HIGH + 15 }, activity, cycle);
    }
  };
  const drawActivity = () => {
    const width = activity.clientWidth || 800, each = (width - LEFT) / scene.cycles;
    activity.replaceChildren();
    activity.setAttribute("viewBox", `0 0 ${width} 60`);
    const most = Math.max(1, ...scene.flights.map((some) => some.length));
    drawAxes(width, each, most);
    scene.flights.forEach((some, cycle) => {
      const x = LEFT + cycle * each, wide = Math.max(each - 1, 0.6);
      const early = some.filter((one) => WHY[one[5]]).length;
      const [all, stopped] = [HIGH * some.length / most, HIGH * early / most];
      make("rect", { class: "stopped", x, y: HIGH - stopped, width: wide, height: stopped }, activity);
      make("rect", { class: "reached", x, y: HIGH - all, width: wide, height: all - stopped }, activity);
    });
    const x = LEFT + (state.cycle + 0.5) * each;
    make("line", { class: "now", x1: x, x2: x, y1: 0, y2: HIGH }, activity);
  };
  const drag = (event) => {
    const box = activity.getBoundingClientRect();
    go(Math.floor((event.clientX - box.left - LEFT) / (box.width - LEFT) * scene.cycles));
  };
  activity.addEventListener("pointerdown", (event) => { activity.setPointerCapture(event.pointerId); drag(event); });
  activity.addEventListener("pointermove", (event) => { if (event.buttons) drag(event); });

  const drawPicture = () => {
    below.replaceChildren();
    above.replaceChildren();
    drawFlits();
    drawRequests();
    drawFlights();
    drawMarks();
  };
  const draw = () => {
    drawPicture();
    drawLog();
    drawActivity();
    $("cycle").textContent = `cycle ${state.cycle}`;
    activity.setAttribute("aria-valuenow", state.cycle);
    activity.setAttribute("aria-valuemax", scene.cycles - 1);
    items.forEach((item, message) => {
      item.classList.toggle("future", scene.messages[message].cycle > state.cycle);
      item.classList.toggle("chosen", state.follow === message);
    });
    $("following").textContent = state.follow < 0
      ? "Creation to last arrival (latency), in cycles. Point at a message to highlight it; select it to follow it."
      : "Following a message; select it again to show all.";
  };
  const go = (cycle) => {
    state.cycle = Math.max(0, Math.min(scene.cycles - 1, cycle));
    state.phase = 1;
    draw();
  };
  const follow = (message) => {
    state.follow = state.follow === message ? -1 : message;
    draw();
  };
  const speed = () => 2 ** (Number($("speed").value) / 1) * 0.8;
  const showRate = () => { $("rate").textContent = `${speed().toFixed(1)} cycles/s`; };
  const play = (on) => {
    state.playing = on;
    $("play").textContent = on ? "⏸ pause" : "▶ play";
    if (on) {
      if (state.cycle >= scene.cycles - 1) state.cycle = 0;
      state.phase = 0;
      state.last = performance.now();
      draw();
      requestAnimationFrame(frame);
    } else {
      go(state.cycle);
    }
  };
  const frame = (now) => {
    if (!state.playing) return;
    state.phase += (now - state.last) / 1000 * speed();
    state.last = now;
    if (state.phase >= 1) {
      if (state.cycle >= scene.cycles - 1) { play(false); return; }
      state.cycle += 1;
      state.phase -= Math.floor(state.phase);
      draw();
    } else {
      drawPicture();
    }
    requestAnimationFrame(frame);
  };

  $("first").addEventListener("click", () => go(0));
  $("back").addEventListener("click", () => go(state.cycle - 1));
  $("next").addEventListener("click", () => go(state.cycle + 1));
  $("play").addEventListener("click", () => play(!state.playing));
  $("speed").addEventListener("input", showRate);
  document.addEventListener("keydown", (event) => {
    if (event.target.tagName === "BUTTON" && event.key === " ") return;
    const to = { ArrowLeft: state.cycle - 1, ArrowRight: state.cycle + 1, Home: 0, End: scene.cycles - 1 }[event.key];
    if (to !== undefined) go(to);
    else if (event.key === " ") play(!state.playing);
    else if (event.key === "Escape") follow(state.follow);
    else return;
    event.preventDefault();
  });
  window.addEventListener("resize", drawActivity);

  // The legend, with the causes of premature stops that occur.
  const sign = ([body, text]) => `<li><svg viewBox="0 0 26 18">${body}</svg>${text}</li>`;
  const signs = (title, some) => `<div><h3>${title}</h3><ul class="legend">${some.map(sign).join("")}</ul></div>`;
  const reasons = new Set(scene.flights.flat().map((one) => one[5]));
  const stops = Object.entries(WHY).filter(([why]) => reasons.has(why)).map(([, [letter, text]]) => [
    `<circle class="badge" cx="13" cy="9" r="7"/><text class="letter" x="13" y="12.6">${letter}</text>`, text]);
  $("legend").innerHTML = signs("Symbols, coloured by message", [
    ['<circle class="dot" cx="13" cy="9" r="5.4"/>', "in a router (square): buffered"],
    ['<circle class="mark" cx="13" cy="9" r="6.5"/>', "around an NI (disc): injected"],
    ['<circle class="dot" cx="13" cy="9" r="7.5"/>', "in an NI: ejected"],
    ['<line class="request" x1="2" x2="24" y1="9" y2="9"/>', "path request (SSR)"],
    ['<line class="wire" x1="3" x2="22" y1="9" y2="9"/>', "traverses links in this cycle"],
    ['<circle class="copy" cx="13" cy="9" r="4.4"/>', "leaves a copy"],
    ['<path class="mark" d="M9 9h8M13 5v8"/>', "combined with another response"],
    ['<path class="mark" d="M9 5l8 8M9 13l8 -8"/>', "dropped: other copies continue"],
    ['<line class="idle" x1="2" x2="24" y1="9" y2="9"/>', "reserved but idle"],
  ]) + (stops.length ? signs("Causes of premature stops", stops) : "");

  const hash = /^#(\d+)(?:,(\d+))?$/.exec(window.location.hash);
  if (hash) {
    state.cycle = Math.min(Number(hash[1]), scene.cycles - 1);
    if (hash[2] !== undefined) state.follow = Math.min(Number(hash[2]), scene.messages.length - 1);
  }
  document.documentElement.dataset.ready = "true";
  showRate();
  draw();
})();
