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
