// Utilisation and queue over time.

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
