// Waiting time by job size.

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
