import { expect, test } from 'vitest';
import { losses, rates } from './pace';

test('speed is steps over time, and none between two starts', () => {
  const points = [{ time: 0, step: 0, start: 1 }, { time: 10, step: 20, start: 1 }, { time: 30, step: 10, start: 2 }, { time: 40, step: 60, start: 2 }];
  expect(rates(points, 8).map(({ time, values }) => [time, values[0]])).toEqual([[0, 2], [5, 2], [10, 2], [15, 0], [20, 0], [25, 0], [30, 0], [35, 5], [40, 5]]);
  expect(rates(points.slice(0, 1))).toEqual([]);
});

test('losses are drawn over steps, what was done twice as it was the last time', () => {
  const point = (step: number, start: number, loss?: number) => ({ time: step, step, start, ...(loss === undefined ? {} : { loss }) });
  const drawn = losses([point(0, 1, 9), point(50, 1), point(100, 1, 4), point(100, 2, 5), point(200, 2, 1)], 4);
  expect(drawn.map(({ time, values }) => [time, values[0]])).toEqual([[0, 9], [50, 7], [100, 5], [150, 3], [200, 1]]);
  expect(losses([point(0, 1, 9), point(10, 1, 8)])).toEqual([]);
});
