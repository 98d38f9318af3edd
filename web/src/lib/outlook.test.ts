import { expect, test } from 'vitest';
import { due, likelyEnd, risk, riskText } from './outlook';
import { job } from './testing';
import type { Estimate } from './types';

const ends = (low: number, mid: number, high: number | null): Estimate => ({ made_at: 0, start: null, end: { low, mid, high }, start_unknown: null, end_unknown: null });

test('one figure for the end: the estimate, and the speed only where there is none', () => {
  const running = job({ state: 'running', steps: 100, step: 40, rate: 2 });
  expect(likelyEnd(running, 1000)).toBe(1030);
  expect(likelyEnd({ ...running, estimate: ends(1100, 1200, 1300) }, 1000)).toBe(1200);
  expect(likelyEnd({ ...running, estimate: ends(900, 950, 1300) }, 1000)).toBe(1000);
  expect(likelyEnd({ ...running, state: 'suspended' }, 1000)).toBeNull();
  expect(likelyEnd(job(), 1000)).toBeNull();
});

test('red only where the likely end is after the deadline', () => {
  const of = (estimate: Estimate | null, more = {}) => risk(job({ state: 'running', deadline: 1000, estimate, ...more }));
  expect(of(ends(800, 900, 950))).toBeNull();
  expect(of(ends(800, 900, 1100))).toBe('tight');
  expect(of(ends(800, 900, null))).toBe('tight');
  expect(of(ends(800, 1001, 1100))).toBe('late');
  expect(of(ends(800, 900, 950), { at_risk: true })).toBe('tight');
  expect(of(null)).toBeNull();
  expect(of(null, { earliest: 1200 })).toBe('late');
  expect(of(ends(1100, 1200, 1300), { state: 'succeeded' })).toBeNull();
  expect(riskText(job({ deadline: 1000, estimate: ends(800, 1600, 1700) }), 0)).toBe('likely 10 min late');
  expect(riskText(job({ deadline: 1000, estimate: ends(800, 900, 1700) }), 0)).toBe('likely in 15 min, may be late');
  expect(riskText(job({ deadline: 1000, earliest: 1200 }), 0)).toBe('cannot be met');
});

test('a time that has come is due, not zero seconds away', () => {
  expect([due(100, 100), due(90, 100), due(160, 100)]).toEqual(['any moment', 'any moment', 'in 60 s']);
});
