// Jobs one by one under a policy, with how long they took under the others.

import { useMemo, useState } from 'preact/hooks';
import { byName, count, span } from '../lib/format';
import type { Report, RunView } from '../lib/report';
import { Panel } from '../parts/bits';
import { VirtualTable, type Column } from '../parts/VirtualTable';
import { Which } from './OverTime';

/** Policies beside the one chosen. */
const OTHERS = 3;

export function JobTable({ report, runs }: { report: Report; runs: RunView[] }) {
  const [policy, setPolicy] = useState('');
  const [sort, setSort] = useState('-wait');
  const [q, setQ] = useState('');
  const run = runs.find((run) => run.policy === policy) ?? runs[0];
  const rows = useMemo(() => (run ? ordered(report, run, q, sort) : []), [report, run, q, sort]);
  if (!run || report.jobs.id.length === 0) return null;
  const { jobs } = report;
  const others = runs.filter((other) => other !== run).slice(0, OTHERS);
  const time = (value: number | null | undefined) => (value == null ? '–' : span(value));
  const columns: Column<number>[] = [
    { name: 'name', title: 'Job', sort: 'name', class: 'col-name', cell: (at) => <span class="cut" title={jobs.name[at]}>{jobs.name[at]}</span> },
    ...(report.teams.length > 1 ? [{ name: 'team', title: 'Team', sort: 'team', class: 'col-user', cell: (at: number) => report.teams[jobs.team[at]!] ?? '' }] : []),
    { name: 'gpus', title: 'Devices', sort: 'gpus', class: 'num col-devices', cell: (at) => jobs.gpus[at] },
    { name: 'submit', title: 'Arrived', sort: 'submit', class: 'num', cell: (at) => span(jobs.submit[at]!) },
    { name: 'wait', title: 'Waited', sort: 'wait', class: 'num', cell: (at) => time(run.ended.wait[at]) },
    { name: 'jct', title: 'Took', sort: 'jct', class: 'num', cell: (at) => time(run.ended.jct[at]) },
    ...others.map((other) => ({ name: other.policy, title: `under ${other.policy}`, class: 'num', cell: (at: number) => time(other.ended.jct[at]) })),
    { name: 'stops', title: 'Stopped', sort: 'stops', class: 'num', cell: (at) => run.ended.preemptions[at] ?? '' },
  ];
  const listed = jobs.id.length;
  return (
    <Panel title="Jobs" aside={<>
      <input type="search" aria-label="Search jobs" placeholder="Search" value={q} onInput={(event) => setQ(event.currentTarget.value)} />
      <Which runs={runs} policy={run.policy} set={setPolicy} />
    </>}>
      {listed < jobs.total && <p class="note">{count(listed)} of {count(jobs.total)} jobs are listed: those that waited longest, and an even sample of the others. All figures above are over all jobs.</p>}
      <div class="report-jobs">
        <VirtualTable label="List of jobs" rows={rows} columns={columns} id={(at) => at} sort={sort} setSort={setSort} />
      </div>
    </Panel>
  );
}

/** Places among the listed jobs: those that match, in order; who did not end comes last either way. */
export function ordered(report: Report, run: RunView, q: string, sort: string): number[] {
  const { jobs } = report;
  const word = q.trim().toLowerCase();
  const found: number[] = [];
  for (let at = 0; at < jobs.id.length; at++) {
    const team = report.teams[jobs.team[at]!] ?? '';
    if (word === '' || jobs.name[at]!.toLowerCase().includes(word) || team.toLowerCase() === word) found.push(at);
  }
  const back = sort.startsWith('-');
  const name = back ? sort.slice(1) : sort;
  const sign = back ? -1 : 1;
  const texts: Record<string, (at: number) => string> = { name: (at) => jobs.name[at]!, team: (at) => report.teams[jobs.team[at]!] ?? '' };
  const text = texts[name];
  if (text) return found.sort((a, b) => sign * byName(text(a), text(b)) || a - b);
  const columns: Record<string, (number | null)[]> = { gpus: jobs.gpus, submit: jobs.submit, wait: run.ended.wait, jct: run.ended.jct, stops: run.ended.preemptions };
  const column = columns[name] ?? jobs.submit;
  const last = sign * Infinity;
  return found.sort((a, b) => { const [x, y] = [column[a] ?? last, column[b] ?? last]; return x === y ? a - b : sign * (x - y); });
}
