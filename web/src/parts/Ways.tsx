// The answers to a what-if beside each other, on one axis of time.

import { unknown } from '../lib/foretold';
import { ago, clock, plural, span, where } from '../lib/format';
import { link } from '../lib/route';
import { store } from '../lib/store';
import type { Delay, Interval, Unknown, WhatIf, WhatIfRow } from '../lib/types';

export function Ways({ answer, now }: { answer: WhatIf; now: number }) {
  const times = answer.rows.flatMap((row) => [row.start, row.end, row.end_interval?.high ?? null, row.start_interval?.high ?? null]);
  const last = Math.max(now + 60, ...times.filter((time): time is number => time !== null));
  const at = (time: number) => `${Math.max(0, Math.min(100, ((time - now) / (last - now)) * 100))}%`;
  const first = answer.rows[0];
  return (
    <div class="ways">
      <div class="wide-table" tabIndex={0}>
        <table>
          <thead><tr><th scope="col">Way</th><th scope="col">Where</th><th scope="col" class="ways-axis">now – {clock(last, now)}</th><th scope="col">Starts</th><th scope="col">Ends</th><th scope="col">Deadline</th><th scope="col">Others</th></tr></thead>
          <tbody>{answer.rows.map((row) => <Way key={row.label} row={row} now={now} at={at} />)}</tbody>
        </table>
      </div>
      {answer.rows.filter((row) => row.refused).map((row) => (
        <p key={row.label} class="note"><b>{row.label}</b> would be refused: {row.refused}{row.earliest !== null && ` The earliest deadline that can be promised is ${clock(row.earliest, now)}.`}</p>
      ))}
      {first && first.delays.length > 0 && <><h3>Jobs that would end later</h3><Delays delays={first.delays} /></>}
      <p class="note">Bars assume that no other jobs arrive{answer.rows.some((row) => row.rough || row.rough_end) && ', ≈ usually right to within 25 %'}; whiskers cover 9 outcomes in 10 if jobs keep arriving.{answer.cut && ' Incomplete: the rest would take too long to compute.'}</p>
    </div>
  );
}

function Way({ row, now, at }: { row: WhatIfRow; now: number; at: (time: number) => string }) {
  return (
    <tr class={row.best ? 'is-best' : ''}>
      <th scope="row">{row.label}{row.best && <span class="state node-up">best</span>}</th>
      <td>{row.kind ? <>{row.gpus} × {row.kind} <small class="below">{row.nodes.slice(0, 2).map(where).join(' ')}{row.nodes.length > 2 && ` +${row.nodes.length - 2}`}</small></> : ''}</td>
      <td class="ways-axis">{!row.refused && row.start !== null && <Span row={row} at={at} now={now} />}</td>
      <td>{row.refused ? <span class="bad">refused</span> : <When time={row.start} interval={row.start_interval} why={row.start_unknown} rough={row.rough} now={now} not={row.not_before} />}</td>
      <td>{!row.refused && <When time={row.end} interval={row.end_interval} why={row.end_unknown} rough={row.rough_end} now={now} not={row.not_before} />}</td>
      <td>{row.in_time === false && <span class="bad">missed</span>}{row.in_time === true && <span class="good">kept</span>}</td>
      <td>{others(row)}</td>
    </tr>
  );
}

function Span({ row, at, now }: { row: WhatIfRow; at: (time: number) => string; now: number }) {
  const end = row.end ?? Infinity;
  const whisker = row.end_interval;
  return (
    <span class="ways-track" role="img" aria-label={`starts ${ago(row.start!, now)}, ends ${row.end === null ? 'not within weeks' : ago(row.end, now)}`}>
      <i class="ways-run" style={{ left: at(row.start!), right: `calc(100% - ${at(end)})` }} />
      {whisker && <i class="ways-whisker" style={{ left: at(whisker.low), right: `calc(100% - ${at(whisker.high ?? Infinity)})` }} />}
    </span>
  );
}

interface WhenProps { time: number | null; interval: Interval | null; why: Unknown | null; rough: boolean; now: number; not: number | null }

function When({ time, interval, why, rough, now, not }: WhenProps) {
  if (time === null && not != null) return <span class="note">later than {ago(not, now)}</span>;
  if (time === null) return <span class="note">not within weeks</span>;
  const low = interval ? Math.min(interval.low, time) : time;
  const high = interval ? (interval.high === null ? null : Math.max(interval.high, time)) : time;
  return (
    <>
      {rough && <abbr title="about">≈ </abbr>}{ago(Math.max(time, now), now)}
      {!interval && why && <small class="below"><abbr title={unknown(why)}>or later</abbr></small>}
      {(high === null || high - low >= 1) && <small class="below">{span(Math.max(0, low - now))} – {high === null ? '…' : span(Math.max(0, high - now))}</small>}
    </>
  );
}

function others(row: WhatIfRow) {
  if (row.alone) return <span class="note">…</span>;
  const later = row.delayed - row.stranded;
  const parts = [
    later > 0 && <>{plural(later, 'job')} later<small class="below">by {span(row.delayed_s)} in all</small></>,
    row.stopped > 0 && <small class="below">{plural(row.stopped, 'job')} stopped</small>,
    row.stranded > 0 && <small class="below bad">{plural(row.stranded, 'job')} would not finish</small>,
    row.late > 0 && <small class="below bad">{plural(row.late, 'job')} too late</small>,
  ].filter(Boolean);
  return parts.length > 0 ? <>{parts}</> : <span class="note">nobody</span>;
}

/** Whom something would cost what, those first that lose most. */
export function Delays({ delays }: { delays: Delay[] }) {
  return (
    <ul class="risks">
      {delays.map((delay) => (
        <li key={delay.job}>
          {store.jobs.has(delay.job) ? <a href={link(['jobs', String(delay.job)])}>{delay.name} ({delay.job})</a> : <span>{delay.name} ({delay.job})</span>}
          <span>{[delay.stops > 0 && `stopped ${plural(delay.stops, 'more time')}`, delay.late && 'after its deadline'].filter(Boolean).join(', ')}</span>
          <b>{delay.delay_s === null ? 'would not finish' : `${span(delay.delay_s)} later`}</b>
        </li>
      ))}
    </ul>
  );
}
