// Gantt chart of the nodes.

const AXIS_HEIGHT = 26;
const LANES_MAX = 260; // up to so many devices each gets a lane of its own; beyond, a node is one thin row

function drawGantt() {
  const withBars = runs.filter((run) => run.gantt.job.length);
  const select = policySelect((run) => gantt.pick(run));
  const button = (text, name, act) => html("button", { "aria-label": name, title: name, onclick: act }, text);
  const body = card(
    "gantt",
    "Who held which devices",
    null,
    select,
    button("+", "Zoom in", () => gantt.zoom(0.5)),
    button("−", "Zoom out", () => gantt.zoom(2)),
    button("Reset", "Show the whole time", () => gantt.reset()),
  );
  if (!withBars.length) {
    byId("gantt").querySelector(".tools").remove();
    return body.replaceChildren(emptyNote("No placements recorded."));
  }
  const gantt = ganttChart(body);
  select.selectedIndex = withBars[0].index;
  gantt.pick(withBars[0]);
  redraws.push(() => gantt.draw());
}

/** Columns back to seconds, with the bars of each node in order of start. */
function decodeBars(run) {
  const { tick_s: tick, origin_s: origin, start, length, node } = run.gantt;
  const n = start.length;
  const bars = {
    start: new Float64Array(n),
    end: new Float64Array(n),
    byNode: page.clusters[run.cluster].name.map(() => []),
    t0: 0,
    t1: 1,
  };
  let ticks = 0;
  for (let i = 0; i < n; i++) {
    ticks += start[i];
    bars.start[i] = origin + ticks * tick;
    bars.end[i] = bars.start[i] + length[i] * tick;
    bars.t1 = Math.max(bars.t1, bars.end[i]);
    bars.byNode[node[i]].push(i);
  }
  bars.t0 = Math.min(0, origin);
  return bars;
}

const jobColours = { light: new Map(), dark: new Map() };

/** A stable colour per job: neighbours in number are far apart in hue. */
function jobColour(job, dark) {
  const mixed = Math.imul(job + 1, 2654435761) >>> 0;
  const hue = (job * 137.508) % 360;
  const light = (dark ? 0.58 : 0.7) + ((mixed >>> 8) % 3) * 0.06;
  return `oklch(${light.toFixed(2)} ${dark ? 0.11 : 0.115} ${hue.toFixed(0)})`;
}

function ganttChart(body) {
  const canvas = html("canvas");
  const space = html("div", {}, canvas);
  const view = html(
    "div",
    {
      class: "gantt-view",
      tabindex: 0,
      role: "application",
      "aria-label": "Gantt chart. Plus and minus zoom, arrows move, 0 shows all.",
    },
    space,
  );
  const cut = html("p", { class: "note hint" });
  const hint = html(
    "p",
    { class: "note hint" },
    "Drag to move, ",
    html("kbd", {}, "Shift"),
    " and drag to zoom into a span. Click the chart, then the wheel zooms; elsewhere ",
    html("kbd", {}, "Ctrl"),
    " and wheel. Colours tell jobs apart and mean nothing else.",
  );
  body.replaceChildren(view, cut, hint);
  const chart = { canvas, space, view, run: null, bars: null, t0: 0, t1: 1, hover: -1, select: null };
  const draw = () => paintGantt(chart);
  let frame = 0;
  const drawSoon = () => {
    cancelAnimationFrame(frame); // pointers report more often than screens refresh
    frame = requestAnimationFrame(draw);
  };
  const show = (t0, t1) => {
    Object.assign(chart, clampSpan(chart.bars, t0, t1));
    chart.layout = ganttLayout(chart); // the next event may come before the next frame
    drawSoon();
  };
  const zoom = (factor, at = (chart.t0 + chart.t1) / 2) =>
    show(at - (at - chart.t0) * factor, at + (chart.t1 - at) * factor);
  const reset = () => show(chart.bars.t0, chart.bars.t1);
  const pick = (run) => {
    const same = chart.run && chart.bars;
    const keep = same && (chart.t0 > chart.bars.t0 || chart.t1 < chart.bars.t1) ? [chart.t0, chart.t1] : null;
    chart.run = run;
    chart.bars = decodeBars(run);
    chart.hover = -1;
    cut.textContent = ganttNotes(run);
    cut.hidden = !cut.textContent;
    if (keep)
      show(...keep); // the same window under another policy is the comparison one wants
    else reset();
  };
  const api = { draw, zoom, reset, pick, show };
  ganttPointer(chart, { ...api, draw: drawSoon });
  ganttKeys(chart, api);
  return api;
}

function ganttNotes(run) {
  const cluster = page.clusters[run.cluster];
  const notes = [];
  if (run.gantt.until_s !== null)
    notes.push(`Recorded only until ${roundTime(run.gantt.until_s)}; the run went on.`);
  if (cluster.nodes_total > cluster.name.length)
    notes.push(`The first ${plural(cluster.name.length, "node")} of ${count(cluster.nodes_total)}.`);
  if (!run.gantt.job.length) notes.push("No placements recorded for this policy.");
  return notes.join(" ");
}

/** Keeps the window within the run and no narrower than the ticks can label. */
function clampSpan(bars, t0, t1) {
  const whole = bars.t1 - bars.t0;
  const span = Math.min(whole, Math.max(t1 - t0, Math.min(whole, 0.2)));
  const start = Math.min(Math.max(t0, bars.t0), bars.t1 - span);
  return { t0: start, t1: start + span };
}

/** Where everything goes, from the size of the window and of the cluster. */
function ganttLayout(chart) {
  const cluster = page.clusters[chart.run.cluster];
  const lanes = cluster.gpus.reduce((sum, gpus) => sum + Math.max(1, gpus), 0);
  const laned = lanes <= LANES_MAX;
  const lane = laned ? Math.max(5, Math.min(10, Math.floor(440 / Math.max(1, lanes)))) : 0;
  const heights = cluster.gpus.map((gpus) => Math.max(laned ? 15 : 14, Math.max(1, gpus) * lane) + 1);
  const tops = [];
  let total = 0;
  for (const height of heights) {
    tops.push(total);
    total += height;
  }
  const longest = cluster.name.reduce((most, name) => Math.max(most, name.length), 0);
  const left = Math.min(150, Math.max(60, longest * 7 + 18));
  const width = Math.max(200, chart.view.clientWidth);
  return { cluster, lane, heights, tops, total, left, width, x: linear(chart.t0, chart.t1, left, width) };
}

function paintGantt(chart) {
  if (!chart.bars) return;
  const layout = ganttLayout(chart);
  const height = Math.min(layout.total + AXIS_HEIGHT, 578);
  const ratio = window.devicePixelRatio || 1;
  chart.layout = layout;
  chart.space.style.height = `${layout.total + AXIS_HEIGHT}px`;
  chart.canvas.width = Math.round(layout.width * ratio);
  chart.canvas.height = Math.round(height * ratio);
  chart.canvas.style.cssText = `width:${layout.width}px;height:${height}px`;
  const style = getComputedStyle(document.documentElement);
  const ink = (name) => style.getPropertyValue(`--${name}`).trim();
  const pen = chart.canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = "12px system-ui, sans-serif";
  pen.fillStyle = ink("card");
  pen.fillRect(0, 0, layout.width, height);
  const paint = {
    pen,
    ink,
    height,
    dark: isDark(),
    colours: isDark() ? jobColours.dark : jobColours.light,
    scroll: chart.view.scrollTop,
  };
  paintRows(chart, paint);
  paintUnrecorded(chart, paint);
  paintAxis(chart, paint);
  if (chart.select) paintSelection(chart, paint);
}

function paintRows(chart, paint) {
  const { layout } = chart;
  const { pen, ink, height, scroll } = paint;
  for (let row = 0; row < layout.tops.length; row++) {
    const y = layout.tops[row] - scroll + AXIS_HEIGHT;
    const h = layout.heights[row] - 1;
    if (y + h < AXIS_HEIGHT || y > height) continue;
    pen.fillStyle = ink(row % 2 ? "card" : "row");
    pen.fillRect(0, y, layout.width, h);
    paintLanes(layout, paint, row, y, h);
    paintBars(chart, paint, row, y, h);
    pen.fillStyle = ink(row % 2 ? "card" : "row");
    pen.fillRect(0, y, layout.left, h); // bars may start left of the window
    paintNodeName(layout, paint, row, y, h);
    pen.fillStyle = ink("line");
    pen.fillRect(0, y + h, layout.width, 1);
  }
}

function paintLanes(layout, { pen, ink }, row, y, h) {
  const gpus = layout.cluster.gpus[row];
  if (!layout.lane || gpus < 2) return;
  pen.fillStyle = ink("grid");
  for (let lane = 1; lane < gpus; lane++)
    pen.fillRect(layout.left, Math.round(y + (h * lane) / gpus), layout.width, 0.5);
}

function paintNodeName(layout, { pen, ink }, row, y, h) {
  const { name, kind, gpus } = layout.cluster;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  pen.fillStyle = ink("text");
  const two = h >= 34;
  pen.fillText(name[row], 10, y + h / 2 - (two ? 7 : 0) + 0.5, layout.left - 16);
  if (!two) return;
  pen.fillStyle = ink("muted");
  pen.fillText(`${gpus[row]} × ${kind[row]}`, 10, y + h / 2 + 9, layout.left - 16);
}

/** The box of a bar in its row; devices share the row's height. */
function barBox({ bars, run, layout }, i, row, y, h) {
  const gpus = Math.max(1, layout.cluster.gpus[row]);
  const first = Math.min(run.gantt.first[i], gpus - 1);
  const devices = Math.min(run.gantt.devices[i], gpus - first);
  const lanes = run.gantt.lanes[i] ?? 1; // jobs on the same devices share their height
  const lane = run.gantt.lane[i] ?? 0;
  const height = (h * devices) / gpus / lanes;
  const x0 = Math.max(layout.x(bars.start[i]), layout.left - 2);
  const x1 = Math.min(layout.x(bars.end[i]), layout.width + 2);
  return { x0, x1, y: y + (h * first) / gpus + lane * height, h: height, slot: first * 256 + lane };
}

function paintBars(chart, paint, row, y, h) {
  const { bars, run } = chart;
  const { pen, colours, dark } = paint;
  const drawnTo = []; // per first device and lane: bars within a pixel that is already painted are skipped
  const marked = chart.hover >= 0 ? run.gantt.job[chart.hover] : -1;
  for (const i of bars.byNode[row]) {
    if (bars.end[i] <= chart.t0) continue;
    if (bars.start[i] >= chart.t1) break;
    const box = barBox(chart, i, row, y, h);
    if (box.x1 <= (drawnTo[box.slot] ?? -1)) continue;
    drawnTo[box.slot] = Math.ceil(box.x1);
    const job = run.gantt.job[i];
    if (!colours.has(job)) colours.set(job, jobColour(job, dark));
    const gap = box.x1 - box.x0 > 4 ? 1 : 0;
    pen.globalAlpha = marked >= 0 && marked !== job ? 0.42 : 1;
    pen.fillStyle = colours.get(job);
    pen.fillRect(
      box.x0,
      box.y + 0.5,
      Math.max(0.7, box.x1 - box.x0 - gap),
      Math.max(0.8, box.h - (box.h > 3 ? 1 : 0)),
    );
    paintJobNumber(chart, paint, box, job);
  }
  pen.globalAlpha = 1;
}

function paintJobNumber({ layout }, { pen, dark }, box, job) {
  if (box.h < 13) return;
  const left = Math.max(box.x0, layout.left);
  const text = String(job);
  if (box.x1 - left < text.length * 7 + 8) return;
  pen.fillStyle = dark ? "#0b0f13" : "#14202c";
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillText(text, left + 4, box.y + box.h / 2 + 0.5);
}

function paintUnrecorded({ run, layout }, { pen, ink, height }) {
  if (run.gantt.until_s === null) return;
  const x = Math.max(layout.left, layout.x(run.gantt.until_s));
  if (x >= layout.width) return;
  pen.fillStyle = ink("muted");
  pen.globalAlpha = 0.14;
  pen.fillRect(x, AXIS_HEIGHT, layout.width - x, height);
  pen.globalAlpha = 1;
  pen.fillRect(x, AXIS_HEIGHT, 1, height);
}

function paintAxis(chart, { pen, ink, height }) {
  const { layout } = chart;
  pen.fillStyle = ink("card");
  pen.fillRect(0, 0, layout.width, AXIS_HEIGHT);
  pen.fillStyle = ink("line");
  pen.fillRect(0, AXIS_HEIGHT - 1, layout.width, 1);
  pen.fillRect(layout.left - 1, 0, 1, height);
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  const { ticks, step } = timeTicks(chart.t0, chart.t1, Math.max(3, (layout.width - layout.left) / 105));
  for (const tick of ticks) {
    const x = layout.x(tick);
    pen.fillStyle = ink("muted");
    pen.fillRect(Math.round(x), AXIS_HEIGHT - 5, 1, 4);
    const text = clock(tick, step, chart.t1);
    const half = pen.measureText(text).width / 2;
    pen.fillText(text, Math.min(Math.max(x, layout.left + half + 4), layout.width - half - 6), 11);
  }
  pen.fillStyle = ink("muted");
  pen.textAlign = "left";
  pen.fillText("Node", 10, 11);
}

function paintSelection({ layout, select }, { pen, ink, height }) {
  const [x0, x1] = [Math.min(...select), Math.max(...select)];
  pen.fillStyle = ink("accent");
  pen.globalAlpha = 0.2;
  pen.fillRect(Math.max(x0, layout.left), 0, x1 - Math.max(x0, layout.left), height);
  pen.globalAlpha = 1;
}

/** The bar under the pointer, or -1. */
function barAt(chart, point) {
  const { layout, bars } = chart;
  if (point.x < layout.left || point.y < AXIS_HEIGHT) return -1;
  const deep = point.y - AXIS_HEIGHT + chart.view.scrollTop;
  const row = layout.tops.findIndex((top, i) => deep >= top && deep < top + layout.heights[i]);
  if (row < 0) return -1;
  const y = layout.tops[row] - chart.view.scrollTop + AXIS_HEIGHT;
  const slack = 1; // a bar thinner than a pixel can still be found
  let found = -1;
  for (const i of bars.byNode[row]) {
    if (bars.end[i] < chart.t0) continue;
    if (bars.start[i] > chart.t1) break;
    const box = barBox(chart, i, row, y, layout.heights[row] - 1);
    const inside =
      point.x >= box.x0 - slack && point.x <= box.x1 + slack && point.y >= box.y && point.y < box.y + box.h;
    if (inside) found = i;
  }
  return found;
}

function barTip(chart, i) {
  const { run, bars } = chart;
  const { name, kind } = page.clusters[run.cluster];
  const node = run.gantt.node[i];
  const first = run.gantt.first[i];
  const devices = run.gantt.devices[i];
  const rows = [
    ["Node", `${name[node]} (${kind[node]})`],
    ["Devices", devices === 1 ? String(first) : `${first}–${first + devices - 1}`],
    ["Start", `${clock(bars.start[i], 1)}  (${duration(bars.start[i])})`],
    ["End", `${clock(bars.end[i], 1)}  (${duration(bars.end[i])})`],
    ["Duration", duration(bars.end[i] - bars.start[i])],
  ];
  const line = ([key, value]) => html("tr", {}, html("td", { class: "key" }, key), html("td", {}, value));
  return [html("h3", {}, `Job ${run.gantt.job[i]}`), html("table", {}, html("tbody", {}, rows.map(line)))];
}

function ganttPointer(chart, { draw, zoom, show, reset }) {
  const { canvas, view } = chart;
  let drag = null;
  const pointOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const hover = (event) => {
    const found = barAt(chart, pointOf(event));
    if (found >= 0) showTip(event, ...barTip(chart, found));
    else hideTip();
    if (found === chart.hover) return;
    chart.hover = found;
    draw();
  };
  const move = (event) => {
    if (!drag) return hover(event);
    const point = pointOf(event);
    if (drag.select) {
      chart.select = [drag.x, point.x];
      return draw();
    }
    const shift = ((drag.x - point.x) / (chart.layout.width - chart.layout.left)) * (drag.t1 - drag.t0);
    view.scrollTop = drag.scroll + drag.y - point.y;
    show(drag.t0 + shift, drag.t1 + shift);
  };
  const down = (event) => {
    if (event.button !== 0) return;
    drag = {
      ...pointOf(event),
      t0: chart.t0,
      t1: chart.t1,
      scroll: view.scrollTop,
      select: event.shiftKey,
    };
    canvas.setPointerCapture(event.pointerId);
    view.classList.add(drag.select ? "selecting" : "dragging");
    hideTip();
  };
  const up = () => {
    const ends = chart.select && chart.select.map(chart.layout.x.invert).sort((a, b) => a - b);
    const wide = chart.select && Math.abs(chart.select[0] - chart.select[1]) > 4;
    drag = null;
    chart.select = null;
    view.classList.remove("dragging", "selecting");
    if (wide) show(...ends);
    else draw();
  };
  const leave = () => {
    chart.hover = -1;
    hideTip();
    draw();
  };
  // A page that is merely scrolled past must not zoom: the wheel counts once the chart has the focus.
  const wheel = (event) => {
    const focused = document.activeElement === view;
    if (!(event.ctrlKey || event.metaKey || focused) || pointOf(event).x < chart.layout.left) return;
    event.preventDefault();
    zoom(
      Math.exp(Math.max(-200, Math.min(200, event.deltaY)) * 0.002),
      chart.layout.x.invert(pointOf(event).x),
    );
  };
  const handlers = {
    pointermove: move,
    pointerdown: down,
    pointerup: up,
    pointercancel: up,
    pointerleave: leave,
    dblclick: reset,
  };
  for (const [type, handler] of Object.entries(handlers)) canvas.addEventListener(type, handler);
  canvas.addEventListener("wheel", wheel, { passive: false });
  view.addEventListener("scroll", draw);
}

function ganttKeys(chart, { zoom, reset, show }) {
  const pan = (share) => {
    const by = (chart.t1 - chart.t0) * share;
    show(chart.t0 + by, chart.t1 + by);
  };
  const keys = {
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    0: reset,
    ArrowLeft: () => pan(-0.2),
    ArrowRight: () => pan(0.2),
  };
  chart.view.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
}
