// Every device as a cell: who holds it by colour, how busy it is by how full it is, what is wrong by a mark. A canvas,
// because there may be thousands. The keyboard reaches each cell, and what a cell says is also said aloud.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ink } from '../lib/colors';
import { onTheme } from '../lib/theme';
import { useWidth } from '../lib/width';
import { layout, place, step, under, type Layout, type Spot, type Tile } from './map-layout';

interface Props {
  label: string;
  tiles: Tile[];
  /** How many devices are shown on the whole page: what decides their size. */
  devices: number;
  /** What a cell is, line by line. */
  describe: (spot: Spot) => string[];
  open: (spot: Spot) => void;
}

export function DeviceMap({ label, tiles, devices, describe, open }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const [spot, setSpot] = useState<Spot | null>(null);
  const [, repaint] = useState(0);
  useEffect(() => onTheme(() => repaint((n) => n + 1)), []);
  const at = layout(tiles, width, devices);
  useEffect(() => { if (canvas.current && width > 0) paint(canvas.current, at, tiles, spot); });
  const found = (event: MouseEvent) => {
    const frame = canvas.current!.getBoundingClientRect();
    return under(at, tiles, event.clientX - frame.left, event.clientY - frame.top);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && spot) return open(spot);
    if (event.key === 'Escape') return setSpot(null);
    const next = spot ? step(at, tiles, spot, event.key) : { tile: 0, cell: 0 };
    if (!/^(Arrow|Home|End)/.test(event.key)) return;
    event.preventDefault();
    setSpot(next);
  };
  const lines = spot && tiles[spot.tile]?.cells[spot.cell] ? describe(spot) : [];
  return (
    <div class="map" ref={box}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`${label}. Arrow keys go from device to device, Enter opens its job.`}
        style={{ width: `${width}px`, height: `${at.height}px` }}
        onMouseMove={(event) => setSpot(found(event))}
        onMouseLeave={() => setSpot(null)}
        onClick={(event) => { const hit = found(event); if (hit) open(hit); }}
        onKeyDown={key}
        onBlur={() => setSpot(null)}
      />
      <div class="sr" aria-live="polite">{lines.join(', ')}</div>
      {spot && lines.length > 0 && <Tip at={at} spot={spot} lines={lines} />}
    </div>
  );
}

function Tip({ at, spot, lines }: { at: Layout; spot: Spot; lines: string[] }) {
  const [x, y] = place(at, spot.tile, spot.cell);
  const right = x > at.width / 2;
  const style = right
    ? { right: `${at.width - x - at.cell}px`, top: `${y + at.cell + 6}px` }
    : { left: `${x}px`, top: `${y + at.cell + 6}px` };
  return (
    <div class="tip" style={style} aria-hidden="true">
      {lines.map((line, n) => <div key={n} class={n === 0 ? 'tip-head' : ''}>{line}</div>)}
    </div>
  );
}

function paint(canvas: HTMLCanvasElement, at: Layout, tiles: Tile[], spot: Spot | null): void {
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(at.width * scale), Math.round(at.height * scale)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const pen = canvas.getContext('2d')!;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, at.width, at.height);
  pen.font = '11px system-ui, sans-serif';
  pen.textBaseline = 'alphabetic';
  tiles.forEach((tile, n) => paintTile(pen, at, tile, n));
  if (spot && tiles[spot.tile]?.cells[spot.cell]) {
    const [x, y] = place(at, spot.tile, spot.cell);
    pen.strokeStyle = ink('text');
    pen.lineWidth = 1.5;
    pen.strokeRect(x - 1, y - 1, at.cell + 2, at.cell + 2);
  }
}

function paintTile(pen: CanvasRenderingContext2D, at: Layout, tile: Tile, n: number): void {
  const [left, top] = place(at, n, 0);
  const up = tile.state === 'up';
  if (at.label > 0) {
    pen.fillStyle = ink(up ? 'faint' : tile.state === 'draining' ? 'warn' : 'bad');
    pen.fillText(fit(pen, tile.name, at.tileWidth - 12), left, top - 4);
  }
  tile.cells.forEach((cell, c) => {
    const [x, y] = place(at, n, c);
    paintCell(pen, x, y, at.cell, cell, tile.state);
  });
}

function paintCell(pen: CanvasRenderingContext2D, x: number, y: number, size: number, cell: Tile['cells'][0], state: string): void {
  pen.globalAlpha = state === 'down' || state === 'unreachable' ? 0.35 : 1;
  pen.fillStyle = ink('cell');
  pen.fillRect(x, y, size, size);
  const each = size / Math.max(1, cell.hues.length);
  cell.hues.forEach((hue, n) => {
    const [left, wide] = [x + n * each, n > 0 ? each - 1 : each];
    pen.fillStyle = ink(hue);
    const full = cell.busy === null ? 1 : Math.max(0.06, cell.busy);
    pen.globalAlpha *= cell.idle ? 0.35 : 0.42;
    pen.fillRect(left + (n > 0 ? 1 : 0), y, wide, size);
    pen.globalAlpha = state === 'up' || state === 'draining' ? 1 : 0.35;
    if (!cell.idle) pen.fillRect(left + (n > 0 ? 1 : 0), y + size * (1 - full), wide, size * full);
  });
  pen.globalAlpha = 1;
  if (cell.broken) cross(pen, x, y, size, 'bad');
  if (cell.frozen) frost(pen, x, y, size);
  if (!cell.broken && state === 'draining') corner(pen, x, y, size, 'warn');
}

function cross(pen: CanvasRenderingContext2D, x: number, y: number, size: number, tone: string): void {
  pen.strokeStyle = ink(tone);
  pen.lineWidth = size > 8 ? 2 : 1.2;
  pen.beginPath();
  pen.moveTo(x + 2, y + 2);
  pen.lineTo(x + size - 2, y + size - 2);
  pen.moveTo(x + size - 2, y + 2);
  pen.lineTo(x + 2, y + size - 2);
  pen.stroke();
}

/** A frozen job: a small diamond at the bottom left. */
function frost(pen: CanvasRenderingContext2D, x: number, y: number, size: number): void {
  const r = Math.max(2, size * 0.22);
  const [cx, cy] = [x + r + 1, y + size - r - 1];
  pen.fillStyle = ink('panel');
  pen.strokeStyle = ink('hue-5');
  pen.lineWidth = 1.2;
  pen.beginPath();
  pen.moveTo(cx, cy - r);
  pen.lineTo(cx + r, cy);
  pen.lineTo(cx, cy + r);
  pen.lineTo(cx - r, cy);
  pen.closePath();
  pen.fill();
  pen.stroke();
}

function corner(pen: CanvasRenderingContext2D, x: number, y: number, size: number, tone: string): void {
  pen.fillStyle = ink(tone);
  pen.beginPath();
  pen.moveTo(x + size, y);
  pen.lineTo(x + size, y + size * 0.45);
  pen.lineTo(x + size * 0.55, y);
  pen.fill();
}

function fit(pen: CanvasRenderingContext2D, text: string, width: number): string {
  if (pen.measureText(text).width <= width) return text;
  let short = text;
  while (short.length > 1 && pen.measureText(`…${short}`).width > width) short = short.slice(1);
  return `…${short}`;
}
