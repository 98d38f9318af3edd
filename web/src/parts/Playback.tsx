// Time to go through: one slider for all recordings that are open, and a device map of each.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { count, percent, span } from '../lib/format';
import { clusterOf, heldAt, type Part, type Recording } from '../lib/simfile';
import { holding, series } from '../lib/spans';
import { Panel } from './bits';
import { Chart } from './Chart';
import { DeviceMap } from './DeviceMap';
import type { Cell, Spot, Tile } from './map-layout';

const STEPS = 1000;
const FRAME_MS = 60;

export function Playback({ recordings, end, clusters }: { recordings: Recording[]; end: number; clusters: string[] }) {
  const [at, setAt] = useState(0.25);
  const [playing, setPlaying] = useState(false);
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => setAt((was) => (was >= 1 ? 0 : Math.min(1, was + 1 / STEPS))), FRAME_MS);
    return () => clearInterval(timer);
  }, [playing]);
  const time = at * end;
  return (
    <>
      <div class="scrub" role="group" aria-label="Time">
        <button type="button" onClick={() => setPlaying(!playing)} aria-pressed={playing}>{playing ? 'Pause' : 'Play'}</button>
        <input type="range" min="0" max={STEPS} value={Math.round(at * STEPS)} aria-label="Time" aria-valuetext={span(time)}
          onInput={(event) => { setPlaying(false); setAt(Number(event.currentTarget.value) / STEPS); }} />
        <output>{span(time)} <small>of {span(end)}</small></output>
      </div>
      {recordings.map((recording) => <One key={recording.name} recording={recording} time={time} end={end} clusters={clusters} />)}
    </>
  );
}

function One({ recording, time, end, clusters }: { recording: Recording; time: number; end: number; clusters: string[] }) {
  const parts = useMemo(() => partsOf(recording, clusters), [recording, clusters]);
  const points = useMemo(
    () => series(recording.stretches, 0, end, 240, 2, (stretch) => [holding(stretch.doing) ? 1 : 0, 1]),
    [recording, end],
  );
  const held = heldAt(recording, time);
  const total = parts.reduce((sum, part) => sum + part.nodes * part.each, 0);
  let used = 0;
  for (const devices of held.values()) used += devices.size;
  const now = points[Math.min(points.length - 1, Math.round((time / Math.max(end, 1e-9)) * (points.length - 1)))];
  let first = 0;
  return (
    <Panel title={recording.name} aside={<span>{count(now?.values[1] ?? 0)} running, {count(now?.values[0] ?? 0)} waiting, {count(used)} of {count(total)} devices held ({percent(total > 0 ? used / total : 0)})</span>}>
      {parts.map((part, n) => {
        const base = first;
        first += part.nodes;
        return <Group key={n} part={part} base={base} recording={recording} held={held} time={time} total={total} />;
      })}
      <Chart label="Jobs over time" points={points} series={[{ name: 'waiting', hue: 'hue-1' }, { name: 'running', hue: 'hue-0' }]} height={120} time={span} />
    </Panel>
  );
}

interface GroupProps { part: Part; base: number; recording: Recording; held: Map<number, Map<number, number[]>>; time: number; total: number }

function Group({ part, base, recording, held, time, total }: GroupProps) {
  const tiles: Tile[] = Array.from({ length: part.nodes }, (_, n) => {
    const node = base + n;
    const away = recording.away.some(([gone, from, to]) => gone === node && from <= time && time < to);
    const cells: Cell[] = Array.from({ length: part.each }, (_, device) => {
      const jobs = held.get(node)?.get(device) ?? [];
      return { hues: jobs.map((job) => `hue-${job % 8}`), busy: null, broken: false, idle: false, frozen: false };
    });
    return { name: `${part.kind}-${n}`, state: away ? 'down' : 'up', cells };
  });
  const describe = (spot: Spot) => {
    const jobs = held.get(base + spot.tile)?.get(spot.cell) ?? [];
    return [`${part.kind}-${spot.tile} · device ${spot.cell}`, jobs.length > 0 ? `job ${jobs.join(' and ')}` : 'free'];
  };
  return (
    <div class="kind">
      <div class="kind-head"><h3>{part.kind}</h3><span>{count(part.nodes)} × {part.each}</span></div>
      <DeviceMap label={`${part.kind} at ${span(time)}`} tiles={tiles} devices={total} describe={describe} open={() => {}} />
    </div>
  );
}

/** The cluster of a report that fits what was used; else as much as was ever used. */
function partsOf(recording: Recording, clusters: string[]): Part[] {
  for (const spec of clusters) {
    const parts = clusterOf(spec);
    const nodes = parts?.flatMap((part) => Array.from({ length: part.nodes }, () => part.each));
    if (parts && nodes && nodes.length === recording.nodes.length && nodes.every((each, n) => (recording.nodes[n] ?? 0) <= each)) return parts;
  }
  const most = Math.max(1, ...Array.from(recording.nodes, (each) => each ?? 0));
  return [{ kind: 'node', nodes: recording.nodes.length, each: most }];
}
