// How fast a job went, from what it said of how far it was.

import type { Point } from './spans';
import type { PacePoint } from './types';

/** Steps per second at even times from the first point to the last; nothing goes while it does not run. */
export function rates(points: PacePoint[], steps = 120): Point[] {
  const [first, last] = [points[0], points[points.length - 1]];
  if (!first || !last || last.time <= first.time) return [];
  let at = 1;
  return Array.from({ length: steps + 1 }, (_, n) => {
    const time = first.time + ((last.time - first.time) * n) / steps;
    while (at < points.length - 1 && points[at]!.time < time) at++;
    return { time, values: [between(points[at - 1]!, points[at]!)] };
  });
}

/** A start that begins anew from its last checkpoint goes back first, which is no speed. */
function between(from: PacePoint, to: PacePoint): number {
  const seconds = to.time - from.time;
  return from.start === to.start && seconds > 0 ? Math.max(0, (to.step - from.step) / seconds) : 0;
}

/** Fewer say too little to be drawn. */
const LOSSES_LEAST = 3;

/** The loss at even steps, from the first that was reported to the last. Steps that were done twice have what was
 *  reported last. */
export function losses(points: PacePoint[], steps = 120): Point[] {
  const told = new Map<number, number>();
  for (const { step, loss } of points) if (loss != null && Number.isFinite(loss)) told.set(step, loss);
  const known = [...told].sort(([a], [b]) => a - b);
  const [first, last] = [known[0], known[known.length - 1]];
  if (!first || !last || known.length < LOSSES_LEAST) return [];
  let at = 1;
  return Array.from({ length: steps + 1 }, (_, n) => {
    const step = first[0] + ((last[0] - first[0]) * n) / steps;
    while (at < known.length - 1 && known[at]![0] < step) at++;
    const [before, after] = [known[at - 1]!, known[at]!];
    const part = (step - before[0]) / (after[0] - before[0]);
    return { time: step, values: [before[1] + (after[1] - before[1]) * part] };
  });
}
