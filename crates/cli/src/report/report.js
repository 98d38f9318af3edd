// Draws the report from the data in the page. A module, so that its names are its own.

const page = JSON.parse(document.getElementById("data").textContent);
const runs = page.runs.map((run, index) => ({ ...run, index }));
const hidden = new Set(); // indices of the runs switched off in the legend
const redraws = []; // every chart's draw function, called when the width, theme or legend changes

const shownRuns = () => runs.filter((run) => !hidden.has(run.index));
const redrawAll = () => redraws.forEach((draw) => draw());

// ---------------------------------------------------------------- elements
// Names come from traces, so text always goes in as text nodes and never as markup.

function fillElement(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

const html = (tag, attributes = {}, ...children) =>
  fillElement(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fillElement(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const byId = (id) => document.getElementById(id);

// ---------------------------------------------------------------- numbers and units

const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function count(value) {
  const digits = Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

/** Three digits or so: what an eye compares. */
function short(value) {
  const size = Math.abs(value);
  return size >= 100 ? count(Math.round(value)) : value.toFixed(size >= 10 ? 1 : 2);
}

const unitOf = (seconds) => {
  const size = Math.abs(seconds);
  return size >= 2 * 86400 ? UNITS[0] : size >= 3600 ? UNITS[1] : size >= 60 ? UNITS[2] : UNITS[3];
};

function duration(seconds, unit = unitOf(seconds)) {
  if (!isNumber(seconds)) return "–";
  if (seconds === 0) return `0 ${unit[0]}`;
  if (Math.abs(seconds) < 0.01) return "<0.01 s";
  return `${short(seconds / unit[1])} ${unit[0]}`;
}

const roundTime = (seconds) => duration(seconds).replace(/\.0+ /, " ");

/** For ticks, which are round in some unit. */
function roundDuration(seconds) {
  const unit = seconds % 86400 === 0 ? UNITS[0] : unitOf(seconds);
  return `${parseFloat((seconds / unit[1]).toPrecision(2))} ${unit[0]}`;
}

const percent = (fraction, digits = 1) =>
  isNumber(fraction) ? `${(fraction * 100).toFixed(digits)} %` : "–";
const exact = (seconds) => `${seconds.toLocaleString("en-US", { maximumFractionDigits: 3 })} s`;

/** A point in time, as fine as the ticks up to `last`: `3 d`, `30 h`, `2 d 06:00`, `02:10:05`. */
function clock(seconds, step, last = seconds) {
  if (step >= 86400) return `${Math.round(seconds / 86400)} d`;
  if (step >= 3600 && last <= 3 * 86400) return `${Math.round(seconds / 3600)} h`;
  const total = step >= 1 ? Math.round(seconds) : Math.floor(seconds);
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const days = Math.floor(total / 86400);
  const time = [two((total % 86400) / 3600), two((total % 3600) / 60)];
  if (step < 60) time.push(two(total % 60));
  const fraction = step < 1 ? (seconds - total).toFixed(step < 0.1 ? 2 : 1).slice(1) : "";
  return (days ? `${days} d ` : "") + time.join(":") + fraction;
}

// ---------------------------------------------------------------- scales and ticks

const linear = (d0, d1, r0, r1) => {
  const map = (value) => r0 + ((value - d0) / (d1 - d0 || 1)) * (r1 - r0);
  map.invert = (pixel) => d0 + ((pixel - r0) / (r1 - r0 || 1)) * (d1 - d0);
  return map;
};

const TIME_STEPS = [
  0.01,
  0.1,
  0.5,
  1,
  2,
  5,
  10,
  15,
  30,
  60,
  120,
  300,
  600,
  900,
  1800,
  3600,
  7200,
  10800,
  21600,
  43200,
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].map((days) => days * 86400),
];

function timeTicks(d0, d1, most) {
  const step = TIME_STEPS.find((size) => (d1 - d0) / size <= most) || (d1 - d0) / most;
  const ticks = [];
  for (let i = Math.ceil(d0 / step); i * step <= d1 + step * 1e-6; i++) ticks.push(i * step);
  return { ticks, step };
}

function countTicks(top, most) {
  const power = 10 ** Math.floor(Math.log10(top / most || 1));
  const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((size) => top / size <= most) || top);
  return Array.from({ length: Math.ceil(top / step - 1e-9) + 1 }, (_, i) => i * step);
}

const LOG_MAJOR = [0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000, 86400000, 864000000];
const LOG_MINOR = [0.03, 0.3, 3, 30, 180, 1800, 10800, 21600, 259200, 2592000, 25920000, 259200000];

/** A logarithmic time scale. Zero has no logarithm: it, and all below the floor, sits on the floor. */
function logScale(values, r0, r1, spacing) {
  const positive = values.filter((value) => value > 0);
  const most = positive.length ? Math.max(...positive) : 60;
  const least = positive.length ? Math.max(Math.min(...positive), most / 1e6) : 1;
  const floor = 10 ** (Math.floor(Math.log10(least) * 2) / 2); // down to 1, 3.2, 10, 32, …
  const lo = most > 100 ? Math.max(1, floor) : floor; // nobody plans for less than a second
  const hi = Math.max(most, lo * 10);
  const clamped = values.some((value) => value < lo);
  const inner = linear(Math.log(lo), Math.log(hi), r0, r1);
  const map = (value) => inner(Math.log(Math.max(value, lo)));
  map.invert = (pixel) => Math.exp(inner.invert(pixel));
  return { map, lo, hi, ticks: logTicks(map, lo, hi, clamped, spacing) };
}

/** Round times that keep their distance in pixels; the floor first when values were clamped to it. */
function logTicks(map, lo, hi, clamped, spacing) {
  const ticks = clamped ? [{ value: lo, label: `≤ ${roundDuration(lo)}` }] : [];
  for (const ladder of [LOG_MAJOR, LOG_MINOR]) {
    for (const value of ladder) {
      const free = ticks.every((tick) => Math.abs(map(tick.value) - map(value)) >= spacing);
      if (value >= lo * 0.999 && value <= hi * 1.001 && free)
        ticks.push({ value, label: roundDuration(value) });
    }
  }
  return ticks;
}

// ---------------------------------------------------------------- policies

const DASHES = ["", "6 3", "2 3", "8 3 2 3"]; // beyond eight runs the colours repeat with another dash
const colour = (run) => `var(--c${run.index % 8})`;
const dash = (run) => DASHES[Math.floor(run.index / 8) % DASHES.length] || null;

function swatch(run) {
  const line = svg("line", {
    x1: 1,
    x2: 19,
    y1: 5,
    y2: 5,
    "stroke-width": 4,
    "stroke-linecap": dash(run) ? "butt" : "round",
    "stroke-dasharray": dash(run),
  });
  line.style.stroke = colour(run);
  return svg("svg", { class: "swatch", viewBox: "0 0 20 10", "aria-hidden": "true" }, line);
}

function drawLegend() {
  const toggle = (run) => () => {
    if (!hidden.delete(run.index)) hidden.add(run.index);
    drawLegend();
    redrawAll();
    byId("legend").children[run.index].focus(); // the click replaced the button
  };
  const chip = (run) =>
    html(
      "button",
      { "aria-pressed": String(!hidden.has(run.index)), title: "Show or hide", onclick: toggle(run) },
      swatch(run),
      run.policy,
    );
  byId("legend").replaceChildren(...(runs.length > 1 ? runs.map(chip) : []));
}

// ---------------------------------------------------------------- shared parts

/** A card's heading with its note and tools; returns the element that the chart draws into. */
function card(id, title, note, ...tools) {
  const body = html("div", { class: "plot" });
  const heading = html("h2", { id: `${id}-title` }, title);
  const head = html(
    "div",
    { class: "card-head" },
    heading,
    html("div", { class: "tools" }, tools),
    note ? html("p", { class: "note" }, note) : null,
  );
  byId(id).setAttribute("aria-labelledby", `${id}-title`);
  byId(id).replaceChildren(head, body);
  return body;
}

const emptyNote = (text) => html("p", { class: "empty" }, text);

/** Buttons of which one is pressed. */
function segmented(label, options, onpick) {
  const group = html("div", { class: "segmented", role: "group", "aria-label": label });
  const press = (picked) => {
    [...group.children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === picked)));
  };
  options.forEach(([name, value], i) => {
    group.append(
      html(
        "button",
        {
          onclick: () => {
            press(i);
            onpick(value);
          },
        },
        name,
      ),
    );
  });
  press(0);
  return group;
}

function policySelect(onpick) {
  const select = html(
    "select",
    { "aria-label": "Policy", onchange: () => onpick(runs[select.selectedIndex]) },
    runs.map((run) => html("option", {}, run.policy)),
  );
  select.hidden = runs.length < 2;
  return select;
}

/** An empty chart as wide as its card; lengths in it are CSS pixels. */
function canvasOf(body, height, label) {
  const width = Math.max(320, body.clientWidth);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  body.replaceChildren(root);
  return { root, width };
}

const label = (x, y, anchor, text, kind = null) =>
  svg("text", { x, y, "text-anchor": anchor, class: kind }, text);
const rule = (x1, y1, x2, y2, kind) => svg("line", { x1, y1, x2, y2, class: kind });

function strokePath(run, d) {
  const path = svg("path", { d, class: "line", "stroke-dasharray": dash(run) });
  path.style.stroke = colour(run);
  return path;
}

function dot(run, cx, cy) {
  const circle = svg("circle", { cx, cy, r: 4, class: "dot" });
  circle.style.fill = colour(run);
  return circle;
}

/** The pointer's place in the chart's own pixels. */
function localPoint(root, event) {
  const box = root.getBoundingClientRect();
  const scale = root.viewBox.baseVal.width / box.width;
  return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
}

const tip = byId("tip");
const hideTip = () => {
  tip.hidden = true;
};

function showTip(event, ...content) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const { offsetWidth: w, offsetHeight: h } = tip;
  const right = event.clientX + 16 + w < window.innerWidth;
  const x = right ? event.clientX + 16 : Math.max(4, event.clientX - w - 16);
  tip.style.left = `${x}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY - h / 2, window.innerHeight - h - 4))}px`;
}

/** The tip's table: one row per policy. */
function tipTable(heads, rows) {
  const head = heads
    ? html(
        "thead",
        {},
        html(
          "tr",
          {},
          heads.map((text) => html("th", {}, text)),
        ),
      )
    : null;
  const line = ([run, ...cells]) =>
    html(
      "tr",
      {},
      html("td", {}, swatch(run), html("span", { class: "cell" }, run.policy)),
      cells.map((cell) => html("td", {}, cell)),
    );
  return html("table", {}, head, html("tbody", {}, rows.map(line)));
}

// ---------------------------------------------------------------- header and footer

function drawHeader() {
  document.title = page.title || "Simulation report";
  const theme = html(
    "button",
    { onclick: () => setTheme(isDark() ? "light" : "dark"), "aria-label": "Switch between light and dark" },
    "◐ Theme",
  );
  const parts = [
    html(
      "div",
      { class: "masthead" },
      html("div", {}, html("h1", {}, page.title || "Simulation report"), takeaway()),
      theme,
    ),
  ];
  if (page.command) parts.push(commandBlock());
  if (page.settings.length) {
    const pair = ([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value));
    parts.push(html("dl", { class: "settings" }, page.settings.map(pair)));
  }
  byId("header").replaceChildren(...parts);
}

/** One sentence: who finished jobs soonest on average, and by how much. */
function takeaway() {
  const ranked = runs
    .filter((run) => isNumber(run.summary.avg_jct_s))
    .sort((a, b) => a.summary.avg_jct_s - b.summary.avg_jct_s);
  if (!ranked.length) return null;
  const [first, last] = [ranked[0], ranked[ranked.length - 1]];
  const time = (run) => duration(run.summary.avg_jct_s);
  if (ranked.length === 1)
    return html(
      "p",
      { class: "lead" },
      "Average JCT ",
      html("strong", {}, time(first)),
      ` over ${plural(first.summary.finished ?? first.jobs, "finished job")}.`,
    );
  const ratio = last.summary.avg_jct_s / first.summary.avg_jct_s;
  if (!(ratio >= 1.005))
    return html("p", { class: "lead" }, `The policies tie at an average JCT of ${time(first)}.`);
  return html(
    "p",
    { class: "lead" },
    html("strong", {}, first.policy),
    ` has the lowest average JCT, ${time(first)}: `,
    html("strong", {}, `${ratio.toFixed(ratio < 10 ? 2 : 0)}× lower`),
    ` than ${last.policy} with ${time(last)}.`,
  );
}

function commandBlock() {
  const text = html("pre", { tabindex: 0, "aria-label": "Command" }, html("code", {}, page.command));
  const button = html("button", { onclick: () => copy(text, button) }, "Copy");
  return html("div", { class: "command" }, text, button);
}

async function copy(element, button) {
  try {
    await navigator.clipboard.writeText(element.textContent);
  } catch {
    // a page opened from a file may not be allowed to: select, and use the old way
    getSelection().selectAllChildren(element);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = "Copy";
  }, 1500);
}

const MEASURES = [
  ["JCT", "Job completion time: from a job's arrival to its end, over finished jobs."],
  ["Queue time", "The part of its JCT in which a job held no devices, also after a preemption."],
  ["Makespan", "From the first arrival to the last completion."],
  ["Utilisation", "Device-time held by jobs, divided by the device-time the cluster offered."],
  ["Preemptions", "How often a job lost its devices before it was done."],
  ["Deadline misses", "Share of the jobs with a deadline that ended after it."],
  [
    "Max ρ",
    "Finish-time fairness of the worst-off job: its JCT over that on a private 1/n share; 1 is fair.",
  ],
];

function drawFooter() {
  const list = html(
    "dl",
    {},
    MEASURES.map(([name, text]) => [html("dt", {}, name), html("dd", {}, text)]).flat(),
  );
  byId("footer").replaceChildren(
    list,
    html("p", {}, `Made by yard ${page.version}. This file is complete in itself: it loads nothing.`),
  );
}

// ---------------------------------------------------------------- summary table

// Key, heading, how to write it, and whether more or less is better.
const COLUMNS = [
  ["finished", "Finished", "count", "high"],
  ["avg_jct_s", "Avg JCT", "time", "low"],
  ["p50_jct_s", "p50 JCT", "time", "low"],
  ["p90_jct_s", "p90 JCT", "time", "low"],
  ["p99_jct_s", "p99 JCT", "time", "low"],
  ["makespan_s", "Makespan", "time", "low"],
  ["avg_queue_s", "Avg queue", "time", "low"],
  ["utilization", "Utilisation", "percent", "high"],
  ["preemptions", "Preempt.", "count", "low"],
  ["deadline_miss_ratio", "Misses", "percent", "low"],
  ["max_rho", "Max ρ", "ratio", "low"],
];

function drawSummary() {
  const body = card("summary", "Summary", null);
  if (!runs.length) return body.append(emptyNote("No run to show."));
  const order = { key: null, down: false };
  const draw = () =>
    body.replaceChildren(html("div", { class: "scroll" }, summaryTable(order, draw)), allFigures());
  redraws.push(draw);
  draw();
}

function summaryTable(order, draw) {
  const columns = COLUMNS.map(([key, title, kind, better]) => {
    const values = runs.map((run) => run.summary[key]).filter(isNumber);
    return { key, title, kind, unit: columnUnit(values), best: bestOf(values, better) };
  });
  const head = [{ key: "policy", title: "Policy" }, ...columns].map((column) =>
    sortHead(column, order, draw),
  );
  const row = (run) =>
    html(
      "tr",
      { class: hidden.has(run.index) ? "off" : null },
      html("th", { scope: "row" }, swatch(run), run.policy),
      columns.map((column) => summaryCell(run, column)),
    );
  return html(
    "table",
    {},
    html("thead", {}, html("tr", {}, head)),
    html("tbody", {}, sortedRuns(order).map(row)),
  );
}

/** One unit for the column, so that its numbers compare at a glance: that of the largest. */
const columnUnit = (values) => unitOf(Math.max(0, ...values));

/** The best value, when there is something to choose. */
function bestOf(values, better) {
  const best = better === "low" ? Math.min(...values) : Math.max(...values);
  return values.length > 1 && values.some((value) => value !== best) ? best : null;
}

function summaryCell(run, { key, kind, unit, best }) {
  const value = run.summary[key];
  if (!isNumber(value)) return html("td", { title: "does not apply" }, "–");
  const own = value > 0 && value / unit[1] < 0.1 ? unitOf(value) : unit;
  const text = {
    time: () => duration(value, own),
    percent: () => percent(value),
    ratio: () => short(value),
    count: () => count(value),
  }[kind]();
  const title = kind === "time" ? exact(value) : String(value);
  const isBest = best !== null && value === best;
  return html(
    "td",
    { title: isBest ? `${title}, the best` : title, class: isBest ? "best" : null },
    html("span", {}, text),
  );
}

function sortHead({ key, title }, order, draw) {
  const click = () => {
    order.down = order.key === key && !order.down;
    order.key = key;
    draw();
    byId("summary").querySelector("th[aria-sort] button").focus();
  };
  const state = order.key === key ? (order.down ? "descending" : "ascending") : null;
  return html(
    "th",
    { scope: "col", "aria-sort": state },
    html("button", { onclick: click, title: "Sort" }, title),
  );
}

function sortedRuns({ key, down }) {
  if (!key) return runs;
  const value = (run) =>
    key === "policy" ? run.policy : isNumber(run.summary[key]) ? run.summary[key] : Infinity;
  const compare = (a, b) => (key === "policy" ? value(a).localeCompare(value(b)) : value(a) - value(b) || 0);
  const sorted = [...runs].sort(compare);
  return down ? sorted.reverse() : sorted;
}

/** Every key of the JSON output, for whoever wants the rest. */
function allFigures() {
  const keys = [...new Set(runs.flatMap((run) => Object.keys(run.summary)))].filter(
    (key) => key !== "policy",
  );
  const write = (value) =>
    value === null || value === undefined
      ? "–"
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value);
  const cell = (run, key) => html("td", { title: write(run.summary[key]) }, write(run.summary[key]));
  const rows = keys.map((key) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, key),
      runs.map((run) => cell(run, key)),
    ),
  );
  const head = html(
    "tr",
    {},
    html("th", {}),
    runs.map((run) => html("th", { scope: "col" }, run.policy)),
  );
  const table = html("table", {}, html("thead", {}, head), html("tbody", {}, rows));
  return html(
    "details",
    {},
    html("summary", {}, "All figures, as in the JSON output"),
    html("div", { class: "scroll" }, table),
  );
}

// ---------------------------------------------------------------- distribution of JCT or waiting time

function drawDistribution() {
  let measure = "jct";
  const pick = segmented(
    "Measure",
    [
      ["JCT", "jct"],
      ["Waiting time", "wait"],
    ],
    (value) => {
      measure = value;
      draw();
    },
  );
  const body = card(
    "distribution",
    "Distribution over jobs",
    "Share of the finished jobs that took at most this long. Further left is better.",
    pick,
  );
  const draw = () => cdfChart(body, measure);
  redraws.push(draw);
  draw();
}

function cdfChart(body, measure) {
  const drawn = shownRuns().filter((run) => run[measure].x.length);
  if (!drawn.length) return body.replaceChildren(emptyNote("No finished jobs to show."));
  const [height, left, right, top, bottom] = [320, 46, 14, 8, 42];
  const { root, width } = canvasOf(body, height, "Cumulative distribution of job times per policy");
  const x = logScale(
    drawn.flatMap((run) => run[measure].x),
    left,
    width - right,
    64,
  );
  const y = linear(0, 1, height - bottom, top);
  for (const share of [0, 0.25, 0.5, 0.75, 0.9, 1]) {
    root.append(
      rule(left, y(share), width - right, y(share), share ? "grid" : "base"),
      label(left - 8, y(share) + 4, "end", percent(share, 0)),
    );
  }
  for (const tick of x.ticks) {
    root.append(
      rule(x.map(tick.value), top, x.map(tick.value), height - bottom, "grid"),
      label(x.map(tick.value), height - bottom + 17, "middle", tick.label),
    );
  }
  root.append(
    label(
      (left + width - right) / 2,
      height - 4,
      "middle",
      measure === "jct" ? "Job completion time" : "Time spent waiting",
    ),
  );
  for (const run of drawn) root.append(strokePath(run, cdfPath(run[measure], x.map, y, width - right)));
  hoverCdf(root, drawn, measure, x, y, { left, right: width - right, top, bottom: height - bottom });
}

/** Steps up at each value, and on to the right edge once all jobs are counted. */
function cdfPath(cdf, x, y, right) {
  let d = `M${x(cdf.x[0]).toFixed(1)} ${y(0)}`;
  cdf.x.forEach((value, i) => {
    d += `H${x(value).toFixed(1)}V${y(cdf.p[i]).toFixed(1)}`;
  });
  return `${d}H${right}`;
}

/** The share at or below a value. */
function shareAt(cdf, value) {
  let low = 0;
  let high = cdf.x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cdf.x[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low ? cdf.p[low - 1] : 0;
}

function hoverCdf(root, drawn, measure, x, y, area) {
  const marks = svg("g");
  const move = (event) => {
    const at = Math.min(Math.max(localPoint(root, event).x, area.left), area.right);
    const value = x.map.invert(at);
    const rows = drawn.map((run) => [run, shareAt(run[measure], value * (1 + 1e-9))]);
    marks.replaceChildren(
      rule(at, area.top, at, area.bottom, "cross"),
      ...rows.map(([run, share]) => dot(run, at, y(share))),
    );
    const table = tipTable(
      null,
      rows.sort((a, b) => b[1] - a[1]).map(([run, share]) => [run, percent(share)]),
    );
    showTip(
      event,
      html("h3", {}, `${measure === "jct" ? "Done within" : "Waited at most"} ${duration(value)}`),
      table,
    );
  };
  addHover(root, marks, area, { pointermove: move });
}

/** Lays a sheet over the plot that reports the pointer, and clears the marks when it leaves. */
function addHover(root, marks, area, handlers) {
  const leave = () => {
    marks.replaceChildren();
    hideTip();
  };
  const sheet = svg("rect", {
    class: "hit",
    x: area.left,
    y: area.top,
    width: area.right - area.left,
    height: area.bottom - area.top,
  });
  for (const [type, handler] of Object.entries({ pointerleave: leave, ...handlers }))
    sheet.addEventListener(type, handler);
  root.append(marks, sheet);
  return sheet;
}

// ---------------------------------------------------------------- utilisation and queue over time

function drawTimeline() {
  const state = { queue: "queued_jobs", domain: null };
  const pick = segmented(
    "Queue in",
    [
      ["Jobs", "queued_jobs"],
      ["GPUs", "queued_gpus"],
    ],
    (value) => {
      state.queue = value;
      draw();
    },
  );
  const reset = html(
    "button",
    {
      onclick: () => {
        state.domain = null;
        draw();
      },
    },
    "Reset zoom",
  );
  const body = card(
    "timeline",
    "Utilisation and queue over time",
    "Lines are time-weighted means, the shade reaches up to the maximum. " +
      "Drag over the chart to zoom in, double-click to zoom out.",
    reset,
    html("span", { class: "note" }, "Queue in"),
    pick,
  );
  const draw = () => {
    reset.hidden = !state.domain;
    timelineChart(body, state, draw);
  };
  redraws.push(draw);
  draw();
}

function timelineChart(body, state, draw) {
  const drawn = shownRuns().filter((run) => run.series);
  if (!drawn.length) return body.replaceChildren(emptyNote("No series recorded."));
  const whole = [
    Math.min(...drawn.map((run) => run.series.t0)),
    Math.max(...drawn.map((run) => seriesEnd(run.series))),
  ];
  const domain = state.domain || whole;
  const [left, right] = [46, 14];
  const top = { top: 26, bottom: 186 };
  const low = { top: 232, bottom: 372 };
  const { root, width } = canvasOf(body, 398, "Utilisation and queue length over time per policy");
  const x = linear(...domain, left, width - right);
  const columns = Math.max(40, Math.round((width - left - right) / 3));
  const used = drawn.map((run) => ({
    run,
    points: condense(run.series, "used", domain, columns, 1 / capacity(run)),
  }));
  const queue = drawn.map((run) => ({
    run,
    points: condense(run.series, state.queue, domain, columns, 1),
  }));
  const most = Math.max(1, ...queue.flatMap(({ points }) => points.map((point) => point.max)));
  const ticks = countTicks(most, 5);
  const yUsed = linear(0, 1, top.bottom, top.top);
  const yQueue = linear(0, ticks[ticks.length - 1], low.bottom, low.top);

  root.append(label(left, top.top - 10, "start", "Utilisation (share of GPUs in use)", "title"));
  root.append(
    label(
      left,
      low.top - 10,
      "start",
      state.queue === "queued_jobs" ? "Queue (jobs waiting)" : "Queue (GPUs asked for by waiting jobs)",
      "title",
    ),
  );
  yAxis(root, yUsed, [0, 0.25, 0.5, 0.75, 1], (share) => percent(share, 0), left, width - right);
  yAxis(root, yQueue, ticks, count, left, width - right);
  timeAxis(root, x, domain, [top, low], width - left - right);
  used.forEach(({ run, points }) => drawTrack(root, run, points, x, yUsed));
  queue.forEach(({ run, points }) => drawTrack(root, run, points, x, yQueue));
  hoverTimeline(
    root,
    drawn,
    state,
    { x, yUsed, yQueue, whole, draw },
    { left, right: width - right, top: top.top, bottom: low.bottom },
  );
}

const seriesEnd = (series) => series.t0 + series.width * series.used.mean.length;

/** Devices of the run's cluster; without a node list the most that was ever in use. */
const capacity = (run) => page.clusters[run.cluster].gpus_total || Math.max(1, ...run.series.used.max);

function yAxis(root, y, ticks, write, left, right) {
  for (const value of ticks)
    root.append(
      rule(left, y(value), right, y(value), value ? "grid" : "base"),
      label(left - 8, y(value) + 4, "end", write(value)),
    );
}

function timeAxis(root, x, domain, panels, width) {
  const { ticks, step } = timeTicks(...domain, Math.max(3, width / 95));
  for (const tick of ticks) {
    for (const panel of panels) root.append(rule(x(tick), panel.top, x(tick), panel.bottom, "grid"));
    root.append(
      label(x(tick), panels[panels.length - 1].bottom + 18, "middle", clock(tick, step, domain[1])),
    );
  }
}

/** Joins the buckets in the domain until one is as wide as a few pixels, so that lines stay lines. */
function condense({ t0, width, ...tracks }, name, domain, columns, scale) {
  const { mean, max } = tracks[name];
  const from = Math.max(0, Math.floor((domain[0] - t0) / width));
  const to = Math.min(mean.length, Math.ceil((domain[1] - t0) / width));
  const span = Math.max(1, Math.round((domain[1] - domain[0]) / width / columns));
  const points = [];
  for (let i = from; i < to; i += span) {
    const end = Math.min(i + span, to);
    let [sum, top] = [0, 0];
    for (let k = i; k < end; k++) {
      sum += mean[k];
      top = Math.max(top, max[k]);
    }
    points.push({
      t0: t0 + i * width,
      t1: t0 + end * width,
      mean: (sum / (end - i)) * scale,
      max: top * scale,
    });
  }
  return points;
}

function drawTrack(root, run, points, x, y) {
  const clip = (t) => Math.min(Math.max(t, x.invert(46)), x.invert(root.viewBox.baseVal.width - 14));
  const px = (t) => x(clip(t)).toFixed(1);
  let line = "";
  let above = "";
  let below = "";
  for (const { t0, t1, mean, max } of points) {
    line += `${line ? "V" + y(mean).toFixed(1) : `M${px(t0)} ${y(mean).toFixed(1)}`}H${px(t1)}`;
    above += `${above ? "L" : "M"}${px(t0)} ${y(max).toFixed(1)}L${px(t1)} ${y(max).toFixed(1)}`;
    below = `L${px(t1)} ${y(mean).toFixed(1)}L${px(t0)} ${y(mean).toFixed(1)}${below}`;
  }
  const band = svg("path", { d: `${above}${below}Z`, class: "band" });
  band.style.fill = colour(run);
  const path = strokePath(run, line);
  path.style.strokeWidth = 1.4; // several ragged lines over each other
  root.append(band, path);
}

/** What a run did at a time; null before it began and after it ended. */
function bucketAt({ t0, width, used, running, ...queues }, queue, t) {
  const i = Math.floor((t - t0) / width);
  if (i < 0 || i >= used.mean.length) return null;
  return {
    used: used.mean[i],
    running: running.mean[i],
    queue: queues[queue].mean[i],
    most: queues[queue].max[i],
  };
}

function hoverTimeline(root, drawn, state, { x, yUsed, yQueue, whole, draw }, area) {
  const marks = svg("g");
  let from = null; // where a drag began, in time
  const timeOf = (event) => x.invert(Math.min(Math.max(localPoint(root, event).x, area.left), area.right));
  const move = (event) => {
    const t = timeOf(event);
    const rows = drawn.map((run) => [run, bucketAt(run.series, state.queue, t)]).filter(([, at]) => at);
    marks.replaceChildren(rule(x(t), area.top, x(t), area.bottom, "cross"));
    for (const [run, at] of rows)
      marks.append(dot(run, x(t), yUsed(at.used / capacity(run))), dot(run, x(t), yQueue(at.queue)));
    if (from !== null)
      marks.append(
        svg("rect", {
          class: "brush",
          x: Math.min(x(from), x(t)),
          y: area.top,
          width: Math.abs(x(t) - x(from)),
          height: area.bottom - area.top,
        }),
      );
    const cells = rows.map(([run, at]) => [
      run,
      percent(at.used / capacity(run)),
      count(at.queue),
      count(at.most),
      count(at.running),
    ]);
    showTip(
      event,
      html("h3", {}, `At ${duration(t)}`),
      tipTable(["", "use", "queue", "max", "running"], cells),
    );
  };
  const down = (event) => {
    from = timeOf(event);
  };
  const up = (event) => {
    const ends = [from, timeOf(event)].sort((a, b) => a - b);
    const dragged = from !== null && x(ends[1]) - x(ends[0]) > 5;
    from = null;
    if (!dragged) return;
    state.domain = ends;
    hideTip();
    draw();
  };
  const out = () => {
    state.domain = null;
    hideTip();
    draw();
  };
  const sheet = addHover(root, marks, area, {
    pointermove: move,
    pointerdown: down,
    pointerup: up,
    dblclick: out,
  });
  sheet.addEventListener("pointerleave", () => {
    from = null;
  });
}

// ---------------------------------------------------------------- waiting time by job size

function drawSizes() {
  const body = card(
    "sizes",
    "Waiting time by job size",
    "Box: middle half of the jobs, with the median. Whiskers: 10th to 90th percentile. Diamond: mean.",
  );
  const draw = () => boxChart(body);
  redraws.push(draw);
  draw();
}

const BOX_KEYS = ["p10", "p25", "p50", "p75", "p90", "mean"];

function boxChart(body) {
  const drawn = shownRuns();
  const classes = page.classes
    .map((name, i) => ({ name, i }))
    .filter(({ i }) => drawn.some((run) => run.boxes[i]));
  if (!classes.length) return body.replaceChildren(emptyNote("No finished jobs to show."));
  const [height, left, right, top, bottom] = [340, 64, 14, 8, 56];
  const values = classes.flatMap(({ i }) =>
    drawn.flatMap((run) => (run.boxes[i] ? BOX_KEYS.map((key) => run.boxes[i][key]) : [])),
  );
  if (values.every((value) => value <= 0)) return body.replaceChildren(emptyNote("No job had to wait."));
  const { root, width } = canvasOf(body, height, "Waiting time by number of GPUs per policy");
  const y = logScale(values, height - bottom - 6, top, 26);
  for (const tick of y.ticks) {
    root.append(
      rule(left, y.map(tick.value), width - right, y.map(tick.value), "grid"),
      label(left - 8, y.map(tick.value) + 4, "end", tick.label),
    );
  }
  root.append(rule(left, height - bottom, width - right, height - bottom, "base"));
  const groupWidth = (width - left - right) / classes.length;
  classes.forEach((group, k) =>
    boxGroup(root, drawn, group, left + k * groupWidth, groupWidth, y.map, {
      top,
      bottom: height - bottom,
    }),
  );
  root.append(label((left + width - right) / 2, height - 2, "middle", "GPUs per job"));
}

function boxGroup(root, drawn, { name, i }, x0, groupWidth, y, area) {
  const slot = Math.min(34, (groupWidth * 0.86) / drawn.length);
  const start = x0 + groupWidth / 2 - (slot * drawn.length) / 2;
  const counts = drawn.filter((run) => run.boxes[i]).map((run) => run.boxes[i].count);
  const sheet = svg("rect", {
    class: "hit",
    x: x0,
    y: area.top,
    width: groupWidth,
    height: area.bottom - area.top,
  });
  root.append(sheet, label(x0 + groupWidth / 2, area.bottom + 17, "middle", name, "title"));
  if (groupWidth > 64) root.append(label(x0 + groupWidth / 2, area.bottom + 33, "middle", jobCounts(counts)));
  drawn.forEach((run, k) => {
    if (run.boxes[i]) root.append(boxMark(run, run.boxes[i], start + (k + 0.5) * slot, slot * 0.62, y));
  });
  const move = (event) => {
    sheet.classList.add("on");
    const rows = drawn
      .filter((run) => run.boxes[i])
      .map((run) => [
        run,
        ...["p10", "p50", "p90", "mean"].map((key) => duration(run.boxes[i][key])),
        count(run.boxes[i].count),
      ]);
    showTip(
      event,
      html("h3", {}, `${name} GPU${name === "1" ? "" : "s"}`),
      tipTable(["", "p10", "p50", "p90", "mean", "jobs"], rows),
    );
  };
  sheet.addEventListener("pointermove", move);
  sheet.addEventListener("pointerleave", () => {
    sheet.classList.remove("on");
    hideTip();
  });
}

function jobCounts(counts) {
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return least === most ? plural(most, "job") : `${count(least)}–${count(most)} jobs`;
}

function boxMark(run, box, x, width, y) {
  const at = (key) => y(box[key]);
  const half = Math.max(1.5, width / 2);
  const m = Math.min(4, half);
  const body = svg("rect", {
    x: x - half,
    width: half * 2,
    y: at("p75"),
    height: Math.max(1, at("p25") - at("p75")),
    "fill-opacity": 0.28,
    "stroke-dasharray": dash(run),
    rx: 2,
  });
  const cap = (key) => `M${x - half / 2} ${at(key)}h${half}`;
  const stems = `M${x} ${at("p25")}V${at("p10")}M${x} ${at("p75")}V${at("p90")}`;
  const whisker = svg("path", { d: stems + cap("p10") + cap("p90") });
  const median = svg("path", { d: `M${x - half} ${at("p50")}h${half * 2}`, "stroke-width": 2.6 });
  const mean = svg("path", { d: `M${x} ${at("mean") - m}l${m} ${m}l${-m} ${m}l${-m} ${-m}Z` });
  mean.style.cssText = "fill: var(--card)";
  const mark = svg("g", { "stroke-width": 1.4, "pointer-events": "none" }, body, whisker, median, mean);
  mark.style.stroke = colour(run);
  body.style.fill = colour(run);
  return mark;
}

// ---------------------------------------------------------------- Gantt chart of the nodes

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
  const x0 = Math.max(layout.x(bars.start[i]), layout.left - 2);
  const x1 = Math.min(layout.x(bars.end[i]), layout.width + 2);
  return { x0, x1, y: y + (h * first) / gpus, h: (h * devices) / gpus, first };
}

function paintBars(chart, paint, row, y, h) {
  const { bars, run } = chart;
  const { pen, colours, dark } = paint;
  const drawnTo = []; // per first device: bars within a pixel that is already painted are skipped
  const marked = chart.hover >= 0 ? run.gantt.job[chart.hover] : -1;
  for (const i of bars.byNode[row]) {
    if (bars.end[i] <= chart.t0) continue;
    if (bars.start[i] >= chart.t1) break;
    const box = barBox(chart, i, row, y, h);
    if (box.x1 <= (drawnTo[box.first] ?? -1)) continue;
    drawnTo[box.first] = Math.ceil(box.x1);
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

// ---------------------------------------------------------------- longest waits

function drawLongest() {
  const waited = runs.filter((run) => run.longest.length);
  if (!waited.length) return byId("longest").remove();
  const select = policySelect((run) => draw(run));
  const body = card("longest", "Jobs that waited longest", null, select);
  const heads = ["Job", "GPUs", "Arrived at", "Waited", "JCT", "Waited / JCT", "Preemptions"];
  const draw = (run) => {
    if (!run.longest.length) return body.replaceChildren(emptyNote("No job had to wait."));
    const head = html(
      "thead",
      {},
      html(
        "tr",
        {},
        heads.map((text) => html("th", { scope: "col" }, text)),
      ),
    );
    body.replaceChildren(
      html("div", { class: "scroll" }, html("table", {}, head, html("tbody", {}, run.longest.map(longRow)))),
    );
  };
  select.selectedIndex = waited[0].index;
  draw(waited[0]);
}

function longRow(job) {
  const time = (seconds) => html("td", { title: exact(seconds) }, duration(seconds));
  return html(
    "tr",
    {},
    html("td", { class: "name", title: job.name }, job.name),
    html("td", {}, count(job.gpus)),
    time(job.submit),
    time(job.wait),
    time(job.jct),
    html("td", {}, percent(job.jct > 0 ? job.wait / job.jct : null, 0)),
    html("td", {}, count(job.preemptions)),
  );
}

// ---------------------------------------------------------------- theme, size, print

const isDark = () => document.documentElement.dataset.theme === "dark";

/** Applies a theme and remembers it where the browser lets a file remember anything. */
function setTheme(theme, remember = true) {
  document.documentElement.dataset.theme = theme;
  if (remember)
    try {
      localStorage.setItem("yard-theme", theme);
    } catch {
      /* then only for now */
    }
  redrawAll();
}

/** The address (`#dark`) before the last choice before what the system prefers. */
function firstTheme() {
  const asked = location.hash.slice(1);
  if (asked === "dark" || asked === "light") return asked;
  let kept = null;
  try {
    kept = localStorage.getItem("yard-theme");
  } catch {
    /* nothing kept */
  }
  return kept || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function watchWindow() {
  let [width, pending] = [window.innerWidth, 0];
  addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(redrawAll);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) =>
    setTheme(event.matches ? "dark" : "light", false),
  );
  addEventListener("hashchange", () => setTheme(firstTheme(), false));
  let before = null; // paper is white
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    setTheme("light", false);
  });
  addEventListener("afterprint", () => setTheme(before, false));
}

document.documentElement.dataset.theme = firstTheme();
drawHeader();
drawLegend();
for (const draw of [
  drawSummary,
  drawDistribution,
  drawTimeline,
  drawSizes,
  drawGantt,
  drawLongest,
  drawFooter,
])
  draw();
watchWindow();
