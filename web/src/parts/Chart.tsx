// A small chart of areas or lines over time, drawn by hand.

import { useRef, useState } from 'preact/hooks';
import { clock, tidy } from '../lib/format';
import type { Point } from '../lib/spans';
import { useWidth } from '../lib/width';

export interface Series { name: string; hue: string }

interface Props {
  label: string;
  points: Point[];
  series: Series[];
  stacked?: boolean;
  height?: number;
  /** A line at this height, such as the capacity. */
  limit?: number;
  /** How a time on the axis is written; as a time of day where nothing is said. */
  time?: (time: number) => string;
  format?: (value: number) => string;
  /** A time to mark. */
  mark?: number;
  /** Called with the time that is clicked on. */
  pick?: (time: number) => void;
  /** Called with the span of time that is dragged over. */
  zoom?: (from: number, to: number) => void;
}

const LEFT = 38;
const BOTTOM = 18;
const TOP = 6;

export function Chart({ label, points, series, stacked = false, height = 150, limit, time, format = tidy, mark, pick, zoom }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [hover, setHover] = useState<number | null>(null);
  const [from, setFrom] = useState<number | null>(null);
  const now = points[points.length - 1]?.time ?? 0;
  const write = time ?? ((at: number) => clock(at, now));
  const tops = points.map((point) => (stacked ? sum(point.values) : Math.max(...point.values, 0)));
  const most = nice(Math.max(limit ?? 0, ...tops, 1e-9));
  const x = (n: number) => LEFT + ((width - LEFT - 6) * n) / Math.max(1, points.length - 1);
  const y = (value: number) => TOP + (height - TOP - BOTTOM) * (1 - value / most);
  const under = (event: MouseEvent): number | null => {
    const left = event.clientX - box.current!.getBoundingClientRect().left;
    const n = Math.round(((left - LEFT) / Math.max(1, width - LEFT - 6)) * (points.length - 1));
    return n >= 0 && n < points.length ? n : null;
  };
  const up = (event: MouseEvent) => {
    const n = under(event);
    setFrom(null);
    if (n === null || from === null) return;
    if (zoom && Math.abs(n - from) > 2) zoom(points[Math.min(n, from)]!.time, points[Math.max(n, from)]!.time);
    else pick?.(points[n]!.time);
  };
  const shown = hover === null ? undefined : points[hover];
  const marked = mark === undefined ? -1 : ((mark - (points[0]?.time ?? 0)) / Math.max(1e-9, now - (points[0]?.time ?? 0))) * (points.length - 1);
  return (
    <div
      class={`chart ${pick || zoom ? 'can-pick' : ''}`} ref={box} onMouseMove={(event) => setHover(under(event))} onMouseLeave={() => { setHover(null); setFrom(null); }}
      onMouseDown={(event) => { if (pick || zoom) { event.preventDefault(); setFrom(under(event)); } }} onMouseUp={up}
    >
      <div class="legend" aria-hidden="true">
        {series.map((one, n) => (
          <span key={one.name}><i class={one.hue} />{one.name}{shown && <b>{format(shown.values[n] ?? 0)}</b>}</span>
        ))}
        {shown && <span class="legend-time">{write(shown.time)}</span>}
      </div>
      <svg width={width} height={height} role="img" aria-label={`${label}: ${last(points, series, format)}`}>
        {[0, most / 2, most].map((value) => (
          <g key={value} class="axis">
            <line x1={LEFT} x2={width - 6} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 6} y={y(value) + 4} text-anchor="end">{format(value)}</text>
          </g>
        ))}
        {width > 0 && points.length > 1 && (stacked ? areas(points, series, x, y) : lines(points, series, x, y))}
        {limit !== undefined && <line class="limit" x1={LEFT} x2={width - 6} y1={y(limit)} y2={y(limit)} />}
        {points.length > 1 && [0, Math.floor(points.length / 2), points.length - 1].map((n, k) => (
          <text key={n} class="tick" x={x(n)} y={height - 4} text-anchor={['start', 'middle', 'end'][k]}>{write(points[n]!.time)}</text>
        ))}
        {zoom && from !== null && hover !== null && <rect class="brush" x={x(Math.min(from, hover))} width={x(Math.abs(hover - from)) - LEFT} y={TOP} height={height - TOP - BOTTOM} />}
        {marked >= 0 && marked <= points.length - 1 && <line class="mark-time" x1={x(marked)} x2={x(marked)} y1={TOP} y2={height - BOTTOM} />}
        {hover !== null && <line class="cursor" x1={x(hover)} x2={x(hover)} y1={TOP} y2={height - BOTTOM} />}
      </svg>
    </div>
  );
}

type Scale = (value: number) => number;

function areas(points: Point[], series: Series[], x: Scale, y: Scale) {
  const base = points.map(() => 0);
  return series.map((one, which) => {
    const low = points.map((_, n) => `${x(n).toFixed(1)},${y(base[n]!).toFixed(1)}`).reverse();
    points.forEach((point, n) => { base[n]! += point.values[which] ?? 0; });
    const high = points.map((_, n) => `${x(n).toFixed(1)},${y(base[n]!).toFixed(1)}`);
    return <polygon key={one.name} class={`area ${one.hue}`} points={[...high, ...low].join(' ')} />;
  });
}

function lines(points: Point[], series: Series[], x: Scale, y: Scale) {
  return series.map((one, which) => {
    const path = points.map((point, n) => `${x(n).toFixed(1)},${y(point.values[which] ?? 0).toFixed(1)}`);
    return <polyline key={one.name} class={`line ${one.hue}`} points={path.join(' ')} />;
  });
}

function sum(values: number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

/** The next round number: 1, 2 or 5 times a power of ten. */
export function nice(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 4, 5, 10].find((factor) => factor * power >= value * 0.999) ?? 10;
  return factor * power;
}

function last(points: Point[], series: Series[], format: (value: number) => string): string {
  const end = points[points.length - 1];
  if (!end) return 'nothing yet';
  return series.map((one, n) => `${one.name} ${format(end.values[n] ?? 0)}`).join(', ');
}
