// Policies.

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
