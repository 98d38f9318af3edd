// The device map of the live cluster: nodes and devices as tiles and cells, coloured by who holds them.

import { Palette, ranked } from './colors';
import { percent } from './format';
import { teamOf, type Store } from './store';
import type { Job, Node } from './types';
import type { Cell, Spot, Tile } from '../parts/map-layout';

export type By = 'user' | 'team' | 'use';

export interface Group { kind: string; tiles: Tile[]; nodes: Node[]; held: number; total: number; busy: number | null }

export function nameOf(job: Job, by: By): string {
  return by === 'team' ? teamOf(job) : job.user;
}

/** Colours for whoever holds or wants most. */
export function palette(jobs: Iterable<Job>, by: By): Palette {
  const weights = new Map<string, number>();
  for (const job of jobs) {
    if (job.ended_at !== null) continue;
    const name = nameOf(job, by);
    weights.set(name, (weights.get(name) ?? 0) + job.gpus);
  }
  return new Palette(ranked(weights));
}

/** Where jobs lie frozen: node and device, as `node[3]`, to the jobs that do. */
export function frozenAt(jobs: Iterable<Job>): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const job of jobs) {
    for (const place of job.frozen) {
      const match = /^(.*)\[([\d,]+)\]$/.exec(place);
      for (const device of match?.[2]!.split(',') ?? []) {
        const at = `${match![1]}[${device}]`;
        found.set(at, [...(found.get(at) ?? []), job.id]);
      }
    }
  }
  return found;
}

/** Nodes by kind; kinds with most devices first. A node with two kinds stands in both. */
export function groups(store: Store, by: By, colors: Palette, frozen: Map<string, number[]>): Group[] {
  const found = new Map<string, Group & { known: number; sum: number }>();
  for (const node of store.nodesByName()) {
    const kinds = new Map<string, Cell[]>();
    for (const device of node.devices) {
      const cells = kinds.get(device.kind) ?? [];
      kinds.set(device.kind, cells);
      cells.push({
        hues: device.jobs.map((id) => hue(store.jobs.get(id), by, colors)),
        busy: device.busy,
        broken: device.problem !== null,
        idle: device.idle_jobs.length > 0 && device.idle_jobs.length === device.jobs.length,
        frozen: frozen.has(`${node.name}[${device.index}]`),
      });
    }
    for (const [kind, cells] of kinds) {
      const group = found.get(kind) ?? { kind, tiles: [], nodes: [], held: 0, total: 0, busy: null, known: 0, sum: 0 };
      found.set(kind, group);
      group.tiles.push({ name: node.name, state: node.state, cells });
      group.nodes.push(node);
      group.total += cells.length;
      for (const cell of cells) {
        if (cell.hues.length > 0) group.held++;
        if (cell.busy !== null) { group.known++; group.sum += cell.busy; }
      }
      group.busy = group.known > 0 ? group.sum / group.known : null;
    }
  }
  return [...found.values()].sort((a, b) => b.total - a.total || (a.kind < b.kind ? -1 : 1));
}

function hue(job: Job | undefined, by: By, colors: Palette): string {
  if (by === 'use') return 'hue-0';
  return job ? colors.of(nameOf(job, by)) : 'hue-other';
}

/** What a cell says when it is looked at. */
export function tell(store: Store, group: Group, spot: Spot, frozen: Map<string, number[]>): string[] {
  const node = group.nodes[spot.tile];
  const device = node?.devices.filter((device) => device.kind === group.kind)[spot.cell];
  if (!node || !device) return [];
  const lines = [`${node.name} · ${device.kind} ${device.index}`];
  if (node.state !== 'up') lines.push(node.reason ? `${node.state}: ${node.reason}` : node.state);
  if (device.problem) lines.push(device.problem);
  for (const id of device.jobs) {
    const job = store.jobs.get(id);
    const idle = device.idle_jobs.includes(id) ? ', idle' : '';
    lines.push(job ? `job ${id} ${job.name} (${job.user})${idle}` : `job ${id} of another user`);
  }
  if (device.jobs.length === 0 && !device.problem) lines.push('free');
  for (const id of frozen.get(`${node.name}[${device.index}]`) ?? []) lines.push(`job ${id} is frozen here`);
  const use = [
    device.busy === null ? null : `${percent(device.busy)} busy`,
    device.memory_used_mib === null || !device.memory_mib ? null : `${percent(device.memory_used_mib / device.memory_mib)} memory`,
    device.temperature_c === null ? null : `${device.temperature_c} °C`,
    device.throttled,
  ].filter(Boolean);
  if (use.length > 0) lines.push(use.join(' · '));
  return lines;
}
