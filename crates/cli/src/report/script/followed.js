// Shares asked for against shares received.

function drawFollowed() {
  const any = runs.some((run) => run.followed.length);
  byId("followed").hidden = !any;
  if (!any) return;
  const body = card(
    "followed",
    "Shares asked and received",
    "Each dot is one job on one kind: the part of its life that plans asked for, and the part it held devices. " +
      "On the line, rounds follow the plan; above it, the job also got what others left over.",
  );
  const draw = () => followedChart(body);
  redraws.push(draw);
  draw();
}

function followedChart(body) {
  const drawn = shownRuns().filter((run) => run.followed.length);
  if (!drawn.length) return body.replaceChildren(emptyNote("No shares of time in the policies shown."));
  const [left, top, bottom, legend] = [54, 12, 44, 300];
  const size = Math.max(220, Math.min(420, body.clientWidth - left - legend));
  const height = size + top + bottom;
  const { root } = canvasOf(body, height, "Share of time asked for against share received, per job and kind");
  const x = linear(0, 1, left, left + size);
  const y = linear(0, 1, top + size, top);
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    root.append(
      rule(left, y(part), left + size, y(part), part ? "grid" : "base"),
      rule(x(part), top, x(part), top + size, "grid"),
      label(left - 8, y(part) + 4, "end", percent(part, 0)),
      label(x(part), top + size + 18, "middle", percent(part, 0)),
    );
  }
  root.append(rule(x(0), y(0), x(1), y(1), "base"));
  root.append(label(left + size / 2, height - 6, "middle", "Asked for"));
  root.append(label(left + size + 24, top + 12, "start", "Received against asked for", "title"));
  drawn.forEach((run, i) => {
    for (const [asked, received] of run.followed) root.append(faintDot(run, x(asked), y(received)));
    const error = run.summary.asked_received_error;
    const line = top + 38 + 20 * i;
    root.append(dot(run, left + size + 30, line - 4));
    root.append(label(left + size + 42, line, "start", `${run.policy}: off by ${percent(error)} of the time`));
  });
}

function faintDot(run, cx, cy) {
  const circle = dot(run, cx.toFixed(1), cy.toFixed(1));
  circle.setAttribute("r", 2.5);
  circle.style.fillOpacity = 0.45;
  circle.style.strokeWidth = 0;
  return circle;
}
