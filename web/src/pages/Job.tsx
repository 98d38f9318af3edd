// One job: what it does and why, when it will be done, what it said, what was asked for.

import { useEffect, useState } from 'preact/hooks';
import { useGet } from '../lib/ask';
import { lengthOf } from '../lib/foretold';
import { ago, clock, count, percent, plural, short, span, where, worth } from '../lib/format';
import { risk, riskText, TONE } from '../lib/outlook';
import { go, link } from '../lib/route';
import { holds, isOver, store, useClock, useStore } from '../lib/store';
import { useTurn } from '../lib/turn';
import type { Explanation, Fact as Event, Job as JobView } from '../lib/types';
import { Bar, Empty, Fact, Failed, Panel, State } from '../parts/bits';
import { CancelDialog } from '../parts/CancelDialog';
import { EstimateBar } from '../parts/EstimateBar';
import { Logs } from '../parts/Logs';
import { Rate } from '../parts/Rate';
import { ResubmitDialog } from '../parts/ResubmitDialog';
import { Timeline } from '../parts/Timeline';

export function Job({ id }: { id: string }) {
  const store = useStore();
  const live = store.jobs.get(Number(id));
  const turn = useTurn(live?.state, 500);
  const { value, error, again } = useGet<JobView>(`/v1/jobs/${encodeURIComponent(id)}`, turn);
  // The stream is as new as anything; what was submitted comes with the job alone.
  const job = live && value ? { ...live, ...(value.request ? { request: value.request } : {}) } : (live ?? value);
  useEffect(() => { if (value && id === 'last') go(link(['jobs', String(value.id)])); }, [value, id]);
  if (error && !job) {
    return (
      <div class="page">
        <Empty title={error}><p><a href={link(['jobs'])}>All jobs</a></p></Empty>
      </div>
    );
  }
  if (!job) return <p class="loading" role="status">Looking for job {id}…</p>;
  return <Shown job={job} error={error} again={again} />;
}

function Shown({ job, error, again }: { job: JobView; error: string | null; again: () => void }) {
  const store = useStore();
  const now = useClock(1);
  const [ask, setAsk] = useState<'cancel' | 'resubmit' | null>(null);
  const eventsTurn = useTurn(`${job.state}${job.starts}${job.preemptions}`, 700);
  const events = useGet<{ events: Event[] }>(`/v1/events?follow=false&limit=2000&job=${job.id}`, eventsTurn);
  const may = store.me !== null && store.me.scope !== 'read';
  return (
    <div class="page">
      <div class="page-head">
        <a class="back" href={link(['jobs'])} aria-label="All jobs">←</a>
        <h1 class="job-name">{job.name}</h1>
        <span class="note">job {job.id}</span>
        <State state={job.state} />
        {may && (
          <div class="chosen">
            <button type="button" onClick={() => go(link(['what-if'], { job: String(job.id) }))}>What if</button>
            <button type="button" onClick={() => setAsk('resubmit')} disabled={!job.request}>Resubmit</button>
            {!isOver(job) && <button type="button" class="danger" onClick={() => setAsk('cancel')}>Cancel job</button>}
          </div>
        )}
      </div>
      {error && <Failed error={error} again={again} />}
      <div class="job">
        <div class="stack">
          <Why job={job} />
          {job.steps !== null && job.starts > 0 && <Panel title="Progress"><Rate job={job} /></Panel>}
        </div>
        <div class="stack">
          <Panel title="At a glance"><Glance job={job} now={now} /></Panel>
          {!isOver(job) && (job.estimate || job.deadline) && <Panel title="When it will be done"><EstimateBar job={job} now={now} /></Panel>}
        </div>
        <Panel title="Timeline" class="span-all">
          <Timeline facts={events.value?.events ?? []} job={job} now={now} />
        </Panel>
        <Logs job={job} />
        <Panel title="What was submitted" class="span-all">
          {job.request ? <pre class="spec" tabIndex={0}>{JSON.stringify(trimmed(job.request), null, 2)}</pre> : <p class="note">Loading…</p>}
        </Panel>
      </div>
      {ask === 'cancel' && <CancelDialog jobs={[job]} close={() => setAsk(null)} />}
      {ask === 'resubmit' && <ResubmitDialog request={trimmed(job.request ?? {})} close={() => setAsk(null)} />}
    </div>
  );
}

/** What was said, without all that was left open. */
function trimmed(request: Record<string, unknown>): Record<string, unknown> {
  const empty = (value: unknown): boolean =>
    value === null || value === false || value === 0 || (typeof value === 'object' && Object.values(value as object).every(empty));
  return Object.fromEntries(Object.entries(request).filter(([name, value]) => name === 'gpus' || !empty(value)));
}

function Why({ job }: { job: JobView }) {
  const store = useStore();
  const turn = useTurn(`${job.state}${store.status?.rounds}${store.status?.plans}`, 3000);
  const { value, error } = useGet<Explanation>(`/v1/jobs/${job.id}/explain`, turn);
  const prices = Object.entries(value?.prices ?? {});
  return (
    <Panel title={isOver(job) ? 'How it ended' : holds(job) ? 'Why it runs here' : 'Why it waits'} aside={value && <span class="reason-tag">{value.reason}</span>}>
      {error && <Failed error={error} />}
      {value && <p class="why">{value.text}</p>}
      {!value && !error && <p class="note">Asking the scheduler…</p>}
      {job.reason && !value?.text.includes(job.reason) && <p class="note">{job.reason}</p>}
      {value && value.remedies.length > 0 && (
        <><h3>It would start sooner if you</h3><ul class="remedies">{value.remedies.map((remedy) => <li key={remedy}>{remedy}</li>)}</ul></>
      )}
      {value && value.ahead.length > 0 && (
        <p class="note">Ahead of it: {value.ahead.slice(0, 12).map((id, n) => (
          <span key={id}>{n > 0 && ', '}{store.jobs.has(id) ? <a href={link(['jobs', String(id)])}>{store.jobs.get(id)!.name} ({id})</a> : `job ${id}`}</span>
        ))}{value.ahead.length > 12 && ` and ${value.ahead.length - 12} more`}</p>
      )}
      {value?.ways && value.ways.length > 1 && <MayRun ways={value.ways} />}
      {prices.length > 0 && <p class="note">Prices of one device, as a fraction of the whole cluster: {prices.map(([kind, price]) => `${kind} ${worth(price)}`).join(', ')}</p>}
    </Panel>
  );
}

/** The ways in which it may run, the fastest first. */
function MayRun({ ways }: { ways: NonNullable<Explanation['ways']> }) {
  const fastest = Math.max(...ways.map((way) => way.rate), 1e-12);
  return (
    <>
      <h3>It may run on</h3>
      <ul class="reasons is-ways">
        {ways.slice(0, 6).map((way) => (
          <li key={`${way.gpus}${way.kind}`}>
            <span class="reason-name">{way.gpus} × {way.kind}{way.held && ' ●'}</span>
            <Bar part={way.rate / fastest} label={`${short(way.rate)} steps per second${way.held ? ', as it runs now' : ''}`} />
            <b>{short(way.rate)}/s</b>
            {way.price !== null && <small title="of the price of the whole cluster">costs {worth(way.price)}</small>}
          </li>
        ))}
      </ul>
    </>
  );
}

function Glance({ job, now }: { job: JobView; now: number }) {
  const ran = store.ran(job, now);
  return (
    <dl class="facts">
      <Fact name="Owner"><a href={link(['jobs'], { user: job.user })}>{job.user}</a></Fact>
      {job.tenant && <Fact name="Team"><a href={link(['jobs'], { user: job.tenant })}>{job.tenant}</a></Fact>}
      <Fact name="Devices">{job.gpus}{job.kind && ` × ${job.kind}`}</Fact>
      {job.nodes.length > 0 && <Fact name="Where"><span class="places">{job.nodes.map((place) => <a key={place} href={link(['nodes', place.split('[')[0]!])}>{where(place)}</a>)}</span></Fact>}
      <Fact name="Submitted">{clock(job.submitted_at, now)} <small>{ago(job.submitted_at, now)}</small></Fact>
      {job.started_at !== null && <Fact name="First started">{clock(job.started_at, now)} <small>after {span(job.started_at - job.submitted_at)}</small></Fact>}
      {job.ended_at !== null && <Fact name="Ended">{clock(job.ended_at, now)} <small>{ago(job.ended_at, now)}</small></Fact>}
      {ran > 0 && <Fact name="Device time">{span(ran)} <small>{short((ran * job.gpus) / 3600)} device-hours</small></Fact>}
      {job.steps !== null && <Fact name="Steps">{count(job.step ?? 0)} of {count(job.steps)} <Bar part={(job.step ?? 0) / job.steps} label={percent((job.step ?? 0) / job.steps)} /></Fact>}
      {job.length && <Fact name="Length">{lengthOf(job.length)}</Fact>}
      {job.checkpointed !== null && <Fact name="Last checkpoint">step {count(job.checkpointed)}</Fact>}
      {job.deadline !== null && <Fact name="Deadline">{clock(job.deadline, now)} <small>{ago(job.deadline, now)}{job.promise !== null ? ', promised' : ''}</small>{risk(job) && <small class={TONE[risk(job)!]}> {riskText(job, now)}</small>}</Fact>}
      {job.earliest !== null && <Fact name="Earliest promise">{clock(job.earliest, now)}</Fact>}
      {job.priority !== 0 && <Fact name="Priority">{job.priority}</Fact>}
      {job.starts > 0 && <Fact name="Starts">{job.starts}{history(job)}</Fact>}
      {job.exit_code !== null && <Fact name="Exit code">{job.exit_code}</Fact>}
    </dl>
  );
}

function history(job: JobView) {
  const parts = [
    job.preemptions > 0 && `preempted ${job.preemptions}×`,
    job.migrations > 0 && `moved ${job.migrations}×`,
    job.failures > 0 && plural(job.failures, 'failure'),
  ].filter(Boolean);
  return parts.length > 0 ? <small> {parts.join(', ')}</small> : null;
}
