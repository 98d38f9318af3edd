// What jobs did, from events: stretches of waiting, running and so on, one after another for each job.

import type { Fact, Place } from './types';

export type Doing = 'waiting' | 'starting' | 'running' | 'stopping' | 'frozen';

export interface Stretch {
  job: number;
  doing: Doing;
  from: number;
  /** Where it still goes on: nothing. */
  to: number | null;
  gpus: number;
  kind: string | null;
  places: Place[];
  /** Why it began, where that was said. */
  why: string | null;
}

/** Whether a job holds devices meanwhile. */
export function holding(doing: Doing): boolean {
  return doing === 'starting' || doing === 'running' || doing === 'stopping';
}

/** What a job did before the first event that is known of it. */
function before(event: string): Doing {
  if (event === 'started') return 'starting';
  if (event === 'stopping' || event === 'stopped') return 'running';
  return 'waiting';
}

const WHY: Record<string, string> = {
  preempted: 'preempted by another job',
  moved: 'moved to other devices',
  cancelled: 'cancelled',
  drained: 'its node was drained',
  lost: 'its node was lost',
};

/** Stretches of all jobs, in the order in which they began. Events must be in order. */
export function stretches(facts: Fact[]): Stretch[] {
  const all: Stretch[] = [];
  const open = new Map<number, Stretch>();
  const begin = (fact: Fact, job: number, doing: Doing, more: Partial<Stretch>) => {
    const last = open.get(job);
    if (last) last.to = fact.time;
    const next: Stretch = { job, doing, from: fact.time, to: null, gpus: 0, kind: null, places: [], why: null, ...more };
    open.set(job, next);
    all.push(next);
  };
  const first = facts[0]?.time ?? 0;
  for (const fact of facts) {
    const job = fact.job;
    if (job === null) continue;
    const { detail, event } = fact;
    if (!open.has(job) && event !== 'submitted' && event !== 'rejected') {
      begin({ ...fact, time: first }, job, before(event), {});
    }
    const last = open.get(job);
    const held = last ? { gpus: last.gpus, kind: last.kind, places: last.places } : {};
    switch (event) {
      case 'submitted': begin(fact, job, 'waiting', {}); break;
      case 'granted':
        begin(fact, job, 'starting', { gpus: detail.gpus ?? 0, kind: detail.kind ?? null, places: detail.placement ?? [] });
        break;
      case 'started': begin(fact, job, 'running', held); break;
      case 'stopping': begin(fact, job, 'stopping', { ...held, why: reason(detail.why, detail.to) }); break;
      case 'stopped': {
        const why = detail.message ?? (last?.doing === 'stopping' ? last.why : outcome(detail.outcome));
        if (detail.outcome === 'frozen') begin(fact, job, 'frozen', { ...held, why });
        else begin(fact, job, 'waiting', { why });
        break;
      }
      case 'ended': {
        if (last) last.to = fact.time;
        open.delete(job);
        break;
      }
      default:
    }
  }
  return all.filter((stretch) => stretch.to === null || stretch.to > stretch.from || stretch.doing !== 'waiting');
}

function reason(why: string | undefined, to: number[] = []): string | null {
  if (!why) return null;
  const said = WHY[why.toLowerCase()] ?? why;
  return to.length > 0 ? `${said}: job ${to.join(', ')}` : said;
}

function outcome(outcome: string | undefined): string | null {
  if (outcome === 'crashed') return 'it failed';
  if (outcome === 'lost') return 'its node was lost';
  return null;
}

export interface Point { time: number; values: number[] }

/** How much there was of each series over time: a value for each stretch, at `steps` even times. */
export function series(
  list: Stretch[],
  from: number,
  to: number,
  steps: number,
  width: number,
  pick: (stretch: Stretch) => [number, number] | null,
): Point[] {
  const step = (to - from) / steps;
  const change = Array.from({ length: steps + 2 }, () => new Float64Array(width));
  for (const stretch of list) {
    const picked = pick(stretch);
    if (!picked) continue;
    const [which, value] = picked;
    // A stretch counts at each sampled time that lies within it.
    const begin = Math.max(0, Math.ceil((stretch.from - from) / step));
    const end = stretch.to === null ? steps + 1 : Math.ceil((stretch.to - from) / step);
    if (end <= begin || begin > steps || end < 0) continue;
    change[begin]![which]! += value;
    change[Math.min(end, steps + 1)]![which]! -= value;
  }
  const sum = new Float64Array(width);
  const points: Point[] = [];
  for (let at = 0; at <= steps; at++) {
    for (let which = 0; which < width; which++) sum[which]! += change[at]![which]!;
    points.push({ time: from + at * step, values: Array.from(sum) });
  }
  return points;
}
