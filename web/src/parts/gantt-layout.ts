// Where each bar of a chart of nodes over time stands, and which one is under the pointer. Pure, so that it can be tested.

import type { Group, Lease } from '../lib/simfile';

/** Devices of one node that one lease has, next to each other. */
export interface Strip { lease: Lease; first: number; devices: number }

export interface Row { name: string; kind: string; devices: number; top: number; height: number; strips: Strip[] }

export interface Rows { rows: Row[]; total: number; left: number }

/** Up to so many devices each has a lane of its own; beyond, a node is one thin row. */
const LANES_MAX = 260;
const AXIS = 22;

export function rowsOf(groups: Group[], leases: Lease[]): Rows {
  const byNode = new Map<number, Strip[]>();
  for (const lease of leases) {
    for (const place of lease.places) {
      const strips = byNode.get(place.node) ?? [];
      byNode.set(place.node, strips);
      strips.push(...stripsOf(lease, place.devices));
    }
  }
  const nodes = groups.flatMap((group) => group.nodes.map((node) => ({ ...node, kind: group.kind })));
  const devices = nodes.reduce((sum, node) => sum + Math.max(1, node.devices), 0);
  const lane = devices <= LANES_MAX ? Math.max(5, Math.min(10, Math.floor(440 / Math.max(1, devices)))) : 0;
  let top = AXIS;
  const rows = nodes.map(({ at, name, kind, devices }) => {
    const height = Math.max(14, devices * lane) + 1;
    const row: Row = { name, kind, devices, top, height, strips: byNode.get(at) ?? [] };
    top += height;
    return row;
  });
  const longest = nodes.reduce((most, node) => Math.max(most, node.name.length), 0);
  return { rows, total: top, left: Math.min(150, Math.max(56, longest * 7 + 14)) };
}

function stripsOf(lease: Lease, devices: number[]): Strip[] {
  const strips: Strip[] = [];
  for (const device of devices) {
    const last = strips[strips.length - 1];
    if (last && last.first + last.devices === device) last.devices++;
    else strips.push({ lease, first: device, devices: 1 });
  }
  return strips;
}

/** Top and height of one of a strip's jobs in its row. */
export function band(row: Row, strip: Strip, job: number): [number, number] {
  const each = (row.height - 1) / Math.max(1, row.devices);
  const [lane, lanes] = strip.lease.lane ?? [job, strip.lease.jobs.length];
  const whole = each * strip.devices;
  return [row.top + each * strip.first + (whole * lane) / lanes, whole / lanes];
}

export interface Hit { row: Row; strip: Strip; job: number }

/** Whose bar is at a time and a height. */
export function hit(rows: Rows, time: number, y: number): Hit | null {
  const row = rows.rows.find((row) => y >= row.top && y < row.top + row.height);
  if (!row) return null;
  for (const strip of row.strips) {
    if (strip.lease.from > time) break;
    if (strip.lease.to <= time) continue;
    const job = strip.lease.jobs.findIndex((_, n) => { const [top, height] = band(row, strip, n); return y >= top && y < top + height; });
    if (job >= 0) return { row, strip, job: strip.lease.jobs[job]! };
  }
  return null;
}

/** A span of time within the whole, no narrower than a ten-thousandth of it. */
export function within(from: number, to: number, end: number): [number, number] | null {
  const width = Math.max(to - from, end / 10_000);
  if (width >= end) return null;
  const start = Math.max(0, Math.min(from, end - width));
  return [start, start + width];
}
