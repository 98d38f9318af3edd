import { expect, test } from 'vitest';
import type { Group, Lease } from '../lib/simfile';
import { band, hit, rowsOf, within } from './gantt-layout';

const GROUPS: Group[] = [{ kind: 'a', nodes: [{ at: 1, name: 'a-0', devices: 4 }] }, { kind: 'b', nodes: [{ at: 0, name: 'b-0', devices: 2 }] }];
const lease = (jobs: number[], node: number, devices: number[], from: number, to: number): Lease => ({ jobs, places: [{ node, devices }], from, to });

test('devices next to each other are one strip, in the row of their node', () => {
  const { rows } = rowsOf(GROUPS, [lease([7], 1, [0, 1, 3], 0, 5), lease([8], 0, [1], 2, 3)]);
  expect(rows.map((row) => row.strips.map(({ first, devices }) => [first, devices]))).toEqual([[[0, 2], [3, 1]], [[1, 1]]]);
  expect(rows[1]!.top).toBe(rows[0]!.top + rows[0]!.height);
});

test('who is at a time and a place is found, also among those who share it', () => {
  const rows = rowsOf(GROUPS, [lease([1, 2], 1, [0, 1], 0, 5), lease([3], 1, [0, 1], 5, 9)]);
  const row = rows.rows[0]!;
  const [top, height] = band(row, row.strips[0]!, 1);
  expect([hit(rows, 1, row.top + 1)?.job, hit(rows, 1, top + height / 2)?.job, hit(rows, 5, row.top + 1)?.job]).toEqual([1, 2, 3]);
  expect([hit(rows, 9, row.top + 1), hit(rows, 1, row.top + row.height - 2), hit(rows, 1, 5)]).toEqual([null, null, null]);
});

test('a span stays within the whole; all of it is none', () => {
  expect(within(-5, 10, 100)).toEqual([0, 15]);
  expect(within(90, 120, 100)).toEqual([70, 100]);
  expect(within(0, 100, 100)).toBeNull();
  expect(within(5, 5, 100)![1] - within(5, 5, 100)![0]).toBeCloseTo(0.01);
});
