// Scales and ticks.

const linear = (d0, d1, r0, r1) => {
  const map = (value) => r0 + ((value - d0) / (d1 - d0 || 1)) * (r1 - r0);
  map.invert = (pixel) => d0 + ((pixel - r0) / (r1 - r0 || 1)) * (d1 - d0);
  return map;
};

const TIME_STEPS = [
  0.01,
  0.1,
  0.5,
  1,
  2,
  5,
  10,
  15,
  30,
  60,
  120,
  300,
  600,
  900,
  1800,
  3600,
  7200,
  10800,
  21600,
  43200,
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].map((days) => days * 86400),
];

function timeTicks(d0, d1, most) {
  const step = TIME_STEPS.find((size) => (d1 - d0) / size <= most) || (d1 - d0) / most;
  const ticks = [];
  for (let i = Math.ceil(d0 / step); i * step <= d1 + step * 1e-6; i++) ticks.push(i * step);
  return { ticks, step };
}

function countTicks(top, most) {
  const power = 10 ** Math.floor(Math.log10(top / most || 1));
  const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((size) => top / size <= most) || top);
  return Array.from({ length: Math.ceil(top / step - 1e-9) + 1 }, (_, i) => i * step);
}

const LOG_MAJOR = [0.01, 0.1, 1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000, 86400000, 864000000];
const LOG_MINOR = [0.03, 0.3, 3, 30, 180, 1800, 10800, 21600, 259200, 2592000, 25920000, 259200000];

/** A logarithmic time scale. Zero has no logarithm: it, and all below the floor, sits on the floor. */
function logScale(values, r0, r1, spacing) {
  const positive = values.filter((value) => value > 0);
  const most = positive.length ? Math.max(...positive) : 60;
  const least = positive.length ? Math.max(Math.min(...positive), most / 1e6) : 1;
  const floor = 10 ** (Math.floor(Math.log10(least) * 2) / 2); // down to 1, 3.2, 10, 32, …
  const lo = most > 100 ? Math.max(1, floor) : floor; // nobody plans for less than a second
  const hi = Math.max(most, lo * 10);
  const clamped = values.some((value) => value < lo);
  const inner = linear(Math.log(lo), Math.log(hi), r0, r1);
  const map = (value) => inner(Math.log(Math.max(value, lo)));
  map.invert = (pixel) => Math.exp(inner.invert(pixel));
  return { map, lo, hi, ticks: logTicks(map, lo, hi, clamped, spacing) };
}

/** Round times that keep their distance in pixels; the floor first when values were clamped to it. */
function logTicks(map, lo, hi, clamped, spacing) {
  const ticks = clamped ? [{ value: lo, label: `≤ ${roundDuration(lo)}` }] : [];
  for (const ladder of [LOG_MAJOR, LOG_MINOR]) {
    for (const value of ladder) {
      const free = ticks.every((tick) => Math.abs(map(tick.value) - map(value)) >= spacing);
      if (value >= lo * 0.999 && value <= hi * 1.001 && free)
        ticks.push({ value, label: roundDuration(value) });
    }
  }
  return ticks;
}
