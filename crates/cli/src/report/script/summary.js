// Summary table.

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
