// Longest waits.

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
