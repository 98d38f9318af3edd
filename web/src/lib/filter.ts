// Which jobs are shown, and in which order; all of it stands in the address.

import { risk } from './outlook';
import { holds, isOver, teamOf } from './store';
import type { Job } from './types';

export interface Filter {
  q: string;
  state: string;
  user: string;
  kind: string;
  deadline: string;
  sort: string;
}

export function filterOf(query: URLSearchParams): Filter {
  const value = (name: string) => query.get(name) ?? '';
  return {
    q: value('q').trim().toLowerCase(),
    state: value('state'),
    user: value('user'),
    kind: value('kind'),
    deadline: value('deadline'),
    sort: value('sort'),
  };
}

/** A job may miss its deadline, or likely does. */
export function atRisk(job: Job): boolean {
  return risk(job) !== null;
}

function inState(job: Job, state: string): boolean {
  switch (state) {
    case '': return true;
    case 'open': return !isOver(job);
    case 'waiting': return !isOver(job) && !holds(job);
    case 'over': return isOver(job);
    default: return job.state === state;
  }
}

function inDeadline(job: Job, which: string): boolean {
  if (which === 'any') return job.deadline !== null;
  if (which === 'risk') return atRisk(job);
  if (which === 'missed') return job.deadline !== null && job.ended_at !== null && job.ended_at > job.deadline;
  return true;
}

export function matches(job: Job, filter: Filter): boolean {
  if (!inState(job, filter.state) || !inDeadline(job, filter.deadline)) return false;
  if (filter.user && job.user !== filter.user && teamOf(job) !== filter.user) return false;
  if (filter.kind && job.kind !== filter.kind) return false;
  if (!filter.q) return true;
  const text = `${job.id} ${job.name} ${job.user} ${job.tenant ?? ''} ${job.nodes.join(' ')}`.toLowerCase();
  return filter.q.split(/\s+/).every((word) => text.includes(word));
}

const ORDERS: Record<string, (job: Job) => number | string> = {
  id: (job) => job.id,
  name: (job) => job.name,
  user: (job) => job.user,
  state: (job) => RANK[job.state] ?? 9,
  devices: (job) => job.gpus,
  progress: (job) => (job.steps ? (job.step ?? 0) / job.steps : -1),
  end: (job) => job.ended_at ?? job.estimate?.end?.mid ?? Infinity,
  deadline: (job) => job.deadline ?? Infinity,
};

const RANK: Record<string, number> = {
  running: 0, starting: 1, suspending: 2, suspended: 3, pending: 4, failed: 5, rejected: 6, succeeded: 7, cancelled: 8,
};

/** Those that match, newest first where nothing else is asked for; `-name` turns an order round. */
export function select(jobs: Iterable<Job>, filter: Filter): Job[] {
  const found: Job[] = [];
  for (const job of jobs) if (matches(job, filter)) found.push(job);
  const back = filter.sort.startsWith('-');
  const key = ORDERS[back ? filter.sort.slice(1) : filter.sort];
  if (!key) return found.sort((a, b) => b.id - a.id);
  const sign = back ? -1 : 1;
  return found.sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === y) return b.id - a.id;
    return (x < y ? -1 : 1) * sign;
  });
}
