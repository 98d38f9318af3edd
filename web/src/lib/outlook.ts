// When a job starts and ends and whether its deadline is kept: one figure and one tone for every place that shows it.

import { ago, span } from './format';
import { isOver } from './store';
import type { Job } from './types';

/** When a job is likely over: what the scheduler estimated. The speed that it reports stands in only where nothing was. */
export function likelyEnd(job: Job, now: number): number | null {
  const end = job.estimate?.end;
  if (end) return Math.max(end.mid, now);
  const left = (job.steps ?? 0) - (job.step ?? 0);
  return job.rate && job.rate > 0 && left > 0 && job.state === 'running' ? now + left / job.rate : null;
}

/** `late`: it likely misses its deadline; `tight`: it likely keeps it, but may not. */
export type Risk = 'late' | 'tight' | null;

export function risk(job: Job): Risk {
  const by = job.promise ?? job.deadline;
  if (by === null || isOver(job)) return null;
  const end = job.estimate?.end;
  if (!end) return job.earliest !== null && job.earliest > by ? 'late' : job.at_risk ? 'tight' : null;
  if (end.mid > by) return 'late';
  return end.high === null || end.high > by || job.at_risk ? 'tight' : null;
}

export const TONE: Record<'late' | 'tight', string> = { late: 'bad', tight: 'warn' };

/** The same in words. */
export function riskText(job: Job, now: number): string {
  const [by, end] = [job.promise ?? job.deadline ?? now, job.estimate?.end];
  if (risk(job) === 'late') return end ? `likely ${span(end.mid - by)} late` : 'cannot be met';
  return end && risk(job) === 'tight' ? `likely ${ago(Math.max(end.mid, now), now)}, may be late` : 'may be late';
}

/** A time that was estimated, seen from now: one that has passed is due, but nobody knows the second. */
export function due(time: number, now: number): string {
  return time - now < 1 ? 'any moment' : ago(time, now);
}
