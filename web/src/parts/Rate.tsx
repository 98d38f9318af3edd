// How far a job is and how fast it goes, as far as this page has watched it.

import { useRef } from 'preact/hooks';
import { count, percent, short, span } from '../lib/format';
import type { Job } from '../lib/types';
import { Bar } from './bits';
import { Chart } from './Chart';

const KEPT = 600;

export function Rate({ job, now }: { job: Job; now: number }) {
  const seen = useRef<{ time: number; values: number[] }[]>([]);
  const last = seen.current[seen.current.length - 1];
  if (job.rate !== null && (!last || last.values[0] !== job.rate)) {
    seen.current = [...seen.current, { time: now, values: [job.rate] }].slice(-KEPT);
  }
  const steps = job.steps ?? 0;
  const part = steps > 0 ? (job.step ?? 0) / steps : 0;
  const left = job.rate && job.rate > 0 ? (steps - (job.step ?? 0)) / job.rate : null;
  return (
    <div class="rate">
      <div class="rate-row">
        <Bar part={part} label={percent(part)} />
        <b>{percent(part)}</b>
      </div>
      <p class="note">
        Step {count(job.step ?? 0)} of {count(steps)}
        {job.rate !== null && <>, {short(job.rate)} steps/s</>}
        {left !== null && left > 0 && <>, {span(left)} left at this speed</>}
      </p>
      {seen.current.length > 2 && <Chart label="Steps per second" points={seen.current} series={[{ name: 'steps/s', hue: 'hue-0' }]} height={110} />}
    </div>
  );
}
