// Draws the report from the data in the page. A module, so that its names are its own.

const page = JSON.parse(document.getElementById("data").textContent);
const runs = page.runs.map((run, index) => ({ ...run, index }));
const hidden = new Set(); // indices of the runs switched off in the legend
const redraws = []; // every chart's draw function, called when the width, theme or legend changes

const shownRuns = () => runs.filter((run) => !hidden.has(run.index));
const redrawAll = () => redraws.forEach((draw) => draw());
