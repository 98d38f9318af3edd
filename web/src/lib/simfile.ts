// Files of `yard sim`: the event log (`--events`) as leases and stretches over time, and the report (`-o json`).

import { stretches, type Stretch } from './spans';
import type { Fact, Place } from './types';

export interface Lease { jobs: number[]; places: { node: number; devices: number[] }[]; from: number; to: number }

export interface Recording {
  name: string;
  leases: Lease[];
  stretches: Stretch[];
  /** How many devices each node has, as far as they were ever used or the cluster is known. */
  nodes: number[];
  /** When nodes were away: node, from, to. */
  away: [number, number, number][];
  end: number;
  jobs: number;
}

export interface Run { [key: string]: unknown; policy: string; cluster: string }

export interface Part { kind: string; nodes: number; each: number }

/** `kind:NODESxDEVICES` or `kind:DEVICES`, with commas between; nothing where it is something else, such as a file. */
export function clusterOf(spec: string): Part[] | null {
  const parts: Part[] = [];
  for (const piece of spec.split(',')) {
    const match = /^([\w.-]+):(\d+)(?:x(\d+))?$/.exec(piece.trim());
    if (!match) return null;
    parts.push({ kind: match[1]!, nodes: Number(match[2]), each: Number(match[3] ?? 1) });
  }
  return parts;
}

/** `0:0-3+6 4:1`: node 0 with devices 0 to 3 and 6, node 4 with device 1. */
export function devicesOf(text: string): { node: number; devices: number[] }[] {
  return text.split(' ').filter(Boolean).map((slice) => {
    const [node = '', list = ''] = slice.split(':');
    const devices: number[] = [];
    for (const run of list.split('+')) {
      const [first = 0, last = first] = run.split('-').map(Number);
      for (let device = first; device <= last && devices.length < 1024; device++) devices.push(device);
    }
    return { node: Number(node), devices };
  });
}

interface Line { t: number; event: string; job?: number; jobs?: number[]; lease?: number; devices?: string; node?: number; change?: string; why?: string; to?: number[]; outcome?: string; state?: string }

/** What is in a file: a report, or a recording. Says in a sentence what it cannot read. */
export function read(name: string, text: string): { runs: Run[] } | { recording: Recording } {
  const first = text.slice(0, 200).trimStart();
  if (/^\{"t":/.test(first)) return { recording: record(name, text) };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${name} is neither an event file (yard sim --events) nor a report (yard sim -o json).`);
  }
  const runs = (value as { runs?: unknown } | null)?.runs;
  if (!Array.isArray(runs)) throw new Error(`${name} has no "runs": open what yard sim -o json printed.`);
  return { runs: runs as Run[] };
}

function record(name: string, text: string): Recording {
  const out: Recording = { name, leases: [], stretches: [], nodes: [], away: [], end: 0, jobs: 0 };
  const open = new Map<number, Lease>();
  const gone = new Map<number, number>();
  const facts: Fact[] = [];
  text.split('\n').forEach((source, at) => {
    if (source === '') return;
    let line: Line;
    try {
      line = JSON.parse(source) as Line;
    } catch {
      throw new Error(`${name}, line ${at + 1}: it is not JSON. Was the file cut off?`);
    }
    out.end = Math.max(out.end, line.t);
    if (line.event === 'granted') grant(out, open, facts, line);
    else if (line.event === 'freed') free(open, line);
    else if (line.event === 'node') node(out, gone, line);
    else if (line.job !== undefined) facts.push(told(line, line.job));
    if (line.event === 'submitted') out.jobs++;
  });
  for (const lease of open.values()) lease.to = out.end;
  for (const [node, from] of gone) out.away.push([node, from, Infinity]);
  out.stretches = stretches(facts);
  return out;
}

function told(line: Line, job: number): Fact {
  const detail: Fact['detail'] = {};
  if (line.why) detail.why = line.why;
  if (line.to) detail.to = line.to;
  if (line.outcome) detail.outcome = line.outcome;
  return { id: 0, time: line.t, event: line.event, job, node: null, detail };
}

function grant(out: Recording, open: Map<number, Lease>, facts: Fact[], line: Line): void {
  const places = devicesOf(line.devices ?? '');
  const lease: Lease = { jobs: line.jobs ?? [], places, from: line.t, to: Infinity };
  out.leases.push(lease);
  open.set(line.lease ?? -1, lease);
  let gpus = 0;
  for (const { node, devices } of places) {
    gpus += devices.length;
    out.nodes[node] = Math.max(out.nodes[node] ?? 0, ...devices.map((device) => device + 1));
  }
  const placement: Place[] = [];
  for (const job of lease.jobs) facts.push({ id: 0, time: line.t, event: 'granted', job, node: null, detail: { gpus, placement } });
}

function free(open: Map<number, Lease>, line: Line): void {
  const lease = open.get(line.lease ?? -1);
  if (lease) lease.to = line.t;
  open.delete(line.lease ?? -1);
}

function node(out: Recording, gone: Map<number, number>, line: Line): void {
  const at = line.node ?? 0;
  out.nodes[at] ??= 0;
  if (line.change === 'failed' || line.change === 'left') {
    if (!gone.has(at)) gone.set(at, line.t);
  } else if (line.change === 'joined' && gone.has(at)) {
    out.away.push([at, gone.get(at)!, line.t]);
    gone.delete(at);
  }
}

/** Who holds each device of each node at a time. */
export function heldAt(recording: Recording, time: number): Map<number, Map<number, number[]>> {
  const held = new Map<number, Map<number, number[]>>();
  for (const lease of recording.leases) {
    if (lease.from > time) break;
    if (lease.to <= time) continue;
    for (const { node, devices } of lease.places) {
      const own = held.get(node) ?? new Map<number, number[]>();
      held.set(node, own);
      for (const device of devices) own.set(device, [...(own.get(device) ?? []), ...lease.jobs]);
    }
  }
  return held;
}
