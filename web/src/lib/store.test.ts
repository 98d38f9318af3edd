import { expect, test } from 'vitest';
import { Store } from './store';
import { device, job, node } from './testing';
import type { Change } from './types';

function change(more: Partial<Change>): Change {
  return { revision: 1, time: 1000, whole: false, jobs: [], nodes: [], status: null, ...more };
}

test('changes are put over what was, and a whole look drops what is gone', () => {
  const store = new Store();
  store.apply(change({ whole: true, jobs: [job({ id: 1 }), job({ id: 2 })], nodes: [node('a', [device()]), node('b', [])] }));
  store.apply(change({ jobs: [job({ id: 2, state: 'running' }), job({ id: 3 })] }));
  expect([...store.jobs.values()].map((job) => `${job.id} ${job.state}`)).toEqual(['1 pending', '2 running', '3 pending']);
  expect(store.nodes.size).toBe(2);
  store.apply(change({ whole: true, jobs: [job({ id: 3 })], nodes: [node('b', [])] }));
  expect([...store.jobs.keys()]).toEqual([3]);
  expect([...store.nodes.keys()]).toEqual(['b']);
});

test('what is over stays when the server forgets it, and the past does not hide what is newer', () => {
  const store = new Store();
  store.apply(change({ jobs: [job({ id: 1, state: 'succeeded', ended_at: 5 })] }));
  store.apply(change({ whole: true }));
  expect(store.jobs.get(1)?.state).toBe('succeeded');
  store.apply(change({ jobs: [job({ id: 2, state: 'running' })] }));
  store.addPast([job({ id: 2, state: 'pending' }), job({ id: 9, state: 'failed' })]);
  expect([store.jobs.get(2)?.state, store.jobs.get(9)?.state]).toEqual(['running', 'failed']);
});

test('who listens is told once for many changes', async () => {
  const store = new Store();
  let told = 0;
  const stop = store.listen(() => { told++; });
  for (let n = 0; n < 100; n++) store.apply(change({ jobs: [job({ id: n })] }));
  await new Promise((then) => setTimeout(then, 150));
  expect(told).toBe(1);
  stop();
});

test('what a job has held grows while it runs', () => {
  const store = new Store();
  store.apply(change({ time: 1000, jobs: [job({ id: 1, state: 'running', starts: 1, executed_s: 50 }), job({ id: 2, state: 'suspended', starts: 1, executed_s: 50 })] }));
  expect([1, 2].map((id) => store.ran(store.jobs.get(id)!, 1030))).toEqual([80, 50]);
  expect(store.ran(job({ id: 9, state: 'running', executed_s: 5 }), 1030)).toBe(5);
});

test('nodes come as people count, also those that join later', () => {
  const store = new Store();
  store.apply(change({ nodes: [node('n10', []), node('n2', [])] }));
  expect(store.nodesByName().map(({ name }) => name)).toEqual(['n2', 'n10']);
  store.apply(change({ nodes: [node('n3', []), { ...node('n10', []), state: 'down' }] }));
  expect(store.nodesByName().map(({ name, state }) => `${name} ${state}`)).toEqual(['n2 up', 'n3 up', 'n10 down']);
  store.apply(change({ whole: true, nodes: [node('n1', [])] }));
  expect(store.nodesByName().map(({ name }) => name)).toEqual(['n1']);
});
