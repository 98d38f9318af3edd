// The past as it was and as it would have been, in total and by team, with what differs from how things are.

import { useState } from 'preact/hooks';
import { clock, count, percent, plural, short, signed, span } from '../lib/format';
import { store } from '../lib/store';
import type { Difference, Figures, Replay, ReplayRow } from '../lib/types';

interface Measure { key: keyof Figures; name: string; write: (value: number) => string; more?: boolean }

const TOTALS: Measure[] = [
  { key: 'avg_queue_s', name: 'mean waiting', write: span },
  { key: 'p90_queue_s', name: 'waiting, 90 %', write: span },
  { key: 'avg_jct_s', name: 'mean completion', write: span },
  { key: 'p99_jct_s', name: 'completion, 99 %', write: span },
  { key: 'makespan_s', name: 'makespan', write: span },
  { key: 'deadline_met', name: 'deadlines met', write: count, more: true },
  { key: 'preemptions', name: 'preemptions', write: count },
  { key: 'utilization', name: 'use', write: percent, more: true },
  { key: 'avg_rho', name: 'mean ρ', write: short },
  { key: 'max_rho', name: 'worst ρ', write: short },
  { key: 'cost', name: 'cost', write: short },
];

const BY_TEAM: Measure[] = [
  ...TOTALS.filter(({ key }) => ['avg_queue_s', 'avg_jct_s', 'deadline_met'].includes(key)),
  { key: 'gpu_hours', name: 'device-hours', write: short },
  ...TOTALS.filter(({ key }) => ['avg_rho', 'cost'].includes(key)),
];

export function Replayed({ replay }: { replay: Replay }) {
  const rows = [replay.recorded, replay.baseline, ...replay.alternatives];
  const { window } = replay;
  const extra = [
    window.carried > 0 && `${plural(window.carried, 'job')} from before take part but do not count`,
    window.open > 0 && `${plural(window.open, 'job')} not over yet take part but do not count`,
    window.left_out > 0 && `${plural(window.left_out, 'job')} left out: they never ran, or their length is unknown`,
  ].filter(Boolean);
  return (
    <div class="ways">
      <p>{plural(window.jobs, 'job')}, submitted from {clock(window.from, store.now())} to {clock(window.to, store.now())}.{extra.length > 0 && <span class="note"> {extra.join('; ')}.</span>}</p>
      <Totals rows={rows} />
      {replay.alternatives.some((row) => row.teams.length > 0) && <Teams baseline={replay.baseline} alternatives={replay.alternatives} />}
      {replay.notes.length > 0 && <ul class="notes">{replay.notes.map((note) => <li key={note} class="note">{note}</li>)}</ul>}
    </div>
  );
}

/** What is known of any, without deadlines where nobody had one. */
function known(measures: Measure[], all: Figures[]): Measure[] {
  return measures.filter(({ key }) => all.some((one) => (key === 'deadline_met' ? one.deadline_total > 0 : one[key] !== null)));
}

function Totals({ rows }: { rows: ReplayRow[] }) {
  return (
    <div class="wide-table" tabIndex={0}>
      <table class="replay">
        <thead><tr><th scope="col">In all</th>{rows.map((row, n) => <th key={n} scope="col" class="num"><b>{row.label}</b><small class="below">{row.run.policy} on {row.run.cluster}</small></th>)}</tr></thead>
        <tbody>
          {known(TOTALS, rows.map((row) => row.run)).map((measure) => (
            <tr key={measure.key}>
              <th scope="row">{measure.name}</th>
              {rows.map((row, n) => <Value key={n} measure={measure} of={row.run} by={row.against_baseline} judged={n > 1} />)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** `judged`: whether more or less is good or bad; what was recorded only differs. */
function Value({ measure: { key, write, more }, of, by, judged }: { measure: Measure; of: Figures; by: Difference | null; judged: boolean }) {
  const value = of[key];
  const change = by?.[key] ?? 0;
  const text = signed(change, write);
  const part = key !== 'utilization' && value !== null && value - change > 0 ? signed(change / (value - change), percent) : '';
  const tone = !judged ? '' : change < 0 === !more ? 'good' : 'bad';
  return <td class="num">{value === null ? '–' : write(value)}{text !== '' && <small class={`below ${tone}`}>{text}{part && `, ${part}`}</small>}</td>;
}

function Teams({ baseline, alternatives }: { baseline: ReplayRow; alternatives: ReplayRow[] }) {
  const [chosen, setChosen] = useState(0);
  const row = alternatives[chosen] ?? alternatives[0]!;
  const measures = known(BY_TEAM, [...baseline.teams, ...row.teams]);
  return (
    <>
      <div class="panel-head">
        <h3>By team, against the baseline</h3>
        {alternatives.length > 1 && <select aria-label="Change" value={String(chosen)} onChange={(event) => setChosen(Number(event.currentTarget.value))}>{alternatives.map((one, n) => <option key={n} value={String(n)}>{one.label}</option>)}</select>}
      </div>
      <div class="wide-table" tabIndex={0}>
        <table class="replay">
          <thead><tr><th scope="col">Team</th><th scope="col" class="num">Jobs</th>{measures.map(({ key, name }) => <th key={key} scope="col" class="num">{name}</th>)}</tr></thead>
          <tbody>
            {row.teams.map((team) => (
              <tr key={team.team}>
                <th scope="row">{team.team}</th>
                <td class="num">{count(team.jobs)}</td>
                {measures.map((measure) => <Value key={measure.key} measure={measure} of={team} by={team.against_baseline} judged />)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
