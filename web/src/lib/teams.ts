// What each team has, wants and had: from the jobs and the events.

import type { Stretch } from './spans';
import { holding, series, type Point } from './spans';
import { holds, isOver, teamOf } from './store';
import type { Job } from './types';

export interface Team {
  name: string;
  running: number;
  waiting: number;
  /** Devices it holds, and devices its waiting jobs ask for. */
  held: number;
  wanted: number;
  /** What it pays now: devices times prices. */
  pays: number;
  /** Device-hours of all its jobs that are known. */
  hours: number;
  /** Mean seconds until its jobs first started; those that wait count with their wait so far. */
  wait: number | null;
  met: number;
  missed: number;
}

export function teams(jobs: Iterable<Job>, by: (job: Job) => string = teamOf, prices: Record<string, number> = {}, now = 0, ran = (job: Job) => job.executed_s): Team[] {
  const found = new Map<string, Team & { waits: number; started: number }>();
  for (const job of jobs) {
    const name = by(job);
    const team = found.get(name) ?? { name, running: 0, waiting: 0, held: 0, wanted: 0, pays: 0, hours: 0, wait: null, met: 0, missed: 0, waits: 0, started: 0 };
    found.set(name, team);
    if (holds(job)) {
      team.running++;
      team.held += job.gpus;
      team.pays += job.gpus * (prices[job.kind ?? ''] ?? 0);
    } else if (!isOver(job)) {
      team.waiting++;
      team.wanted += job.gpus;
    }
    team.hours += (ran(job) * job.gpus) / 3600;
    const waited = waitOf(job, now);
    if (waited !== null) { team.waits += waited; team.started++; }
    if (job.deadline !== null && (isOver(job) || job.deadline < now)) {
      if (job.state === 'succeeded' && job.ended_at! <= job.deadline) team.met++;
      else team.missed++;
    }
  }
  const all = [...found.values()].map(({ waits, started, ...team }) => ({ ...team, wait: started > 0 ? waits / started : null }));
  return all.sort((a, b) => b.held - a.held || b.hours - a.hours || (a.name < b.name ? -1 : 1));
}

/** How long a job waited for its first start, or has so far; nothing where it ended without one. */
function waitOf(job: Job, now: number): number | null {
  if (job.started_at !== null) return job.started_at - job.submitted_at;
  return isOver(job) ? null : Math.max(0, now - job.submitted_at);
}

/** Devices held by each team over time. */
export function heldOverTime(list: Stretch[], names: string[], nameOf: (job: number) => string | undefined, gpusOf: (job: number) => number, from: number, to: number): Point[] {
  const at = new Map(names.map((name, n) => [name, n]));
  return series(list, from, to, 120, names.length, (stretch) => {
    const which = at.get(nameOf(stretch.job) ?? '');
    if (which === undefined || !holding(stretch.doing)) return null;
    return [which, stretch.gpus || gpusOf(stretch.job)];
  });
}

/** How even shares are among those who want devices: 1 when all have the same, 1/n when one has all (Jain). */
export function evenness(shares: number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  const squares = shares.reduce((a, b) => a + b * b, 0);
  return squares > 0 ? (sum * sum) / (shares.length * squares) : 1;
}

/** Evenness over time, among the teams that hold or wait at each instant. */
export function evennessOverTime(list: Stretch[], names: string[], nameOf: (job: number) => string | undefined, gpusOf: (job: number) => number, from: number, to: number): Point[] {
  const at = new Map(names.map((name, n) => [name, n]));
  const held = heldOverTime(list, names, nameOf, gpusOf, from, to);
  const present = series(list, from, to, 120, names.length, (stretch) => {
    const which = at.get(nameOf(stretch.job) ?? '');
    return which === undefined ? null : [which, 1];
  });
  return held.map(({ time, values }, n) => ({ time, values: [evenness(values.filter((_, which) => (present[n]?.values[which] ?? 0) > 0))] }));
}
