import { expect, test } from 'vitest';
import { sight } from './sight';
import { job } from './testing';
import type { Job, Status } from './types';

const status = { pending: 4, running: 2 } as Status;
const own = new Map<number, Job>([[1, job({ id: 1 })], [2, job({ id: 2, state: 'running' })], [3, job({ id: 3, state: 'failed' })]]);

test('who may not see all is told how much there is beside it', () => {
  const seen = sight({ me: { user: 'ada', scope: 'read' }, status, jobs: own });
  expect(seen).toMatchObject({ all: false, waiting: 3, running: 1 });
  expect(seen.says).toBe('You see only jobs of ada. Not shown: 1 running job and 3 waiting jobs of other users.');
  expect(sight({ me: { user: 'ada', scope: 'submit' }, status: { ...status, pending: 1, running: 1 }, jobs: own }).says).toBe('You see only jobs of ada.');
});

test('an admin sees everything', () => {
  expect(sight({ me: { user: 'root', scope: 'admin' }, status, jobs: own })).toEqual({ all: true, waiting: 0, running: 0, says: '' });
});
