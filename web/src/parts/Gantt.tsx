// Device use over time: a row for each node, a bar for each lease. A canvas as large as what is in sight, because
// there may be tens of thousands of bars.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ink } from '../lib/colors';
import { span } from '../lib/format';
import { called, hueOf, type Group, type Recording } from '../lib/simfile';
import { onTheme } from '../lib/theme';
import { band, hit, rowsOf, within, type Hit, type Row, type Rows } from './gantt-layout';

const MOST_HEIGHT = 460;

interface Props {
  recording: Recording; groups: Group[]; end: number; time: number; pick: (time: number) => void;
  shown: [number, number]; show: (span: [number, number] | null) => void;
}

interface Look { width: number; height: number; scroll: number }

export function Gantt({ recording, groups, end, time, pick, shown, show }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [look, setLook] = useState<Look>({ width: 0, height: 0, scroll: 0 });
  const [over, setOver] = useState<{ hit: Hit; x: number; y: number } | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const [, repaint] = useState(0);
  const rows = useMemo(() => rowsOf(groups, recording.leases), [groups, recording]);
  const seen = () => { const it = box.current; if (it) setLook({ width: it.clientWidth, height: it.clientHeight, scroll: it.scrollTop }); };
  useEffect(() => onTheme(() => repaint((n) => n + 1)), []);
  useEffect(() => {
    const watcher = new ResizeObserver(seen);
    watcher.observe(box.current!);
    return () => watcher.disconnect();
  }, []);
  useEffect(() => { if (canvas.current && look.width > 0) paint(canvas.current, rows, recording, look, shown, time, drag); });
  const timeAt = (event: MouseEvent) => shown[0] + ((event.clientX - box.current!.getBoundingClientRect().left - rows.left) / Math.max(1, look.width - rows.left)) * (shown[1] - shown[0]);
  const zoom = (factor: number, about = (shown[0] + shown[1]) / 2) => show(within(about - (about - shown[0]) * factor, about + (shown[1] - about) * factor, end));
  const pan = (part: number) => { const by = (shown[1] - shown[0]) * part; show(within(shown[0] + by, shown[1] + by, end)); };
  const move = (event: MouseEvent) => {
    const frame = box.current!.getBoundingClientRect();
    const found = hit(rows, timeAt(event), event.clientY - frame.top + box.current!.scrollTop);
    setOver(found && { hit: found, x: event.clientX - frame.left, y: event.clientY - frame.top + box.current!.scrollTop });
    if (drag) setDrag([drag[0], timeAt(event)]);
  };
  const up = (event: MouseEvent) => {
    if (!drag) return;
    const [from, to] = [Math.min(drag[0], timeAt(event)), Math.max(drag[0], timeAt(event))];
    setDrag(null);
    if (to - from > (shown[1] - shown[0]) / 100) show(within(from, to, end));
    else pick(from);
  };
  const key = (event: KeyboardEvent) => {
    const acts: Record<string, () => void> = { '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), '0': () => show(null), ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25) };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  return (
    <div class="gantt">
      <div class="gantt-tools">
        <button type="button" class="small" onClick={() => zoom(0.5)} aria-label="Zoom in">+</button>
        <button type="button" class="small" onClick={() => zoom(2)} aria-label="Zoom out">−</button>
        <button type="button" class="small" onClick={() => show(null)}>All of it</button>
        <span class="note">Drag to zoom in, click to set the time of the map.</span>
      </div>
      <div class="gantt-view" ref={box} onScroll={seen} style={{ maxHeight: `${MOST_HEIGHT}px` }}>
        <div style={{ height: `${rows.total}px` }}>
          <canvas ref={canvas} tabIndex={0} role="application" aria-label={`Devices in use from ${span(shown[0])} to ${span(shown[1])}. Plus and minus zoom, arrows move, 0 shows all.`}
            onMouseMove={move} onMouseLeave={() => { setOver(null); setDrag(null); }} onMouseDown={(event) => setDrag([timeAt(event), timeAt(event)])} onMouseUp={up} onKeyDown={key} />
        </div>
        {over && !drag && (
          <div class="tip" style={{ top: `${over.y + 14}px`, ...(over.x > look.width / 2 ? { right: `${look.width - over.x}px` } : { left: `${over.x}px` }) }} aria-hidden="true">
            <div class="tip-head">{called(recording, over.hit.job)}</div>
            <div>{over.hit.row.name}, {over.hit.strip.devices} {over.hit.row.kind}</div>
            <div>{span(over.hit.strip.lease.from)} – {span(over.hit.strip.lease.to)}</div>
          </div>
        )}
      </div>
    </div>
  );
}

function paint(canvas: HTMLCanvasElement, rows: Rows, recording: Recording, look: Look, shown: [number, number], time: number, drag: [number, number] | null): void {
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(look.width * scale), Math.round(look.height * scale)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  canvas.style.width = `${look.width}px`;
  canvas.style.height = `${look.height}px`;
  const pen = canvas.getContext('2d')!;
  pen.setTransform(scale, 0, 0, scale, 0, -look.scroll * scale);
  pen.clearRect(0, look.scroll, look.width, look.height);
  pen.font = '11px system-ui, sans-serif';
  const x = (at: number) => rows.left + ((at - shown[0]) / (shown[1] - shown[0])) * (look.width - rows.left);
  for (const row of rows.rows) {
    if (row.top + row.height >= look.scroll && row.top <= look.scroll + look.height) paintRow(pen, rows.left, recording, row, x, look.width, shown);
  }
  paintAxis(pen, rows, look, x, shown);
  pen.strokeStyle = ink('text');
  pen.lineWidth = 1;
  if (time >= shown[0] && time <= shown[1]) pen.strokeRect(x(time), look.scroll, 0.5, look.height);
  if (!drag) return;
  pen.globalAlpha = 0.25;
  pen.fillStyle = ink('accent');
  pen.fillRect(x(Math.min(...drag)), look.scroll, Math.abs(x(drag[1]) - x(drag[0])), look.height);
  pen.globalAlpha = 1;
}

function paintRow(pen: CanvasRenderingContext2D, left: number, recording: Recording, row: Row, x: (at: number) => number, width: number, [from, to]: [number, number]): void {
  pen.fillStyle = ink('cell');
  pen.globalAlpha = 0.45;
  pen.fillRect(left, row.top, width - left, row.height - 1);
  pen.globalAlpha = 1;
  for (const strip of row.strips) {
    if (strip.lease.from > to) break;
    if (strip.lease.to < from) continue;
    const [begin, end] = [Math.max(left, x(strip.lease.from)), Math.min(width, x(strip.lease.to))];
    strip.lease.jobs.forEach((job, n) => {
      const [top, height] = band(row, strip, n);
      pen.fillStyle = ink(hueOf(recording, job));
      pen.fillRect(begin, top, Math.max(0.6, end - begin - 0.6), Math.max(0.8, height - 0.6));
    });
  }
  pen.fillStyle = ink('faint');
  pen.fillText(row.name, 2, row.top + Math.min(row.height - 3, row.height / 2 + 4), left - 8);
}

/** Times above all, where they stay in sight. */
function paintAxis(pen: CanvasRenderingContext2D, rows: Rows, look: Look, x: (at: number) => number, [from, to]: [number, number]): void {
  pen.fillStyle = ink('panel');
  pen.fillRect(0, look.scroll, look.width, 21);
  pen.fillStyle = ink('faint');
  const ticks = Math.max(2, Math.floor((look.width - rows.left) / 130));
  for (let n = 0; n <= ticks; n++) {
    const at = from + ((to - from) * n) / ticks;
    pen.textAlign = n === 0 ? 'left' : n === ticks ? 'right' : 'center';
    pen.fillText(span(at), x(at), look.scroll + 14);
  }
  pen.textAlign = 'left';
}
