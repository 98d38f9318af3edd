// What the page knows: the board as the server sends it, and what follows from it. Whoever shows something of it is
// told a few times a second at most, however much changes.

import { useEffect, useState } from 'preact/hooks';
import { byName } from './format';
import type { Link } from './watch';
import type { Change, Job, Me, Node, Status } from './types';

const OVER = new Set(['succeeded', 'failed', 'cancelled', 'rejected']);
const HOLDING = new Set(['starting', 'running', 'suspending']);
const NOTIFY_MS = 80;

export function isOver(job: Job): boolean {
  return OVER.has(job.state);
}

export function holds(job: Job): boolean {
  return HOLDING.has(job.state);
}

/** Who a job counts for. */
export function teamOf(job: Job): string {
  return job.tenant ?? job.user;
}

export class Store {
  jobs = new Map<number, Job>();
  nodes = new Map<string, Node>();
  status: Status | null = null;
  me: Me | null = null;
  link: Link = { state: 'connecting' };
  /** Whether there was a first look at everything. */
  ready = false;
  /** How far the server's clock is ahead of this one, in seconds. */
  ahead = 0;
  /** When each node was last heard of, by the server's clock. */
  heard = new Map<string, number>();
  /** When each job was last told of, by the server's clock. */
  private inOrder: string[] | null = null;
  private seen = new Map<number, number>();
  private listeners = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | null = null;

  apply(change: Change): void {
    this.ahead = change.time - Date.now() / 1000;
    if (change.whole) {
      const gone = new Set(change.jobs.map((job) => job.id));
      for (const [id, job] of this.jobs) if (!isOver(job) && !gone.has(id)) this.jobs.delete(id);
      this.nodes.clear();
      this.inOrder = null;
    }
    for (const job of change.jobs) {
      this.jobs.set(job.id, job);
      this.seen.set(job.id, change.time);
    }
    for (const node of change.nodes) {
      if (!this.nodes.has(node.name)) this.inOrder = null;
      this.nodes.set(node.name, node);
      if (node.heard_s !== null) this.heard.set(node.name, change.time - node.heard_s);
    }
    if (change.status) this.status = change.status;
    this.ready = true;
    this.tell();
  }

  /** Jobs of the past, where nothing newer is known of them. */
  addPast(jobs: Job[]): void {
    for (const job of jobs) if (!this.jobs.has(job.id)) this.jobs.set(job.id, job);
    this.tell();
  }

  /** The nodes in the order of their names, which changes seldom and takes a while to find. */
  nodesByName(): Node[] {
    this.inOrder ??= [...this.nodes.keys()].sort(byName);
    return this.inOrder.map((name) => this.nodes.get(name)!);
  }

  setLink(link: Link): void {
    this.link = link;
    this.tell();
  }

  /** How long a job has held devices: what was told, and what went by since. */
  ran(job: Job, now = this.now()): number {
    return job.executed_s + (holds(job) && job.starts > 0 ? Math.max(0, now - (this.seen.get(job.id) ?? now)) : 0);
  }

  /** The time on the server's clock. */
  now(): number {
    return Date.now() / 1000 + this.ahead;
  }

  tell(): void {
    if (this.timer !== null) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.listeners.forEach((listener) => listener());
    }, NOTIFY_MS);
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export const store = new Store();

/** Shows the caller anew when the store changed. */
export function useStore(): Store {
  const [, turn] = useState(0);
  useEffect(() => store.listen(() => turn((n) => n + 1)), []);
  return store;
}

/** Shows the caller anew each so many seconds, for times that go by. */
export function useClock(seconds = 1): number {
  const [, turn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => turn((n) => n + 1), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return store.now();
}
