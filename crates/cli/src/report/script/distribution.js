// Distribution of JCT or waiting time.

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
