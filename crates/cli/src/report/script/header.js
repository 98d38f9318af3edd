// Header and footer.

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
