// How far a job is, and how fast it went since it began or the server did.

import { useMemo } from 'preact/hooks';
import { useGet } from '../lib/ask';
import { count, percent, short } from '../lib/format';
import { due, likelyEnd } from '../lib/outlook';
import { losses, rates } from '../lib/pace';
import { store } from '../lib/store';
import { useTurn } from '../lib/turn';
import type { Job, PacePoint } from '../lib/types';
import { Bar } from './bits';
import { Chart } from './Chart';

/** Fewer say too little to be drawn. */
const LEAST = 4;

export function Rate({ job }: { job: Job }) {
  const turn = useTurn(`${job.step} ${job.state}`, 3000);
  const { value } = useGet<{ points: PacePoint[] }>(`/v1/jobs/${job.id}/progress`, turn);
  const points = useMemo(() => rates(value?.points ?? []), [value]);
  const steps = job.steps ?? 0;
  const part = steps > 0 ? (job.step ?? 0) / steps : 0;
  const loss = useMemo(() => losses(value?.points ?? []), [value]);
  const now = store.now();
  // Where there is an estimate, it is in a panel of its own, and nothing beside it says otherwise.
  const end = job.estimate ? null : likelyEnd(job, now);
  return (
    <div class="rate">
      <div class="rate-row">
        <Bar part={part} label={percent(part)} />
        <b>{percent(part)}</b>
      </div>
      <p class="note">
        Step {count(job.step ?? 0)} of {count(steps)}
        {job.rate !== null && <>, {short(job.rate)} steps/s</>}
        {end !== null && <>, ends {due(end, now)} at this speed</>}
      </p>
      {(value?.points.length ?? 0) >= LEAST && <Chart label="Steps per second" points={points} series={[{ name: 'steps/s', hue: 'hue-0' }]} height={120} />}
      {loss.length > 0 && <Chart label="Loss by step" points={loss} series={[{ name: 'loss', hue: 'hue-2' }]} height={140} time={(step) => `step ${count(step)}`} />}
    </div>
  );
}
