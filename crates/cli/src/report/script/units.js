// Numbers and units.

const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function count(value) {
  const digits = Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

/** Three digits or so: what an eye compares. */
function short(value) {
  const size = Math.abs(value);
  return size >= 100 ? count(Math.round(value)) : value.toFixed(size >= 10 ? 1 : 2);
}

const unitOf = (seconds) => {
  const size = Math.abs(seconds);
  return size >= 2 * 86400 ? UNITS[0] : size >= 3600 ? UNITS[1] : size >= 60 ? UNITS[2] : UNITS[3];
};

function duration(seconds, unit = unitOf(seconds)) {
  if (!isNumber(seconds)) return "–";
  if (seconds === 0) return `0 ${unit[0]}`;
  if (Math.abs(seconds) < 0.01) return "<0.01 s";
  return `${short(seconds / unit[1])} ${unit[0]}`;
}

const roundTime = (seconds) => duration(seconds).replace(/\.0+ /, " ");

/** For ticks, which are round in some unit. */
function roundDuration(seconds) {
  const unit = seconds % 86400 === 0 ? UNITS[0] : unitOf(seconds);
  return `${parseFloat((seconds / unit[1]).toPrecision(2))} ${unit[0]}`;
}

const percent = (fraction, digits = 1) =>
  isNumber(fraction) ? `${(fraction * 100).toFixed(digits)} %` : "–";
const exact = (seconds) => `${seconds.toLocaleString("en-US", { maximumFractionDigits: 3 })} s`;

/** A point in time, as fine as the ticks up to `last`: `3 d`, `30 h`, `2 d 06:00`, `02:10:05`. */
function clock(seconds, step, last = seconds) {
  if (step >= 86400) return `${Math.round(seconds / 86400)} d`;
  if (step >= 3600 && last <= 3 * 86400) return `${Math.round(seconds / 3600)} h`;
  const total = step >= 1 ? Math.round(seconds) : Math.floor(seconds);
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const days = Math.floor(total / 86400);
  const time = [two((total % 86400) / 3600), two((total % 3600) / 60)];
  if (step < 60) time.push(two(total % 60));
  const fraction = step < 1 ? (seconds - total).toFixed(step < 0.1 ? 2 : 1).slice(1) : "";
  return (days ? `${days} d ` : "") + time.join(":") + fraction;
}
