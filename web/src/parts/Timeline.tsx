// What a job did, as a bar of stretches and as a list.

import { useState } from 'preact/hooks';
import { clock, runs, span } from '../lib/format';
import { isOver } from '../lib/store';
import { stretches, type Stretch } from '../lib/spans';
import type { Fact, Job, Place } from '../lib/types';
import { Empty } from './bits';

const SHOWN = 8;

export function Timeline({ facts, job, now }: { facts: Fact[]; job: Job; now: number }) {
  const [all, setAll] = useState(false);
  const list = stretches(facts).filter((stretch) => stretch.job === job.id);
  const from = list[0]?.from ?? job.submitted_at;
  const end = job.ended_at ?? now;
  if (list.length === 0) return <Empty title={isOver(job) ? 'Its history is no longer stored.' : 'No events yet.'} />;
  const whole = Math.max(1e-6, end - from);
  const rows = list.map((stretch) => ({ stretch, to: Math.min(stretch.to ?? end, end) })).filter(({ stretch, to }) => to - stretch.from > 0.0005);
  const listed = all ? rows : rows.slice(-SHOWN);
  return (
    <div class="timeline">
      <div class="timeline-bar" role="img" aria-label={rows.map(({ stretch, to }) => `${stretch.doing} ${span(to - stretch.from)}`).join(', ')}>
        {rows.map(({ stretch, to }, n) => (
          <i key={n} class={`doing-${stretch.doing}`} title={`${stretch.doing} ${span(to - stretch.from)}`}
            style={{ left: `${((stretch.from - from) / whole) * 100}%`, width: `${Math.max(0.15, ((to - stretch.from) / whole) * 100)}%` }} />
        ))}
      </div>
      <div class="timeline-ends"><span>{clock(from, now)}</span><span>{clock(end, now)}</span></div>
      <ol class="timeline-list">
        {rows.length > SHOWN && (
          <li><button type="button" class="quiet" onClick={() => setAll(!all)}>{all ? 'Fewer' : `${rows.length - SHOWN} earlier`}</button></li>
        )}
        {listed.map(({ stretch, to }, n) => (
          <li key={n}>
            <time>{clock(stretch.from, now)}</time>
            <span class={`dot doing-${stretch.doing}`} />
            <span><b>{WORDS[stretch.doing]}</b> {where(stretch)}{stretch.why && <em> {stretch.why}</em>}</span>
            <span class="num">{span(to - stretch.from)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

const WORDS: Record<Stretch['doing'], string> = {
  waiting: 'waited', starting: 'started', running: 'ran', stopping: 'saved and stopped', frozen: 'was frozen',
};

function where(stretch: Stretch): string {
  if (stretch.places.length === 0 || (stretch.doing === 'waiting' || stretch.doing === 'stopping')) return '';
  const places = stretch.places.slice(0, 4).map((place: Place) => `${place.node}[${runs(place.devices)}]`);
  const more = stretch.places.length > 4 ? ` and ${stretch.places.length - 4} more nodes` : '';
  return `on ${stretch.gpus}${stretch.kind ? ` × ${stretch.kind}` : ''}, ${places.join(', ')}${more}`;
}
