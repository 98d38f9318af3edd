// Use of the cluster, the queue and prices over time, one line for each policy or kind.

import { useMemo, useState } from 'preact/hooks';
import { percent, plural, short, span } from '../lib/format';
import { compared, pricesOf, type Measure, type Report, type RunView } from '../lib/report';
import { Panel } from '../parts/bits';
import { Chart } from '../parts/Chart';

interface Props { report: Report; runs: RunView[]; end: number; hue: (policy: string) => string }

const QUEUES: [Measure, string][] = [['queued_jobs', 'jobs waiting'], ['queued_gpus', 'devices wanted'], ['running', 'jobs running']];

export function OverTime({ report, runs, end, hue }: Props) {
  const [queue, setQueue] = useState<Measure>('queued_jobs');
  const [zoomed, setZoomed] = useState<[number, number] | null>(null);
  const [from, to] = zoomed ?? [0, end];
  const used = useMemo(() => compared(report, runs, 'used', from, to), [runs, from, to]);
  const queued = useMemo(() => compared(report, runs, queue, from, to), [runs, queue, from, to]);
  const series = runs.map((run) => ({ name: run.policy, hue: hue(run.policy) }));
  const zoom = (from: number, to: number) => setZoomed([from, to]);
  const back = zoomed && <button type="button" class="small" onClick={() => setZoomed(null)}>Whole time</button>;
  if (runs.every((run) => run.series === null)) return null;
  return (
    <div class="charts">
      <Panel title="Devices in use" aside={back ?? <span class="note">drag to zoom in</span>}>
        <Chart label="Fraction of devices in use" points={used} series={series} limit={1} height={200} time={span} format={percent} zoom={zoom} />
      </Panel>
      <Panel title="Queue" aside={<>{back}<div class="choice" role="group" aria-label="Shown">
        {QUEUES.map(([value, name]) => <button key={value} type="button" aria-pressed={queue === value} onClick={() => setQueue(value)}>{name}</button>)}
      </div></>}>
        <Chart label={QUEUES.find(([value]) => value === queue)![1]} points={queued} series={series} height={200} time={span} zoom={zoom} />
      </Panel>
    </div>
  );
}

export function Prices({ runs }: { runs: RunView[] }) {
  const priced = runs.filter((run) => run.market);
  const [chosen, setChosen] = useState('');
  const run = priced.find((run) => run.policy === chosen) ?? priced[0];
  const points = useMemo(() => (run?.market ? pricesOf(run.market, run.market.t[0]!, run.market.end) : []), [run]);
  if (!run?.market) return null;
  const gap = Math.max(0, ...run.market.gap);
  return (
    <Panel title="Prices" aside={priced.length > 1 ? <Which runs={priced} policy={run.policy} set={setChosen} /> : <span class="note">{run.policy}</span>}>
      <Chart label="Price of a device by kind" points={points} series={run.market.kinds.map((name, n) => ({ name, hue: `hue-${n % 8}` }))} height={200} time={span} format={short} />
      <p class="note">The price of one device of a kind full time, when all devices together cost 1. {plural(run.market.t.length, 'plan')} shown, each proven within {gap < 1e-5 ? '0.001' : (gap * 100).toPrecision(2)} % of the best.</p>
    </Panel>
  );
}

/** One of several policies. */
export function Which({ runs, policy, set }: { runs: RunView[]; policy: string; set: (policy: string) => void }) {
  return (
    <select aria-label="Policy" value={policy} onChange={(event) => set(event.currentTarget.value)}>
      {runs.map((run) => <option key={run.policy} value={run.policy}>{run.policy}</option>)}
    </select>
  );
}
