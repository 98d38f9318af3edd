// How long jobs of each size waited: boxes of the middle half, whiskers from the tenth to the ninetieth percentile.

import { useRef, useState } from 'preact/hooks';
import { count, plural, span } from '../lib/format';
import type { Box, Report, RunView } from '../lib/report';
import { useWidth } from '../lib/width';
import { Panel } from '../parts/bits';
import { logScale, type LogScale } from './log-scale';

const [LEFT, RIGHT, TOP, BOTTOM, HEIGHT] = [50, 8, 6, 34, 250];

export function Sizes({ report, runs, hue }: { report: Report; runs: RunView[]; hue: (policy: string) => string }) {
  const classes = report.classes.map((name, n) => ({ name, n })).filter(({ n }) => runs.some((run) => run.boxes[n]));
  const values = runs.flatMap((run) => run.boxes.flatMap((box) => (box ? [box.p10, box.p90, box.mean] : [])));
  return (
    <Panel title="Waiting by size of job" aside={<span class="note">box: the middle half; ◆ mean</span>}>
      {values.some((value) => value > 0) ? <Boxes classes={classes} runs={runs} values={values} hue={hue} /> : <p class="note">No job had to wait.</p>}
    </Panel>
  );
}

interface BoxesProps { classes: { name: string; n: number }[]; runs: RunView[]; values: number[]; hue: (policy: string) => string }

function Boxes({ classes, runs, values, hue }: BoxesProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [hover, setHover] = useState<number | null>(null);
  const y = logScale(values, HEIGHT - BOTTOM - 4, TOP, 24);
  const each = Math.max(1, (width - LEFT - RIGHT) / classes.length);
  const slot = Math.min(32, (each * 0.86) / runs.length);
  const shown = hover === null ? undefined : classes[hover];
  return (
    <div class="chart" ref={box} onMouseLeave={() => setHover(null)}
      onMouseMove={(event) => { const n = Math.floor((event.clientX - box.current!.getBoundingClientRect().left - LEFT) / each); setHover(n >= 0 && n < classes.length ? n : null); }}>
      <div class="legend" aria-hidden="true">
        {runs.map((run) => <span key={run.policy}><i class={hue(run.policy)} />{run.policy}{shown && run.boxes[shown.n] && <b>{span(run.boxes[shown.n]!.p50)}</b>}</span>)}
        {shown && <span class="legend-time">median, {shown.name} devices, {plural(largest(runs, shown.n), 'job')}</span>}
      </div>
      <svg width={width} height={HEIGHT} role="img" aria-label={classes.map(({ name, n }) => `${name} devices: ${runs.map((run) => `${run.policy} median ${span(run.boxes[n]?.p50 ?? NaN)}`).join(', ')}`).join('; ')}>
        {y.ticks.map((tick) => (
          <g key={tick.label} class="axis"><line x1={LEFT} x2={width - RIGHT} y1={tick.at} y2={tick.at} /><text x={LEFT - 6} y={tick.at + 4} text-anchor="end">{tick.label}</text></g>
        ))}
        {width > 0 && classes.map(({ name, n }, k) => (
          <g key={name}>
            <text x={LEFT + each * (k + 0.5)} y={HEIGHT - BOTTOM + 14} text-anchor="middle">{name}</text>
            {each > 54 && <text x={LEFT + each * (k + 0.5)} y={HEIGHT - BOTTOM + 28} text-anchor="middle">{count(largest(runs, n))} jobs</text>}
            {runs.map((run, m) => run.boxes[n] && (
              <Mark key={run.policy} box={run.boxes[n]!} hue={hue(run.policy)} y={y} x={LEFT + each * (k + 0.5) + slot * (m + 0.5 - runs.length / 2)} half={Math.max(1.5, slot * 0.31)} />
            ))}
          </g>
        ))}
      </svg>
    </div>
  );
}

function largest(runs: RunView[], n: number): number {
  return Math.max(0, ...runs.map((run) => run.boxes[n]?.count ?? 0));
}

function Mark({ box, hue, y, x, half }: { box: Box; hue: string; y: LogScale; x: number; half: number }) {
  const [p10, p25, p50, p75, p90, mean] = [box.p10, box.p25, box.p50, box.p75, box.p90, box.mean].map((value) => y.at(value)) as [number, number, number, number, number, number];
  const m = Math.min(4, half);
  return (
    <g class={`box ${hue}`}>
      <path d={`M${x} ${p10}V${p25}M${x} ${p75}V${p90}M${x - half / 2} ${p10}h${half}M${x - half / 2} ${p90}h${half}`} />
      <rect x={x - half} width={half * 2} y={p75} height={Math.max(1, p25 - p75)} rx="2" />
      <path class="box-median" d={`M${x - half} ${p50}h${half * 2}`} />
      <path class="box-mean" d={`M${x} ${mean - m}l${m} ${m}l${-m} ${m}l${-m} ${-m}Z`} />
    </g>
  );
}
