import { expect, test } from 'vitest';
import { compared, endOf, Names, pricesOf, recordingOf, reportIn, sampled, type Bars, type Report, type RunView, type Series } from './report';
import { heldAt } from './simfile';
import { ordered } from '../report/JobTable';

const NO_BARS: Bars = { tick_s: 0, origin_s: 0, until_s: null, node: [], first: [], devices: [], job: [], start: [], length: [], lane: [], lanes: [], team: [] };
const track = (mean: number[]) => ({ mean, max: mean });
const SERIES: Series = { t0: 0, width: 10, used: track([4, 4, 2, 0]), queued_jobs: track([0, 1, 2, 3]), queued_gpus: track([0, 0, 0, 0]), running: track([1, 1, 1, 0]) };

function run(policy: string, more: Partial<RunView> = {}): RunView {
  const ended = { wait: [1, null, 5], jct: [9, null, 6], preemptions: [0, null, 2] };
  return { policy, summary: { policy, cluster: 'gpu:1x4' }, cluster: 0, jobs: 2, jct: { x: [], p: [] }, wait: { x: [], p: [] }, boxes: [], series: SERIES, gantt: NO_BARS, ended, teams: [], market: null, followed: [], ...more };
}

function report(runs: RunView[]): Report {
  return {
    title: 't', command: '', version: '', settings: [], classes: [], runs, teams: ['vision', 'speech'],
    clusters: [{ name: ['a', 'b'], kind: ['gpu', 'cpu'], gpus: [4, 2], gpus_total: 4, nodes_total: 2 }],
    jobs: { total: 3, id: [0, 1, 2], name: ['job-10', 'job-9', 'x</script>'], gpus: [1, 2, 4], submit: [0, 1, 2], team: [0, 1, 0] },
  };
}

test('bars become leases, with their lanes and teams', () => {
  const bars: Bars = { ...NO_BARS, tick_s: 0.5, origin_s: 3, node: [0, 0], first: [1, 1], devices: [2, 2], job: [2, 1], start: [0, 4], length: [10, 2], lane: [0, 1], lanes: [2, 2], team: [0, 1] };
  const one = report([run('fifo', { gantt: bars })]);
  const recording = recordingOf(one, one.runs[0]!, new Names(one), true);
  expect(recording.leases.map(({ from, to, lane }) => [from, to, lane])).toEqual([[3, 8, [0, 2]], [5, 6, [1, 2]]]);
  expect(heldAt(recording, 5.5).get(0)!.get(2)).toEqual([2, 1]);
  expect([recording.describe!(2), recording.hue!(1)]).toEqual(['job 2 x</script> · vision', 'hue-1']);
  expect(recording.points(40)[120]!.values).toEqual([2, 1]);
});

test('series are sampled as means, and compared as parts of the cluster', () => {
  expect(sampled(SERIES, 'used', 0, 40, 4)).toEqual([4, 4, 2, 0, 0]);
  expect(sampled(SERIES, 'used', 0, 40, 2)).toEqual([4, 3, 0]);
  expect(sampled(null, 'used', 0, 40, 2)).toEqual([0, 0, 0]);
  const one = report([run('fifo')]);
  expect(compared(one, one.runs, 'used', 0, 40, 4)[0]).toEqual({ time: 0, values: [1] });
  expect(endOf(one)).toBe(40);
});

test('a price holds until the next plan', () => {
  const market = { kinds: ['a'], t: [0, 10], end: 20, prices: [[1, 3]], objective: [0, 0], gap: [0, 0] };
  expect(pricesOf(market, 0, 20, 4).map(({ values }) => values[0])).toEqual([1, 1, 3, 3, 3]);
});

test('jobs are found and ordered; who did not end comes last', () => {
  const one = report([run('fifo')]);
  const by = (q: string, sort: string) => ordered(one, one.runs[0]!, q, sort);
  expect([by('', 'wait'), by('', '-wait'), by('', 'name'), by('', '-gpus')]).toEqual([[0, 2, 1], [2, 0, 1], [1, 0, 2], [2, 1, 0]]);
  expect([by('JOB', ''), by('speech', '')]).toEqual([[0, 1], [1]]);
});

test('the data of a page is found in it', () => {
  const data = JSON.stringify(report([])).replaceAll('<', '\\u003c');
  const page = `<!doctype html>\n<script type="application/json" id="data">${data}</script><script>1</script>`;
  expect(reportIn(page)!.jobs.name[2]).toBe('x</script>');
  expect(reportIn('<!doctype html><p>something else')).toBeNull();
});
