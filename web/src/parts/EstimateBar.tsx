// When a job will start and end: the likely time, and the interval that holds nine times in ten.

import { unknown, unknownStart } from '../lib/foretold';
import { due, risk, riskText, TONE } from '../lib/outlook';
import { ago, clock } from '../lib/format';
import type { Interval, Job } from '../lib/types';

export function EstimateBar({ job, now }: { job: Job; now: number }) {
  const { estimate } = job;
  const level = risk(job);
  const start = job.started_at === null ? estimate?.start : null;
  const times = [start?.high, start?.mid, estimate?.end?.high, estimate?.end?.mid, job.deadline].filter((time): time is number => time != null);
  const last = Math.max(now + 60, ...times);
  const until = now + (last - now) * 1.06;
  const at = (time: number) => `${Math.max(0, Math.min(100, ((time - now) / (until - now)) * 100))}%`;
  return (
    <div class="estimate">
      {!start && estimate && job.started_at === null && <Reason name="starts" text={unknownStart(estimate.start_unknown)} />}
      {start && <Line name="starts" interval={start} at={at} until={until} now={now} hue="hue-1" />}
      {estimate && !estimate.end && <Reason name="ends" text={unknown(estimate.end_unknown)} />}
      {estimate?.end && <Line name="ends" interval={estimate.end} at={at} until={until} now={now} hue="hue-0" />}
      {job.deadline !== null && (
        <div class="estimate-line">
          <span class="estimate-name">deadline</span>
          <span class="estimate-track"><i class="estimate-mark is-deadline" style={{ left: at(job.deadline) }} /></span>
          <span class="estimate-text">{ago(job.deadline, now)}{level && <small class={TONE[level]}> {riskText(job, now)}</small>}</span>
        </div>
      )}
      {estimate && <p class="note">{(start ?? estimate.end) && 'The bar covers 9 outcomes in 10. '}Estimated {ago(estimate.made_at, now)} by simulating the scheduler.</p>}
      {!estimate && <p class="note">No estimate yet.</p>}
    </div>
  );
}

/** A line without a bar: why there is none. */
function Reason({ name, text }: { name: string; text: string }) {
  return (
    <div class="estimate-line">
      <span class="estimate-name">{name}</span>
      <span class="estimate-reason">{text}</span>
    </div>
  );
}

interface LineProps { name: string; interval: Interval; at: (time: number) => string; until: number; now: number; hue: string }

function Line({ name, interval, at, until, now, hue }: LineProps) {
  const high = interval.high ?? until;
  const mid = Math.max(interval.mid, now);
  const range = `${clock(Math.max(interval.low, now), now)} – ${interval.high === null ? 'unknown' : clock(Math.max(interval.high, now), now)}`;
  return (
    <div class="estimate-line">
      <span class="estimate-name">{name}</span>
      <span class="estimate-track" role="img" aria-label={`${name} between ${range}`}>
        <i class={`estimate-range ${hue}`} style={{ left: at(interval.low), right: `calc(100% - ${at(high)})` }} />
        <i class={`estimate-mark ${hue}`} style={{ left: at(mid) }} />
      </span>
      <span class="estimate-text"><b>{due(mid, now)}</b> <small>{range}</small></span>
    </div>
  );
}
