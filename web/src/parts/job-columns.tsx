// What the table of jobs shows of each.

import { ago, count, percent, span } from '../lib/format';
import { link } from '../lib/route';
import { due, likelyEnd, risk, riskText, TONE } from '../lib/outlook';
import { holds, isOver } from '../lib/store';
import type { Job } from '../lib/types';
import { Bar, State } from './bits';
import type { Column } from './VirtualTable';

interface Setting {
  now: number;
  /** Whether one may cancel. */
  may: boolean;
  chosen: ReadonlySet<number>;
  toggle: (id: number) => void;
  all: boolean;
  toggleAll: () => void;
}

export function jobColumns(set: Setting): Column<Job>[] {
  const choose: Column<Job> = {
    name: 'choose',
    title: <input type="checkbox" aria-label="Select all that are not over" checked={set.all} onChange={set.toggleAll} />,
    class: 'col-choose',
    cell: (job) => !isOver(job) && (
      <input type="checkbox" aria-label={`Select job ${job.id}`} checked={set.chosen.has(job.id)} onChange={() => set.toggle(job.id)} />
    ),
  };
  const columns: Column<Job>[] = [
    { name: 'id', title: 'Job', sort: 'id', class: 'num col-id', cell: (job) => <a href={link(['jobs', String(job.id)])}>{job.id}</a> },
    { name: 'name', title: 'Name', sort: 'name', class: 'col-name', cell: named },
    { name: 'user', title: 'Owner', sort: 'user', class: 'col-user', cell: (job) => <span class="cut" title={job.tenant ?? undefined}>{job.user}{job.tenant && <small> {job.tenant}</small>}</span> },
    { name: 'state', title: 'State', sort: 'state', class: 'col-state', cell: (job) => <State state={job.state} /> },
    { name: 'devices', title: 'Devices', sort: 'devices', class: 'num col-devices', cell: (job) => <>{job.gpus}{job.kind && <small> {job.kind}</small>}</> },
    { name: 'progress', title: 'Progress', sort: 'progress', class: 'col-progress', cell: progress },
    { name: 'end', title: 'When', sort: 'end', class: 'col-when', cell: (job) => when(job, set.now) },
    { name: 'deadline', title: 'Deadline', sort: 'deadline', class: 'col-deadline', cell: (job) => deadline(job, set.now) },
    { name: 'reason', title: 'Note', class: 'col-note', cell: (job) => job.reason && <span class="cut" title={job.reason}>{job.reason}</span> },
  ];
  return set.may ? [choose, ...columns] : columns;
}

/** Its name; on a phone, which has no column for it, with how far it is. */
function named(job: Job) {
  const part = job.steps && !isOver(job) ? (job.step ?? 0) / job.steps : null;
  return (
    <>
      <span class="cut" title={job.name}>{job.name}</span>
      {part !== null && <span class="on-phone"><Bar part={part} label={`${percent(part)} done`} /> <small>{percent(part)}</small></span>}
    </>
  );
}

function progress(job: Job) {
  if (!job.steps) return null;
  const part = (job.step ?? 0) / job.steps;
  return <><Bar part={part} label={`${count(job.step ?? 0)} of ${count(job.steps)} steps`} /><small>{percent(part)}</small></>;
}

/** How long it ran or waited, and when it will go on. */
export function when(job: Job, now: number): string {
  if (job.ended_at !== null) return `${job.started_at === null ? 'ended' : `ran ${span(job.executed_s)}, ended`} ${ago(job.ended_at, now)}`;
  const { estimate } = job;
  if (holds(job)) {
    const end = likelyEnd(job, now);
    const left = end === null ? '' : `, ends ${due(end, now)}`;
    return `${job.started_at === null ? 'starts' : `runs ${span(now - job.started_at)}`}${left}`;
  }
  const start = estimate?.start && job.started_at === null ? `, starts ${due(estimate.start.mid, now)}` : '';
  return `waits ${span(now - job.submitted_at)}${start}`;
}

function deadline(job: Job, now: number) {
  if (job.deadline === null) return null;
  if (job.ended_at !== null) {
    const met = job.ended_at <= job.deadline && job.state === 'succeeded';
    return <span class={met ? 'good' : 'bad'}>{met ? 'met' : 'missed'}</span>;
  }
  const level = risk(job);
  return <span class={level ? TONE[level] : ''} title={level ? riskText(job, now) : undefined}>{job.promise !== null && <abbr title="promised">✓ </abbr>}{ago(job.deadline, now)}</span>;
}
