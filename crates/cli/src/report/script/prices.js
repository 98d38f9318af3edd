// Prices over time, one line a kind.

const kindColour = (kind) => `var(--c${kind % 8})`;

function drawPrices() {
  const priced = runs.filter((run) => run.market);
  byId("prices").hidden = !priced.length;
  if (!priced.length) return;
  let shown = priced[0];
  const select = html(
    "select",
    {
      "aria-label": "Policy",
      onchange: () => {
        shown = priced[select.selectedIndex];
        draw();
      },
    },
    priced.map((run) => html("option", {}, run.policy)),
  );
  select.hidden = priced.length < 2;
  const body = card(
    "prices",
    "Price per kind over time",
    "What one device of a kind costs for all of the time, when all devices together cost 1. " +
      "While jobs are held back by their own best speed and no kind is short, prices say nothing.",
    select,
  );
  const draw = () => priceChart(body, shown);
  redraws.push(draw);
  draw();
}

function priceChart(body, run) {
  const { kinds, t, end, prices } = run.market;
  const [height, left, right, top, bottom] = [280, 62, 14, 34, 30];
  const { root, width } = canvasOf(body, height, "Price of each kind over time");
  const domain = [t[0], Math.max(end, t[0] + 1)];
  const most = Math.max(...prices.flat(), 1e-12);
  const x = linear(...domain, left, width - right);
  const y = linear(0, most, height - bottom, top);
  const digits = Math.max(0, 1 - Math.floor(Math.log10(most)));
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => part * most);
  yAxis(root, y, ticks, (price) => price.toFixed(digits), left, width - right);
  timeAxis(root, x, domain, [{ top, bottom: height - bottom }], width - left - right);
  kinds.forEach((kind, i) => root.append(pricePath(prices[i], t, end, x, y, i)));
  priceLegend(root, kinds, left, width - right);
  hoverPrices(root, run.market, x, y, { left, right: width - right, top, bottom: height - bottom }, digits);
}

/** A step at each plan. */
function pricePath(line, t, end, x, y, kind) {
  let d = `M${x(t[0]).toFixed(1)} ${y(line[0]).toFixed(1)}`;
  for (let i = 1; i < line.length; i++) d += `H${x(t[i]).toFixed(1)}V${y(line[i]).toFixed(1)}`;
  const path = svg("path", { d: `${d}H${x(end).toFixed(1)}`, class: "line" });
  path.style.stroke = kindColour(kind);
  path.style.strokeWidth = 1.4;
  return path;
}

function priceLegend(root, kinds, left, right) {
  const step = Math.min(150, (right - left) / kinds.length);
  kinds.forEach((kind, i) => {
    const line = rule(left + i * step, 12, left + i * step + 18, 12, "line");
    line.style.stroke = kindColour(i);
    line.style.strokeWidth = 3;
    root.append(line, label(left + i * step + 24, 16, "start", kind));
  });
}

/** The plan in force at a time. */
function planAt(t, time) {
  let at = 0;
  while (at + 1 < t.length && t[at + 1] <= time) at++;
  return at;
}

function hoverPrices(root, { kinds, t, prices, objective, gap }, x, y, area, digits) {
  const marks = svg("g");
  const move = (event) => {
    const at = Math.min(Math.max(localPoint(root, event).x, area.left), area.right);
    const plan = planAt(t, x.invert(at));
    marks.replaceChildren(rule(at, area.top, at, area.bottom, "cross"));
    kinds.forEach((kind, i) => {
      const circle = svg("circle", { cx: at, cy: y(prices[i][plan]), r: 4, class: "dot" });
      circle.style.fill = kindColour(i);
      marks.append(circle);
    });
    const rows = [
      ...kinds.map((kind, i) => [kind, prices[i][plan].toFixed(digits + 2)]),
      ["objective", objective[plan].toPrecision(5)],
      ["gap", percent(gap[plan], 3)],
    ];
    showTip(
      event,
      html("h3", {}, `At ${duration(x.invert(at))}`),
      html(
        "table",
        {},
        rows.map(([name, value]) => html("tr", {}, html("td", {}, name), html("td", {}, value))),
      ),
    );
  };
  addHover(root, marks, area, { pointermove: move });
}
