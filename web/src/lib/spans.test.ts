import { expect, test } from 'vitest';
import { holding, series, stretches } from './spans';
import { fact } from './testing';

const PLACE = { gpus: 4, kind: 'h100', placement: [{ node: 'a', devices: [0, 1, 2, 3] }] };
const LIFE = [
  fact(0, 'submitted', 1), fact(10, 'granted', 1, PLACE), fact(12, 'started', 1), fact(20, 'stopping', 1, { why: 'Preempted', to: [7] }),
  fact(22, 'stopped', 1, { outcome: 'saved' }), fact(30, 'granted', 1, PLACE), fact(31, 'started', 1), fact(40, 'stopped', 1, { outcome: 'finished' }), fact(40, 'ended', 1),
];

test('a life is waiting, running, stopped for another, and running again', () => {
  const told = stretches(LIFE).map((stretch) => `${stretch.doing} ${stretch.from}-${stretch.to}`);
  expect(told).toEqual(['waiting 0-10', 'starting 10-12', 'running 12-20', 'stopping 20-22', 'waiting 22-30', 'starting 30-31', 'running 31-40']);
  expect(stretches(LIFE)[4]!.why).toBe('preempted by another job: job 7');
  expect(stretches(LIFE)[2]).toMatchObject({ gpus: 4, kind: 'h100', places: PLACE.placement });
});

test('what was before the first event is inferred, and what goes on has no end', () => {
  const told = stretches([fact(5, 'submitted', 9), fact(10, 'stopping', 1), fact(12, 'stopped', 1, { outcome: 'frozen' })]);
  const of = (job: number) => told.filter((stretch) => stretch.job === job).map((stretch) => `${stretch.doing} ${stretch.from}-${stretch.to}`);
  expect(of(1)).toEqual(['running 5-10', 'stopping 10-12', 'frozen 12-null']);
  expect(of(9)).toEqual(['waiting 5-null']);
});

test('counts over time are those of a walk over all stretches', () => {
  const list = stretches([...LIFE, fact(41, 'submitted', 2)]);
  const points = series(list, 0, 50, 50, 2, (stretch) => [holding(stretch.doing) ? 1 : 0, 1]);
  for (const { time, values } of points) {
    const at = (held: boolean) => list.filter((s) => holding(s.doing) === held && s.from <= time && (s.to === null || s.to > time)).length;
    expect(values, `at ${time}`).toEqual([at(false), at(true)]);
  }
});
