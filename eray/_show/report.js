"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = data.texts;
  const find = (id) => document.getElementById(id);

  /* Texts from the cluster only ever become text nodes. */
  function make(name, attributes, ...content) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...content);
    return made;
  }
  function seconds(ms) {
    const size = Math.abs(ms) / 1000;
    if (size < 60) return size.toFixed(size < 10 ? 2 : 1) + " s";
    if (size < 3600) return Math.floor(size / 60) + " min " + Math.floor(size % 60) + " s";
    return Math.floor(size / 3600) + " h " + Math.floor((size % 3600) / 60) + " min";
  }
  const after = (ms) => (ms < 0 ? "-" : "+") + seconds(ms);
  function table(caption, columns, rows) {
    const head = make("tr", null, ...columns.map((name) => make("th", { scope: "col" }, name)));
    const body = rows.map(([first, ...rest]) =>
      make("tr", null, make("th", { scope: "row" }, String(first)), ...rest.map((each) => make("td", null, String(each)))));
    return make("table", null, make("caption", null, caption), make("thead", null, head), make("tbody", null, ...body));
  }

  /* Light and dark */
  const root = document.documentElement;
  const theme = find("theme");
  const store = (value) => {
    try { return value ? localStorage.setItem("eray-theme", value) : localStorage.getItem("eray-theme"); } catch { return null; }
  };
  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { theme.textContent = isDark() ? "Light colours" : "Dark colours"; };
  const kept = store();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    store(root.dataset.theme);
    nameTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  nameTheme();

  /* Nodes: filter and details */
  const grid = find("grid");
  const lines = grid ? Array.from(grid.tBodies[0].rows, (row) => ({
    row, node: data.nodes[row.dataset.i], states: row.dataset.s.split(" "), name: row.querySelector(".n").textContent.toLowerCase(),
  })) : [];
  const processName = (world, index) => (data.worlds.length > 1 ? words[data.worlds[world]] + " " : "process ") + index;
  const columns = grid ? Array.from(grid.tHead.rows[0].cells).reduce((sum, cell) => sum + cell.colSpan, 0) : 0;

  function holders(cell) {
    const found = [];
    for (let at = 0; at < cell[5].length; at += 2) found.push(processName(cell[5][at], cell[5][at + 1]));
    return found.join(", ") || "nobody";
  }
  function close(button) {
    if (button.getAttribute("aria-expanded") !== "true") return;
    button.setAttribute("aria-expanded", "false");
    button.closest("tr").nextElementSibling.remove();
  }
  function details(node) {
    const known = [["since", node[2] === null ? "never" : after(node[2])]];
    if (words[node[3]]) known.push(["reason", words[node[3]]]);
    for (let at = 0; at < node[4].length; at += 2) known.push([words[node[4][at]], words[node[4][at + 1]]]);
    const facts = make("dl", { class: "facts" }, ...known.map(([name, value]) =>
      make("div", null, make("dt", null, name), make("dd", null, value))));
    const boxes = make("div", { class: "boxes" });
    if (node[5].length) boxes.append(table("Devices", ["at", "token", "kind", "UUID", "held by", "state"], node[5].map((cell, at) =>
      [at, words[cell[0]], words[cell[1]] || "unknown", words[cell[2]] || "unknown", holders(cell),
        words[cell[3]] + (cell[4] ? " (bound by Slurm; which of the node's it is cannot be told)" : "")])));
    if (node[6].length) boxes.append(table("Processes", ["process", "pid", "state", "visible", "own, by ordinal", "rule"], node[6].map((each) =>
      [processName(each[0], each[1]), each[2], words[each[3]], words[each[5]], words[each[6]], words[each[7]]])));
    const cell = make("td", { colspan: columns }, facts, boxes);
    if (data.tracks.some((track) => track[0] === node[0])) {
      const button = make("button", { type: "button" }, "Show its start");
      button.addEventListener("click", () => {
        find("rows").value = "all";
        find("chart-search").value = words[node[0]];
        draw();
        find("start").scrollIntoView();
        find("chart-search").focus({ preventScroll: true });
      });
      cell.append(button);
    }
    return make("tr", { class: "detail" }, cell);
  }
  function filter() {
    const state = document.querySelector('input[name="state"]:checked').value;
    const wanted = find("search").value.trim().toLowerCase();
    let count = 0;
    for (const line of lines) {
      const shown = (!state || line.states.includes(state)) && line.name.includes(wanted);
      count += shown;
      if (!shown) close(line.button);
      line.row.hidden = !shown;
    }
    const said = count.toLocaleString("en") + " of " + lines.length.toLocaleString("en") + (lines.length === 1 ? " node" : " nodes");
    find("shown").textContent = said;
  }
  if (grid) {
    for (const line of lines) {
      const name = line.row.querySelector(".n");
      line.button = make("button", { type: "button", "aria-expanded": "false", title: name.textContent });
      name.replaceWith(line.button);
      line.button.append(name);
      line.button.addEventListener("click", () => {
        if (line.button.getAttribute("aria-expanded") === "true") return close(line.button);
        line.button.setAttribute("aria-expanded", "true");
        line.row.after(details(line.node));
      });
    }
    grid.tBodies[0].addEventListener("pointerover", (event) => {
      const cell = event.target.closest("tr[data-i] > td");
      if (!cell || cell.title) return;
      const found = data.nodes[cell.parentNode.dataset.i][5][cell.cellIndex - 2];
      if (found) cell.title = "device " + words[found[0]] + ": " + words[found[3]] + ", " + holders(found);
    });
    for (const input of document.querySelectorAll('input[name="state"]')) {
      input.hidden = false;
      input.addEventListener("change", filter);
    }
    find("search").addEventListener("input", filter);
    find("search").closest("p").hidden = false;
    filter();
  }

  /* The start as a chart */
  const KINDS = {
    ray: ["Ray", ["gcs", "raylet", "import ray", "coordinator"]],
    jax: ["JAX", ["import jax", "initialise", "check"]],
    net: ["find one another", ["port", "publish", "dial"]],
    prep: ["prepare", ["program", "environment", "supervisor"]],
    wait: ["wait for others", ["lock", "roll-call", "ready", "attach", "join", "address", "all running"]],
    stop: ["stop", ["stop"]],
  };
  const kindOf = {};
  for (const [kind, [, names]] of Object.entries(KINDS)) for (const name of names) kindOf[name] = kind;
  const MOST = 300, HEIGHT = 22;
  const SVG = "http://www.w3.org/2000/svg";
  const gantt = find("gantt"), tip = find("tip");

  function svg(name, attributes, ...content) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...content);
    return made;
  }
  function step(length, most) {
    const power = Math.pow(10, Math.floor(Math.log10(length / most)));
    return [1, 2, 5, 10].map((each) => each * power).find((each) => length / each <= most) || length;
  }
  const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
  const spansOf = (track, stopping) => {
    const found = [];
    for (let at = 0; at < track[3].length; at += 3) {
      const name = words[track[3][at]];
      if ((name === "stop") === stopping) found.push({ name, begin: track[3][at + 1], length: track[3][at + 2] });
    }
    return found;
  };
  /* What overlaps gets lanes of its own, below each other. */
  function laid(row) {
    const ends = [];
    for (const span of row.spans.slice().sort((one, other) => one.begin - other.begin)) {
      const end = span.length < 0 ? Infinity : span.begin + span.length;
      const free = ends.findIndex((until) => until <= span.begin);
      span.lane = free < 0 ? ends.length : free;
      ends[span.lane] = end;
    }
    return { ...row, lanes: Math.max(ends.length, 1) };
  }
  const shownRows = (start) => {
    const wanted = find("chart-search").value.trim().toLowerCase();
    const rows = find("rows").value === "all" || wanted ? start[4] : start[5];
    return wanted ? rows.filter((at) => words[data.tracks[at][0]].toLowerCase().includes(wanted)) : rows;
  };

  function draw() {
    const start = data.starts[find("which").value];
    find("rows").parentNode.hidden = start[4].length === start[5].length;
    const all = shownRows(start);
    const said = Math.min(all.length, MOST).toLocaleString("en") + " of " + start[4].length.toLocaleString("en") + " rows";
    find("chart-shown").textContent = said + (all.length > MOST ? "; name a node to see others" : "");
    const rows = [];
    let node = -1;
    for (const at of all.slice(0, MOST)) {
      const track = data.tracks[at];
      if (track[0] !== node && track[2] >= 0) rows.push({ label: words[track[0]], node: true, spans: [] });
      node = track[0];
      rows.push(track[2] < 0
        ? { label: words[track[0]], node: true, who: words[track[0]], spans: spansOf(track, !!start[3]) }
        : { label: processName(0, track[2]).replace(/^.* /, "process "), who: processName(0, track[2]).replace(/^.* /, "process ") +
            (data.worlds.length > 1 ? " of " + words[track[1]] : "") + " on " + words[track[0]], spans: spansOf(track, !!start[3]) });
    }
    const width = Math.max(gantt.clientWidth, 280), left = width < 620 ? 92 : 180, room = width - left - 10;
    const begin = Math.min(start[1], ...rows.flatMap((row) => row.spans.map((span) => span.begin)));
    const length = Math.max(start[2] - begin, 1);
    const x = (ms) => left + (ms - begin) / length * room;
    let lanes = 0;
    for (const [at, row] of rows.entries()) {
      rows[at] = { ...laid(row), top: lanes };
      lanes += rows[at].lanes;
    }
    const height = lanes * HEIGHT + 26;
    const chart = svg("svg", { width, height, viewBox: "0 0 " + width + " " + height });
    const each = step(length, Math.max(2, Math.floor(room / 70)));
    for (let ms = Math.ceil(begin / each) * each; ms <= begin + length; ms += each) {
      const at = x(ms).toFixed(1);
      chart.append(svg("line", { x1: at, x2: at, y1: 20, y2: height, "aria-hidden": "true" }));
      const label = length < 600000 ? Number((ms / 1000).toFixed(3)) + " s" : seconds(ms);
      chart.append(svg("text", { x: at, y: 13, class: "axis", "text-anchor": at > width - 30 ? "end" : "middle", "aria-hidden": "true" }, label));
    }
    const size = width < 620 ? 12 : 24;
    rows.forEach((row, number) => {
      const top = 24 + row.top * HEIGHT;
      const label = svg("text", { x: row.node ? 0 : 12, y: top + 14 }, cut(row.label, size - (row.node ? 0 : 1)));
      if (row.node) label.setAttribute("class", "node");
      label.append(svg("title", {}, row.label));
      chart.append(label);
      row.spans.forEach((span, place) => {
        const y = top + span.lane * HEIGHT;
        const lasts = span.length < 0;
        const end = lasts ? Math.max(data.taken, span.begin) : span.begin + span.length;
        const from = x(span.begin), wide = Math.max(x(Math.min(end, begin + length)) - from, 1.5);
        const told = span.name + ": " + row.who + ", begins " + after(span.begin) + ", " +
          (lasts ? "still lasts after " + seconds(end - span.begin) : "lasts " + seconds(span.length));
        const rect = svg("rect", { x: from.toFixed(1), y: y + 1, width: wide.toFixed(1), height: HEIGHT - 4, rx: 2,
          class: "k-" + (kindOf[span.name] || "prep") + (lasts ? " lasts" : "") });
        const bar = svg("g", { class: "bar", role: "img", tabindex: -1, "aria-label": told, "data-row": number, "data-place": place }, rect);
        if (wide > span.name.length * 7 + 8) bar.append(svg("text", { x: (from + 5).toFixed(1), y: y + 14, "aria-hidden": "true" }, span.name));
        chart.append(bar);
      });
    });
    gantt.replaceChildren(chart);
    hide();
    const first = gantt.querySelector(".bar");
    if (first) first.setAttribute("tabindex", 0);
  }

  function show(bar) {
    tip.textContent = bar.getAttribute("aria-label");
    tip.hidden = false;
    const box = bar.getBoundingClientRect(), most = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(4, Math.min(box.left, most)) + scrollX + "px";
    tip.style.top = box.bottom + scrollY + 5 + "px";
  }
  const hide = () => { tip.hidden = true; };
  function go(from, to) {
    if (!to) return;
    from.setAttribute("tabindex", -1);
    to.setAttribute("tabindex", 0);
    to.focus();
  }
  function neighbour(bar, key) {
    const bars = Array.from(gantt.querySelectorAll(".bar")), at = bars.indexOf(bar), row = Number(bar.dataset.row);
    if (key === "ArrowRight") return bars[at + 1];
    if (key === "ArrowLeft") return bars[at - 1];
    if (key === "Home") return bars[0];
    if (key === "End") return bars[bars.length - 1];
    const rows = bars.filter((each) => (key === "ArrowDown" ? each.dataset.row > row : key === "ArrowUp" && each.dataset.row < row));
    if (!rows.length) return null;
    const next = rows[key === "ArrowDown" ? 0 : rows.length - 1].dataset.row;
    const middle = bar.getBoundingClientRect().left;
    return rows.filter((each) => each.dataset.row === next).reduce((best, each) =>
      Math.abs(each.getBoundingClientRect().left - middle) < Math.abs(best.getBoundingClientRect().left - middle) ? each : best);
  }
  if (data.starts.length) {
    for (const [kind, [name]] of Object.entries(KINDS)) {
      if (kind !== "stop" || data.starts.some((start) => start[3])) find("kinds").append(make("li", null, make("span", { class: "k-" + kind }, name)));
    }
    find("chart").hidden = false;
    find("which").addEventListener("change", draw);
    find("rows").addEventListener("change", draw);
    find("chart-search").addEventListener("input", draw);
    gantt.addEventListener("pointerover", (event) => { const bar = event.target.closest(".bar"); if (bar) show(bar); else hide(); });
    gantt.addEventListener("pointerleave", hide);
    gantt.addEventListener("focusin", (event) => { const bar = event.target.closest(".bar"); if (bar) show(bar); });
    gantt.addEventListener("focusout", hide);
    gantt.addEventListener("keydown", (event) => {
      const bar = event.target.closest(".bar");
      if (event.key === "Escape") hide();
      if (!bar || !/^(Arrow|Home$|End$)/.test(event.key)) return;
      event.preventDefault();
      go(bar, neighbour(bar, event.key));
    });
    let width = 0;
    new ResizeObserver(() => { if (gantt.clientWidth !== width) { width = gantt.clientWidth; draw(); } }).observe(gantt);
  }

  /* What scrolls can be reached by the keyboard. */
  for (const box of document.querySelectorAll(".wide:not(.tall)")) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", box.querySelector("caption").textContent);
    }
  }
})();
