// Files of `yard sim`: the event log (`--events`) as leases over time, and the report (`-o json`, `--html`).

import { reportIn, type Report } from './report';
import { holding, series, stretches, type Point } from './spans';
import type { Fact, Place } from './types';

export interface Lease {
  jobs: number[];
  places: { node: number; devices: number[] }[];
  from: number;
  to: number;
  /** Its place among those who have the same devices, and how many they are, where each has a lease of its own. */
  lane?: [number, number];
}

export interface MapNode { name: string; kind: string; devices: number }

export interface Recording {
  name: string;
  leases: Lease[];
  /** Jobs that waited and that ran, from the beginning to a time. */
  points: (end: number) => Point[];
  /** What a job is called, where it is known. */
  describe?: (job: number) => string;
  /** Its colour, where jobs are not only told apart. */
  hue?: ((job: number) => string) | undefined;
  /** Until when the leases are whole, where they were cut. */
  until?: number | null;
  /** The cluster, where it is known node by node. */
  cluster?: MapNode[];
  /** How many devices each node has, as far as they were ever used or the cluster is known. */
  nodes: number[];
  /** When nodes were away: node, from, to. */
  away: [number, number, number][];
  end: number;
  jobs: number;
}

/** What a job is called. */
export function called(recording: Recording, job: number): string {
  return recording.describe?.(job) ?? `job ${job}`;
}

/** Its colour. */
export function hueOf(recording: Recording, job: number): string {
  return recording.hue?.(job) ?? `hue-${job % 8}`;
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
export function read(name: string, text: string): { runs: Run[] } | { recording: Recording } | { report: Report } {
  const first = text.slice(0, 200).trimStart();
  if (/^\{"t":/.test(first)) return { recording: record(name, text) };
  const report = /^<!doctype html>/i.test(first) ? reportIn(text) : null;
  if (report) return { report };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${name} is neither an event file (yard sim --events) nor a report (yard sim -o json or --html).`);
  }
  const runs = (value as { runs?: unknown } | null)?.runs;
  if (!Array.isArray(runs)) throw new Error(`${name} has no "runs": open the output of yard sim -o json.`);
  return { runs: runs as Run[] };
}

function record(name: string, text: string): Recording {
  const out: Recording = { name, leases: [], points: () => [], nodes: [], away: [], end: 0, jobs: 0 };
  const open = new Map<number, Lease>();
  const gone = new Map<number, number>();
  const facts: Fact[] = [];
  text.split('\n').forEach((source, at) => {
    if (source === '') return;
    let line: Line;
    try {
      line = JSON.parse(source) as Line;
    } catch {
      throw new Error(`${name}, line ${at + 1}: not JSON. Is the file complete?`);
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
  const did = stretches(facts);
  out.points = (end) => series(did, 0, end, 240, 2, (stretch) => [holding(stretch.doing) ? 1 : 0, 1]);
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

export interface Group { kind: string; nodes: { at: number; name: string; devices: number }[] }

/** Nodes by kind: as the recording or one of the clusters has them, else as far as they were ever used. */
export function groupsOf(recording: Recording, clusters: string[]): Group[] {
  const groups = new Map<string, Group>();
  nodesOf(recording, clusters).forEach(({ name, kind, devices }, at) => {
    const group = groups.get(kind) ?? { kind, nodes: [] };
    groups.set(kind, group);
    group.nodes.push({ at, name, devices });
  });
  return [...groups.values()];
}

function nodesOf(recording: Recording, clusters: string[]): MapNode[] {
  if (recording.cluster) return recording.cluster;
  for (const spec of clusters) {
    const nodes = clusterOf(spec)?.flatMap(({ kind, nodes, each }) => Array.from({ length: nodes }, (_, n) => ({ name: `${kind}-${n}`, kind, devices: each })));
    if (nodes && nodes.length === recording.nodes.length && nodes.every(({ devices }, n) => (recording.nodes[n] ?? 0) <= devices)) return nodes;
  }
  const most = Math.max(1, ...Array.from(recording.nodes, (each) => each ?? 0));
  return Array.from(recording.nodes, (_, n) => ({ name: `node-${n}`, kind: 'node', devices: most }));
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
