import { expect, test } from 'vitest';
import { atRisk, filterOf, select } from './filter';
import { job } from './testing';

const JOBS = [
  job({ id: 1, name: 'Bert large', user: 'ada', tenant: 'vision', state: 'running', kind: 'h100', gpus: 8, nodes: ['n-1[0]'] }),
  job({ id: 2, name: 'gpt', user: 'bob', state: 'pending', deadline: 50, estimate: { made_at: 0, start: null, end: { low: 10, mid: 40, high: 60 }, start_unknown: null, end_unknown: null } }),
  job({ id: 3, name: 'gpt', user: 'ada', state: 'succeeded', ended_at: 70, deadline: 60 }),
  job({ id: 4, name: 'vit', user: 'cat', state: 'suspended', gpus: 2 }),
];

function found(query: string): number[] {
  return select(JOBS, filterOf(new URLSearchParams(query))).map((job) => job.id);
}

test('an address says which jobs, newest first', () => {
  expect(found('')).toEqual([4, 3, 2, 1]);
  expect(found('state=open')).toEqual([4, 2, 1]);
  expect(found('state=waiting')).toEqual([4, 2]);
  expect(found('state=over')).toEqual([3]);
  expect(found('state=running&user=vision')).toEqual([1]);
  expect(found('kind=h100')).toEqual([1]);
  expect(found('q=ADA+gpt')).toEqual([3]);
  expect(found('q=n-1')).toEqual([1]);
  expect(found('deadline=any')).toEqual([3, 2]);
  expect(found('deadline=missed')).toEqual([3]);
  expect(found('deadline=risk')).toEqual([2]);
});

test('an order may be turned round, and equal ones are newest first', () => {
  expect(found('sort=name')).toEqual([1, 3, 2, 4]);
  expect(found('sort=-devices')).toEqual([1, 4, 3, 2]);
  expect(found('sort=nonsense')).toEqual([4, 3, 2, 1]);
});

test('a deadline is at risk when the late end of the estimate is behind it', () => {
  const by = (high: number | null) => job({ deadline: 50, estimate: { made_at: 0, start: null, end: { low: 1, mid: 2, high }, start_unknown: null, end_unknown: null } });
  expect([by(49), by(51), by(null)].map(atRisk)).toEqual([false, true, true]);
  expect(atRisk(job({ deadline: 50, earliest: 60 }))).toBe(true);
  expect(atRisk(job({ estimate: { made_at: 0, start: null, end: null, start_unknown: null, end_unknown: null } }))).toBe(false);
});
