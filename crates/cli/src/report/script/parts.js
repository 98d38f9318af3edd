// Shared parts.

/** A card's heading with its note and tools; returns the element that the chart draws into. */
function card(id, title, note, ...tools) {
  const body = html("div", { class: "plot" });
  const heading = html("h2", { id: `${id}-title` }, title);
  const head = html(
    "div",
    { class: "card-head" },
    heading,
    html("div", { class: "tools" }, tools),
    note ? html("p", { class: "note" }, note) : null,
  );
  byId(id).setAttribute("aria-labelledby", `${id}-title`);
  byId(id).replaceChildren(head, body);
  return body;
}

const emptyNote = (text) => html("p", { class: "empty" }, text);

/** Buttons of which one is pressed. */
function segmented(label, options, onpick) {
  const group = html("div", { class: "segmented", role: "group", "aria-label": label });
  const press = (picked) => {
    [...group.children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === picked)));
  };
  options.forEach(([name, value], i) => {
    group.append(
      html(
        "button",
        {
          onclick: () => {
            press(i);
            onpick(value);
          },
        },
        name,
      ),
    );
  });
  press(0);
  return group;
}

function policySelect(onpick) {
  const select = html(
    "select",
    { "aria-label": "Policy", onchange: () => onpick(runs[select.selectedIndex]) },
    runs.map((run) => html("option", {}, run.policy)),
  );
  select.hidden = runs.length < 2;
  return select;
}

/** An empty chart as wide as its card; lengths in it are CSS pixels. */
function canvasOf(body, height, label) {
  const width = Math.max(320, body.clientWidth);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  body.replaceChildren(root);
  return { root, width };
}

const label = (x, y, anchor, text, kind = null) =>
  svg("text", { x, y, "text-anchor": anchor, class: kind }, text);
const rule = (x1, y1, x2, y2, kind) => svg("line", { x1, y1, x2, y2, class: kind });

function strokePath(run, d) {
  const path = svg("path", { d, class: "line", "stroke-dasharray": dash(run) });
  path.style.stroke = colour(run);
  return path;
}

function dot(run, cx, cy) {
  const circle = svg("circle", { cx, cy, r: 4, class: "dot" });
  circle.style.fill = colour(run);
  return circle;
}

/** The pointer's place in the chart's own pixels. */
function localPoint(root, event) {
  const box = root.getBoundingClientRect();
  const scale = root.viewBox.baseVal.width / box.width;
  return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
}

const tip = byId("tip");
const hideTip = () => {
  tip.hidden = true;
};

function showTip(event, ...content) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const { offsetWidth: w, offsetHeight: h } = tip;
  const right = event.clientX + 16 + w < window.innerWidth;
  const x = right ? event.clientX + 16 : Math.max(4, event.clientX - w - 16);
  tip.style.left = `${x}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY - h / 2, window.innerHeight - h - 4))}px`;
}

/** The tip's table: one row per policy. */
function tipTable(heads, rows) {
  const head = heads
    ? html(
        "thead",
        {},
        html(
          "tr",
          {},
          heads.map((text) => html("th", {}, text)),
        ),
      )
    : null;
  const line = ([run, ...cells]) =>
    html(
      "tr",
      {},
      html("td", {}, swatch(run), html("span", { class: "cell" }, run.policy)),
      cells.map((cell) => html("td", {}, cell)),
    );
  return html("table", {}, head, html("tbody", {}, rows.map(line)));
}
