// Time to go through: one slider for all recordings that are open, and of each a device map and who held what when.

import { useEffect, useMemo, useState } from 'preact/hooks';
import { count, percent, span } from '../lib/format';
import { called, groupsOf, heldAt, hueOf, type Group, type Recording } from '../lib/simfile';
import { Panel } from './bits';
import { Chart } from './Chart';
import { DeviceMap } from './DeviceMap';
import { Gantt } from './Gantt';
import type { Cell, Spot, Tile } from './map-layout';

const STEPS = 1000;
const FRAME_MS = 60;

export function Playback({ recordings, end, clusters }: { recordings: Recording[]; end: number; clusters: string[] }) {
  const [at, setAt] = useState(0.25);
  const [playing, setPlaying] = useState(false);
  const [zoomed, setZoomed] = useState<[number, number] | null>(null);
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => setAt((was) => (was >= 1 ? 0 : Math.min(1, was + 1 / STEPS))), FRAME_MS);
    return () => clearInterval(timer);
  }, [playing]);
  const time = at * end;
  const pick = (time: number) => { setPlaying(false); setAt(end > 0 ? Math.max(0, Math.min(1, time / end)) : 0); };
  return (
    <>
      <div class="scrub" role="group" aria-label="Time">
        <button type="button" onClick={() => setPlaying(!playing)} aria-pressed={playing}>{playing ? 'Pause' : 'Play'}</button>
        <input type="range" min="0" max={STEPS} value={Math.round(at * STEPS)} aria-label="Time" aria-valuetext={span(time)}
          onInput={(event) => { setPlaying(false); setAt(Number(event.currentTarget.value) / STEPS); }} />
        <output>{span(time)} <small>of {span(end)}</small></output>
      </div>
      {recordings.map((recording) => (
        <One key={recording.name} recording={recording} time={time} end={end} clusters={clusters} pick={pick} shown={zoomed ?? [0, end]} show={setZoomed} />
      ))}
    </>
  );
}

interface OneProps {
  recording: Recording; time: number; end: number; clusters: string[]; pick: (time: number) => void;
  shown: [number, number]; show: (span: [number, number] | null) => void;
}

function One({ recording, time, end, clusters, pick, shown, show }: OneProps) {
  const groups = useMemo(() => groupsOf(recording, clusters), [recording, clusters]);
  const points = useMemo(() => recording.points(end), [recording, end]);
  const held = heldAt(recording, time);
  const total = groups.reduce((sum, group) => sum + group.nodes.reduce((sum, node) => sum + node.devices, 0), 0);
  let used = 0;
  for (const devices of held.values()) used += devices.size;
  const now = points[Math.min(points.length - 1, Math.round((time / Math.max(end, 1e-9)) * (points.length - 1)))];
  const cut = recording.until != null && time > recording.until;
  return (
    <Panel title={recording.name} aside={<span>{count(now?.values[1] ?? 0)} running, {count(now?.values[0] ?? 0)} waiting, {count(used)} of {count(total)} devices in use ({percent(total > 0 ? used / total : 0)})</span>}>
      {recording.until != null && <p class="note" role={cut ? 'status' : undefined}>Device history is kept until {span(recording.until)}; the run went on{cut ? ', and the map is empty from there' : ''}.</p>}
      {groups.map((group) => <Kind key={group.kind} group={group} recording={recording} held={held} time={time} total={total} />)}
      <Chart label="Jobs over time" points={points} series={[{ name: 'waiting', hue: 'hue-1' }, { name: 'running', hue: 'hue-0' }]} height={120} time={span} mark={time} pick={pick} />
      <details class="who-held">
        <summary>Device use over time</summary>
        <Gantt recording={recording} groups={groups} end={end} time={time} pick={pick} shown={shown} show={show} />
      </details>
    </Panel>
  );
}

interface KindProps { group: Group; recording: Recording; held: Map<number, Map<number, number[]>>; time: number; total: number }

function Kind({ group, recording, held, time, total }: KindProps) {
  const tiles: Tile[] = group.nodes.map(({ at, name, devices }) => {
    const away = recording.away.some(([gone, from, to]) => gone === at && from <= time && time < to);
    const cells: Cell[] = Array.from({ length: devices }, (_, device) => {
      const jobs = held.get(at)?.get(device) ?? [];
      return { hues: jobs.map((job) => hueOf(recording, job)), busy: null, broken: false, idle: false, frozen: false };
    });
    return { name, state: away ? 'down' : 'up', cells };
  });
  const describe = (spot: Spot) => {
    const node = group.nodes[spot.tile]!;
    const jobs = held.get(node.at)?.get(spot.cell) ?? [];
    return [`${node.name} · device ${spot.cell}`, ...(jobs.length > 0 ? jobs.map((job) => called(recording, job)) : ['free'])];
  };
  const each = group.nodes[0]?.devices ?? 0;
  const even = group.nodes.every((node) => node.devices === each);
  return (
    <div class="kind">
      <div class="kind-head"><h3>{group.kind}</h3><span>{even ? `${count(group.nodes.length)} × ${each}` : `${count(group.nodes.length)} nodes`}</span></div>
      <DeviceMap label={`${group.kind} at ${span(time)}`} tiles={tiles} devices={total} describe={describe} open={() => {}} />
    </div>
  );
}
