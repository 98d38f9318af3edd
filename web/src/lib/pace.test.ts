import { expect, test } from 'vitest';
import { rates } from './pace';

test('speed is steps over time, and none between two starts', () => {
  const points = [{ time: 0, step: 0, start: 1 }, { time: 10, step: 20, start: 1 }, { time: 30, step: 10, start: 2 }, { time: 40, step: 60, start: 2 }];
  expect(rates(points, 8).map(({ time, values }) => [time, values[0]])).toEqual([[0, 2], [5, 2], [10, 2], [15, 0], [20, 0], [25, 0], [30, 0], [35, 5], [40, 5]]);
  expect(rates(points.slice(0, 1))).toEqual([]);
});
