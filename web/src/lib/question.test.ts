import { expect, test } from 'vitest';
import { EMPTY, fieldsOf, instant, request, seconds } from './question';

test('spans are written as people write them', () => {
  expect(['90', '30s', '45min', '2h', '1h 30m', '1.5h', '2d'].map(seconds)).toEqual([90, 30, 2700, 7200, 5400, 5400, 172800]);
  expect(['', 'soon', '2 weeks', '-1h', 'h'].map(seconds)).toEqual([null, null, null, null, null]);
});

test('a deadline is a span from now or the next time of day', () => {
  const noon = new Date(2026, 4, 6, 12, 0).getTime() / 1000;
  expect(instant('6h', noon)).toBe(noon + 6 * 3600);
  expect(instant('18:00', noon)).toBe(noon + 6 * 3600);
  expect(instant('11:00', noon)).toBe(noon + 23 * 3600);
  expect(instant('tomorrow', noon)).toBeNull();
});

test('fields become a request, over the one of another job', () => {
  expect(request({ ...EMPTY, gpus: '8', kinds: ['h100'], deadline: '2h' }, null, 100)).toEqual(
    { command: ['true'], name: 'what-if', gpus: 8, kinds: ['h100'], duration_s: 3600, deadline: 7300 },
  );
  const base = { command: ['train'], name: 'bert', gpus: 4, duration_s: 60, priority: 3, kinds: [] };
  expect(request(fieldsOf(base), base, 0)).toEqual({ command: ['train'], name: 'bert', gpus: 4, duration_s: 60, priority: 3 });
  expect(() => request({ ...EMPTY, gpus: 'two' }, null, 0)).toThrow('Devices: a whole number.');
  expect(() => request({ ...EMPTY, duration: 'long' }, null, 0)).toThrow('How long');
});
