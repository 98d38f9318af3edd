import { expect, test } from 'vitest';
import { evenness, evennessOverTime, heldOverTime, teams } from './teams';
import { stretches } from './spans';
import { fact, job } from './testing';

test('a team is the sum of its jobs', () => {
  const jobs = [
    job({ id: 1, user: 'ada', tenant: 'vision', state: 'running', gpus: 8, kind: 'h100', started_at: 60, submitted_at: 0, executed_s: 3600 }),
    job({ id: 2, user: 'bob', tenant: 'vision', state: 'pending', gpus: 4 }),
    job({ id: 3, user: 'cat', state: 'succeeded', gpus: 2, started_at: 20, ended_at: 90, executed_s: 1800, deadline: 100 }),
    job({ id: 4, user: 'cat', state: 'failed', gpus: 2, ended_at: 90, deadline: 100 }),
  ];
  const [vision, cat] = teams(jobs, undefined, { h100: 1.5 }, 40);
  expect(vision).toEqual({ name: 'vision', running: 1, waiting: 1, held: 8, wanted: 4, pays: 12, hours: 8, wait: 50, met: 0, missed: 0 }); // 60 s until the first started, and 40 s so far of the one that waits
  expect(cat).toEqual({ name: 'cat', running: 0, waiting: 0, held: 0, wanted: 0, pays: 0, hours: 1, wait: 20, met: 1, missed: 1 }); // one that ended without a start does not count
  expect(teams(jobs, (job) => job.user).map((team) => team.name)).toEqual(['ada', 'cat', 'bob']);
});

test('even shares count 1, one for all 1 in n', () => {
  expect([evenness([4, 4, 4]), evenness([9, 0, 0]), evenness([])]).toEqual([1, 1 / 3, 1]);
  const list = stretches([
    fact(0, 'submitted', 1), fact(0, 'submitted', 2), fact(10, 'granted', 1, { gpus: 4 }), fact(20, 'granted', 2, { gpus: 4 }), fact(30, 'stopped', 1), fact(30, 'ended', 1),
  ]);
  const name = (job: number) => ['', 'a', 'b'][job];
  const at = (points: { time: number; values: number[] }[], time: number) => points.find((point) => Math.abs(point.time - time) < 1e-9)!.values;
  const held = heldOverTime(list, ['a', 'b'], name, () => 0, 0, 120);
  expect([at(held, 15), at(held, 25), at(held, 35)]).toEqual([[4, 0], [4, 4], [0, 4]]);
  const even = evennessOverTime(list, ['a', 'b'], name, () => 0, 0, 120);
  expect([at(even, 15), at(even, 25), at(even, 35)]).toEqual([[0.5], [1], [1]]);
});
