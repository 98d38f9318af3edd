// Runs beside each other: what people compare, with the best of each marked.

import { percent, short, span } from '../lib/format';
import type { Run } from '../lib/simfile';

interface Measure { key: string; name: string; write: (value: number) => string; more?: boolean }

const MEASURES: Measure[] = [
  { key: 'avg_jct_s', name: 'mean completion', write: span },
  { key: 'p50_jct_s', name: 'median', write: span },
  { key: 'p99_jct_s', name: '99 %', write: span },
  { key: 'avg_queue_s', name: 'mean waiting', write: span },
  { key: 'makespan_s', name: 'makespan', write: span },
  { key: 'utilization', name: 'use', write: percent, more: true },
  { key: 'avg_rho', name: 'mean ρ', write: short },
  { key: 'max_rho', name: 'worst ρ', write: short },
  { key: 'deadline_miss_ratio', name: 'deadlines missed', write: percent },
  { key: 'cost', name: 'cost', write: short },
  { key: 'preemptions', name: 'preemptions', write: (value) => String(value) },
  { key: 'migrations', name: 'moves', write: (value) => String(value) },
];

export function RunTable({ runs }: { runs: Run[] }) {
  const known = MEASURES.filter(({ key }) => runs.some((run) => typeof run[key] === 'number'));
  const best = new Map(known.map((measure) => [measure.key, bestOf(runs, measure)]));
  const widest = Math.max(...runs.map((run) => number(run, 'avg_jct_s') ?? 0), 1e-9);
  const from = (run: Run) => `${String(run['trace'] ?? '')} on ${run.cluster}`;
  const same = runs.every((run) => from(run) === from(runs[0]!));
  return (
    <div class="wide-table" tabIndex={0}>
      <table class="runs">
        {same && <caption>{from(runs[0]!)}</caption>}
        <thead>
          <tr><th scope="col">Policy</th>{!same && <th scope="col">Trace and cluster</th>}{known.map((measure) => <th key={measure.key} scope="col" class="num">{measure.name}</th>)}</tr>
        </thead>
        <tbody>
          {runs.map((run, n) => (
            <tr key={n}>
              <th scope="row">{run.policy}</th>
              {!same && <td><small>{from(run)}</small></td>}
              {known.map(({ key, write }) => {
                const value = number(run, key);
                const is = value !== null && value === best.get(key) && runs.length > 1;
                return (
                  <td key={key} class={`num ${is ? 'is-best' : ''}`}>
                    {value === null ? '–' : write(value)}
                    {key === 'avg_jct_s' && value !== null && <span class="under" style={{ width: `${(value / widest) * 100}%` }} />}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function number(run: Run, key: string): number | null {
  const value = run[key];
  return typeof value === 'number' ? value : null;
}

function bestOf(runs: Run[], { key, more }: Measure): number | null {
  const values = runs.map((run) => number(run, key)).filter((value): value is number => value !== null);
  if (values.length === 0) return null;
  return more ? Math.max(...values) : Math.min(...values);
}
