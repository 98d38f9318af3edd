// Spans of time on a logarithmic axis. What is below a second stands at its beginning.

const ROUND: [number, string][] = [
  [1, '≤ 1 s'], [10, '10 s'], [60, '1 min'], [600, '10 min'], [3600, '1 h'], [6 * 3600, '6 h'], [86400, '1 d'],
  [7 * 86400, '7 d'], [30 * 86400, '30 d'], [365 * 86400, '1 y'], [3650 * 86400, '10 y'],
];

export interface LogScale { at: (seconds: number) => number; ticks: { at: number; label: string }[] }

/** From `low` to `high` on the page, over all values; ticks are at least `room` pixels apart. */
export function logScale(values: number[], low: number, high: number, room: number): LogScale {
  let [least, most] = [Infinity, 1];
  for (const value of values) {
    least = Math.min(least, Math.max(1, value));
    most = Math.max(most, value);
  }
  const from = Math.log(Math.min(least, most));
  const to = Math.max(Math.log(most), from + 1e-3);
  const at = (seconds: number) => low + ((Math.log(Math.max(1, seconds)) - from) / (to - from)) * (high - low);
  const ticks: LogScale['ticks'] = [];
  for (const [seconds, label] of ROUND) {
    const last = ticks[ticks.length - 1];
    const inside = Math.log(seconds) >= from - 1e-9 && Math.log(seconds) <= to + 1e-9;
    if (inside && (!last || Math.abs(at(seconds) - last.at) >= room)) ticks.push({ at: at(seconds), label });
  }
  return { at, ticks };
}
