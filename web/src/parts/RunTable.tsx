// Runs beside each other: what people compare, with the best of each marked.

import { useState } from 'preact/hooks';
import { count, percent, short, span } from '../lib/format';
import type { Run } from '../lib/simfile';

interface Measure { key: string; name: string; write: (value: number) => string; more?: boolean }

const MEASURES: Measure[] = [
  { key: 'finished', name: 'finished', write: count, more: true },
  { key: 'avg_jct_s', name: 'mean completion', write: span },
  { key: 'p50_jct_s', name: 'median', write: span },
  { key: 'p90_jct_s', name: '90 %', write: span },
  { key: 'p99_jct_s', name: '99 %', write: span },
  { key: 'avg_queue_s', name: 'mean waiting', write: span },
  { key: 'makespan_s', name: 'makespan', write: span },
  { key: 'utilization', name: 'use', write: percent, more: true },
  { key: 'avg_rho', name: 'mean ρ', write: short },
  { key: 'max_rho', name: 'worst ρ', write: short },
  { key: 'deadline_miss_ratio', name: 'deadlines missed', write: percent },
  { key: 'cost', name: 'cost', write: short },
  { key: 'preemptions', name: 'preemptions', write: count },
  { key: 'migrations', name: 'moves', write: count },
];

/** `hue`: the colour of each run, where charts beside it have them. */
export function RunTable({ runs: given, hue }: { runs: Run[]; hue?: (policy: string) => string }) {
  const [sort, setSort] = useState('');
  const runs = ordered(given, sort);
  const known = MEASURES.filter(({ key }) => runs.some((run) => typeof run[key] === 'number'));
  const best = new Map(known.map((measure) => [measure.key, bestOf(runs, measure)]));
  const widest = Math.max(...runs.map((run) => number(run, 'avg_jct_s') ?? 0), 1e-9);
  const from = (run: Run) => [run['trace'], run.cluster].filter(Boolean).join(' on ');
  const same = runs.every((run) => from(run) === from(runs[0]!));
  return (
    <div class="wide-table" tabIndex={0}>
      <table class="runs">
        {same && <caption>{from(runs[0]!)}</caption>}
        <thead>
          <tr><th scope="col">Policy</th>{!same && <th scope="col">Trace and cluster</th>}{known.map((measure) => <Head key={measure.key} measure={measure} sort={sort} setSort={setSort} />)}</tr>
        </thead>
        <tbody>
          {runs.map((run, n) => (
            <tr key={n}>
              <th scope="row">{hue && <i class={`mark ${hue(run.policy)}`} />}{run.policy}</th>
              {!same && <td><small>{from(run)}</small></td>}
              {known.map(({ key, write }) => {
                const value = number(run, key);
                const is = value !== null && value === best.get(key);
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

function Head({ measure, sort, setSort }: { measure: Measure; sort: string; setSort: (sort: string) => void }) {
  const order = sort === measure.key ? 'ascending' : sort === `-${measure.key}` ? 'descending' : 'none';
  const next = order === 'ascending' ? `-${measure.key}` : order === 'descending' ? '' : measure.key;
  return (
    <th scope="col" class="num" aria-sort={order}>
      <button type="button" class="sort" onClick={() => setSort(next)}>{measure.name}<span aria-hidden="true">{order === 'ascending' ? ' ↑' : order === 'descending' ? ' ↓' : ''}</span></button>
    </th>
  );
}

function ordered(runs: Run[], sort: string): Run[] {
  const [key, sign] = sort.startsWith('-') ? [sort.slice(1), -1] : [sort, 1];
  if (key === '') return runs;
  return [...runs].sort((a, b) => sign * ((number(a, key) ?? Infinity) - (number(b, key) ?? Infinity)) || 0);
}

function number(run: Run, key: string): number | null {
  const value = run[key];
  return typeof value === 'number' ? value : null;
}

/** The best value, where there is something to choose. */
function bestOf(runs: Run[], { key, more }: Measure): number | null {
  const values = runs.map((run) => number(run, key)).filter((value): value is number => value !== null);
  if (values.every((value) => value === values[0])) return null;
  return more ? Math.max(...values) : Math.min(...values);
}
