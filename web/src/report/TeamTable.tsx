// What became of each team's jobs, policies beside each other.

import { percent, short, span } from '../lib/format';
import type { Report, RunView, TeamRow } from '../lib/report';
import { Panel } from '../parts/bits';

interface Measure { name: string; write: (row: TeamRow) => string; there?: (row: TeamRow) => boolean }

const MEASURES: Measure[] = [
  { name: 'mean waiting', write: (row) => span(row.wait) },
  { name: 'mean completion', write: (row) => span(row.jct) },
  { name: 'mean ρ', write: (row) => (row.rho === null ? '–' : short(row.rho)), there: (row) => row.rho !== null },
  { name: 'deadlines met', write: (row) => (row.due > 0 ? percent(row.met / row.due) : '–'), there: (row) => row.due > 0 },
  { name: 'device-hours', write: (row) => short(row.gpu_h) },
];

export function TeamTable({ report, runs, hue }: { report: Report; runs: RunView[]; hue: (policy: string) => string }) {
  if (report.teams.length < 2 || runs.length === 0) return null;
  const measures = MEASURES.filter(({ there }) => !there || runs.some((run) => run.teams.some(there)));
  const rowOf = (run: RunView, team: number) => run.teams.find((row) => row.team === team);
  const jobs = (team: number) => Math.max(0, ...runs.map((run) => rowOf(run, team)?.jobs ?? 0));
  return (
    <Panel title="Teams">
      <div class="wide-table" tabIndex={0}>
        <table class="teams-compared">
          <thead>
            <tr><th scope="col" rowSpan={2}>Team</th><th scope="col" rowSpan={2} class="num">Jobs done</th>{measures.map(({ name }) => <th key={name} scope="colgroup" colSpan={runs.length} class="group-start">{name}</th>)}</tr>
            <tr>{measures.flatMap(({ name }) => runs.map((run, n) => <th key={name + run.policy} scope="col" class={`num ${n === 0 ? 'group-start' : ''}`}><i class={`mark ${hue(run.policy)}`} />{run.policy}</th>))}</tr>
          </thead>
          <tbody>
            {report.teams.map((name, team) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="num">{jobs(team)}</td>
                {measures.flatMap((measure) => runs.map((run, n) => { const row = rowOf(run, team); return <td key={measure.name + run.policy} class={`num ${n === 0 ? 'group-start' : ''}`}>{row ? measure.write(row) : '–'}</td>; }))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
