// Which part of the jobs was done, or waited, within a time: one step line for each policy.

import { useRef, useState } from 'preact/hooks';
import { percent, span } from '../lib/format';
import type { Cdf, RunView } from '../lib/report';
import { useWidth } from '../lib/width';
import { Panel } from '../parts/bits';
import { logScale } from './log-scale';

const [LEFT, RIGHT, TOP, BOTTOM, HEIGHT] = [42, 8, 6, 20, 250];

export function Distribution({ runs, hue }: { runs: RunView[]; hue: (policy: string) => string }) {
  const [measure, setMeasure] = useState<'jct' | 'wait'>('jct');
  const drawn = runs.filter((run) => run[measure].x.length > 0);
  const choices: ['jct' | 'wait', string][] = [['jct', 'completion'], ['wait', 'waiting']];
  const aside = (
    <div class="choice" role="group" aria-label="Measure">
      {choices.map(([value, name]) => <button key={value} type="button" aria-pressed={measure === value} onClick={() => setMeasure(value)}>{name}</button>)}
    </div>
  );
  return (
    <Panel title="Jobs done within a given time" aside={aside}>
      {drawn.length === 0 ? <p class="note">No job finished.</p> : <Lines runs={drawn} measure={measure} hue={hue} />}
    </Panel>
  );
}

function Lines({ runs, measure, hue }: { runs: RunView[]; measure: 'jct' | 'wait'; hue: (policy: string) => string }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [hover, setHover] = useState<number | null>(null);
  const right = Math.max(LEFT + 10, width - RIGHT);
  const x = logScale(runs.flatMap((run) => run[measure].x), LEFT, right, 58);
  const y = (part: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - part);
  const at = hover === null ? null : secondsAt(x.at, hover, runs, measure);
  return (
    <div class="chart" ref={box} onMouseLeave={() => setHover(null)}
      onMouseMove={(event) => { const left = event.clientX - box.current!.getBoundingClientRect().left; setHover(left >= LEFT && left <= right ? left : null); }}>
      <div class="legend" aria-hidden="true">
        {runs.map((run) => <span key={run.policy}><i class={hue(run.policy)} />{run.policy}{at !== null && <b>{percent(shareAt(run[measure], at))}</b>}</span>)}
        {at !== null && <span class="legend-time">within {span(at)}</span>}
      </div>
      <svg width={width} height={HEIGHT} role="img" aria-label={runs.map((run) => `${run.policy}: half within ${span(quantile(run[measure], 0.5))}, 90 % within ${span(quantile(run[measure], 0.9))}`).join('; ')}>
        {[0, 0.25, 0.5, 0.75, 1].map((part) => (
          <g key={part} class="axis"><line x1={LEFT} x2={right} y1={y(part)} y2={y(part)} /><text x={LEFT - 6} y={y(part) + 4} text-anchor="end">{percent(part)}</text></g>
        ))}
        {x.ticks.map((tick) => (
          <g key={tick.label} class="axis"><line x1={tick.at} x2={tick.at} y1={TOP} y2={HEIGHT - BOTTOM} /><text x={tick.at} y={HEIGHT - 4} text-anchor="middle">{tick.label}</text></g>
        ))}
        {width > 0 && runs.map((run) => <path key={run.policy} class={`line ${hue(run.policy)}`} d={steps(run[measure], x.at, y, right)} />)}
        {hover !== null && <line class="cursor" x1={hover} x2={hover} y1={TOP} y2={HEIGHT - BOTTOM} />}
      </svg>
    </div>
  );
}

/** Up at each value, and on to the right edge once all are counted. */
function steps(cdf: Cdf, x: (value: number) => number, y: (part: number) => number, right: number): string {
  const parts = cdf.x.map((value, n) => `H${x(value).toFixed(1)}V${y(cdf.p[n]!).toFixed(1)}`);
  return `M${x(cdf.x[0]!).toFixed(1)} ${y(0)}${parts.join('')}H${right}`;
}

/** The part that is at or below a value. */
export function shareAt(cdf: Cdf, value: number): number {
  let [low, high] = [0, cdf.x.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cdf.x[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low > 0 ? cdf.p[low - 1]! : 0;
}

function quantile(cdf: Cdf, part: number): number {
  return cdf.x[cdf.p.findIndex((p) => p >= part)] ?? NaN;
}

/** The time that a place on the axis stands for: the axis is monotone, so halving finds it. */
function secondsAt(x: (value: number) => number, place: number, runs: RunView[], measure: 'jct' | 'wait'): number {
  let [low, high] = [1, Math.max(1, ...runs.flatMap((run) => run[measure].x))];
  for (let n = 0; n < 50; n++) {
    const middle = Math.sqrt(low * high);
    if (x(middle) < place) low = middle;
    else high = middle;
  }
  return high;
}
