import { expect, test } from 'vitest';
import { nodeQuestion, NO_CHANGE, replayQuestion, EMPTY, fieldsOf, instant, request, seconds } from './question';

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
  expect(() => request({ ...EMPTY, duration: 'long' }, null, 0)).toThrow('Duration');
});

test('a question about a node says what happens to it and when', () => {
  const fields = { node: 'n1', what: 'drain' as const, evict: true, at: '' };
  expect(nodeQuestion(fields, 1000)).toEqual({ drain: 'n1', evict: true });
  expect(nodeQuestion({ ...fields, what: 'fail', at: '1h' }, 1000)).toEqual({ fail: 'n1', at: 4600 });
  expect(() => nodeQuestion({ ...fields, node: '' }, 0)).toThrow('choose one');
  expect(() => nodeQuestion({ ...fields, at: 'soon' }, 0)).toThrow('When');
});

test('a question about the past has a length and changes', () => {
  expect(replayQuestion('7d', [{ ...NO_CHANGE, policy: ' srtf ', round: '2min', add: 'h100:2x8, a100:4', remove: 'n1' }])).toEqual({
    history_s: 7 * 86400, alternatives: [{ policy: 'srtf', round_s: 120, add: ['h100:2x8', 'a100:4'], remove: ['n1'] }],
  });
  expect(replayQuestion('90min', [NO_CHANGE])).toEqual({ history_s: 5400, alternatives: [{ policy: null, round_s: null, add: [], remove: [] }] });
  expect(() => replayQuestion('', [])).toThrow('Period');
  expect(() => replayQuestion('1d', [{ ...NO_CHANGE, round: 'often' }])).toThrow('Round');
});
