import { expect, test } from 'vitest';
import { clusterOf, devicesOf, groupsOf, heldAt, read } from './simfile';

const EVENTS = [
  '{"t":0.000000,"event":"node","node":0,"change":"joined"}',
  '{"t":0.000000,"event":"node","node":1,"change":"joined"}',
  '{"t":0.000000,"event":"submitted","job":1}',
  '{"t":5.000000,"event":"submitted","job":2}',
  '{"t":5.000000,"event":"granted","lease":1,"jobs":[1,2],"devices":"0:0-2+5"}',
  '{"t":5.000000,"event":"started","job":1}',
  '{"t":9.000000,"event":"stopped","job":1,"outcome":"finished","steps":4}',
  '{"t":9.000000,"event":"ended","job":1,"state":"succeeded"}',
  '{"t":9.000000,"event":"freed","lease":1}',
  '',
].join('\n');

test('an event file becomes leases on devices over time', () => {
  const opened = read('e.jsonl', EVENTS);
  if (!('recording' in opened)) throw new Error('it is a recording');
  const { recording } = opened;
  expect(recording).toMatchObject({ end: 9, jobs: 2, nodes: [6, 0] });
  expect([...heldAt(recording, 6).get(0)!.keys()]).toEqual([0, 1, 2, 5]);
  expect(heldAt(recording, 6).get(0)!.get(5)).toEqual([1, 2]);
  expect(heldAt(recording, 4).size + heldAt(recording, 9).size).toBe(0);
  const [waiting, running] = [0, 1].map((n) => recording.points(9).map(({ values }) => values[n]));
  expect([waiting![0], waiting![100], waiting![200]]).toEqual([1, 1, 0]);
  expect([running![0], running![200], running![240]]).toEqual([0, 2, 1]);
});

test('nodes stand by kind, as the cluster of a report has them or as far as they were used', () => {
  const opened = read('e.jsonl', EVENTS);
  if (!('recording' in opened)) throw new Error('it is a recording');
  const sizes = (specs: string[]) => groupsOf(opened.recording, specs).map(({ kind, nodes }) => [kind, nodes.map((node) => node.devices)]);
  expect(sizes(['x.toml', 'a:1x8,b:1x4'])).toEqual([['a', [8]], ['b', [4]]]);
  expect(sizes(['a:2x4'])).toEqual([['node', [6, 6]]]);
});

test('nodes that fail are away until they join again', () => {
  const lines = ['joined', 'failed', 'health', 'joined', 'left'].map((change, t) => `{"t":${t},"event":"node","node":3,"change":"${change}"}`);
  const opened = read('e.jsonl', lines.join('\n'));
  expect('recording' in opened && opened.recording.away).toEqual([[3, 1, 3], [3, 4, Infinity]]);
});

test('a report is its runs, and anything else is refused in a sentence', () => {
  expect(read('r.json', '{"runs":[{"policy":"fifo","cluster":"gpu:2"}]}')).toEqual({ runs: [{ policy: 'fifo', cluster: 'gpu:2' }] });
  expect(() => read('r.json', '[]')).toThrow('no "runs"');
  expect(() => read('x.csv', 'a,b')).toThrow('neither an event file');
  expect(() => read('e.jsonl', `${EVENTS}{"t":1,"eve`)).toThrow('line 10');
});

test('clusters and devices are read as the simulator writes them', () => {
  expect(clusterOf('v100:9x4,p100:3')).toEqual([{ kind: 'v100', nodes: 9, each: 4 }, { kind: 'p100', nodes: 3, each: 1 }]);
  expect(clusterOf('cluster.toml')).toBeNull();
  expect(devicesOf('0:0-3+6 4:1')).toEqual([{ node: 0, devices: [0, 1, 2, 3, 6] }, { node: 4, devices: [1] }]);
});
