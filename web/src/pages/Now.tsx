// What goes on now: every device, who waits and why, how it went of late, prices, and deadlines at risk.

import { useMemo } from 'preact/hooks';
import { useGet } from '../lib/ask';
import { frozenAt, groups, palette, tell, type By, type Group } from '../lib/cells';
import { risk, riskText, TONE } from '../lib/outlook';
import { sight, type Sight } from '../lib/sight';
import { useFacts } from '../lib/facts';
import { ago, count, percent, plural, worth } from '../lib/format';
import { go, link, setQuery, type Route } from '../lib/route';
import { holding, series, stretches, type Stretch } from '../lib/spans';
import { holds, isOver, useClock, useStore, type Store } from '../lib/store';
import { useLater, useTurn } from '../lib/turn';
import type { Job } from '../lib/types';
import { Bar, Empty, Failed, Panel } from '../parts/bits';
import { Chart } from '../parts/Chart';
import { DeviceMap } from '../parts/DeviceMap';

export function Now({ route }: { route: Route }) {
  const store = useStore();
  useClock(5);
  const by = (route.query.get('by') ?? 'user') as By;
  const open = [...store.jobs.values()].filter((job) => !isOver(job));
  const colors = palette(open, by);
  const turn = useTurn(open.map((job) => `${job.id}${job.state}`).join(), 3000);
  const facts = useFacts(turn, store.me?.user ?? null);
  const past = useLater(() => stretches(facts ?? []), [facts]);
  const seen = sight(store);
  const frozen = useMemo(() => frozenAt(open), [turn]);
  const kinds = groups(store, by, colors, frozen);
  const devices = kinds.reduce((sum, kind) => sum + kind.total, 0);
  return (
    <div class="page">
      <h1 class="sr">Now</h1>
      <Numbers store={store} open={open} kinds={kinds} seen={seen} />
      <div class="now">
        <Panel
          title="Devices"
          class="now-map"
          aside={<Choice by={by} set={(next) => setQuery(route, { by: next === 'user' ? '' : next })} />}
        >
          {devices === 0 && (
            <Empty title="No node has joined yet.">
              <p>On each machine: <code>yard agent --server URL --join-token FILE</code></p>
            </Empty>
          )}
          {kinds.map((kind) => <Kind key={kind.kind} store={store} group={kind} devices={devices} frozen={frozen} />)}
          {devices > 0 && <Legend names={by === 'use' ? [] : colors.names()} of={(name) => colors.of(name)} rest={rest(kinds, seen)} />}
        </Panel>
        <div class="now-side">
          <Queue open={open} seen={seen} />
          <Past past={past ?? []} open={open} turn={turn} />
          <Risk open={open} />
          <Prices store={store} />
        </div>
      </div>
    </div>
  );
}

function Numbers({ store, open, kinds, seen }: { store: Store; open: Job[]; kinds: Group[]; seen: Sight }) {
  const running = open.filter(holds).length;
  const yours = (own: number, others: number) => others > 0 && <small> {count(own)} of them yours</small>;
  const held = kinds.reduce((sum, kind) => sum + kind.held, 0);
  const total = kinds.reduce((sum, kind) => sum + kind.total, 0);
  const nodes = [...store.nodes.values()];
  const out = nodes.filter((node) => node.state !== 'up').length;
  const broken = nodes.reduce((sum, node) => sum + node.devices.filter((device) => device.problem).length, 0);
  return (
    <dl class="numbers">
      <div><dt>running</dt><dd><a href={link(['jobs'], { state: 'running' })}>{count(running + seen.running)}</a>{yours(running, seen.running)}</dd></div>
      <div><dt>waiting</dt><dd><a href={link(['jobs'], { state: 'waiting' })}>{count(open.length - running + seen.waiting)}</a>{yours(open.length - running, seen.waiting)}</dd></div>
      <div><dt>devices in use</dt><dd>{count(held)}<small> of {count(total)}{total > 0 && ` · ${percent(held / total)}`}</small></dd></div>
      <div><dt>nodes up</dt><dd>{count(nodes.length - out)}<small> of {count(nodes.length)}</small></dd></div>
      {broken > 0 && <div class="is-bad"><dt>out of service</dt><dd><a href={link(['nodes'], { state: 'problem' })}>{plural(broken, 'device')}</a></dd></div>}
      <div><dt>policy</dt><dd class="word">{store.status?.policy ?? '–'}</dd></div>
    </dl>
  );
}

function Choice({ by, set }: { by: By; set: (by: By) => void }) {
  const all: [By, string][] = [['user', 'owner'], ['team', 'team'], ['use', 'use']];
  return (
    <div class="choice" role="group" aria-label="Colour by">
      {all.map(([value, name]) => (
        <button key={value} type="button" aria-pressed={by === value} onClick={() => set(value)}>{name}</button>
      ))}
    </div>
  );
}

function Kind({ store, group, devices, frozen }: { store: Store; group: Group; devices: number; frozen: Map<string, number[]> }) {
  const label = `${group.kind}: ${group.held} of ${group.total} devices in use`;
  return (
    <div class="kind">
      <div class="kind-head">
        <h3>{group.kind}</h3>
        <Bar part={group.held / group.total} label={label} />
        <span>{count(group.held)} of {count(group.total)} held</span>
        {group.busy !== null && <span>{percent(group.busy)} busy</span>}
      </div>
      <DeviceMap
        label={label}
        tiles={group.tiles}
        devices={devices}
        describe={(spot) => tell(store, group, spot, frozen)}
        open={(spot) => {
          const node = group.nodes[spot.tile]!;
          const job = node.devices.filter((device) => device.kind === group.kind)[spot.cell]?.jobs.find((id) => store.jobs.has(id));
          go(job === undefined ? link(['nodes', node.name]) : link(['jobs', String(job)]));
        }}
      />
    </div>
  );
}

/** Who has the colour of nobody in particular, where that is on the map. */
function rest(kinds: Group[], seen: Sight): string | null {
  const there = kinds.some((kind) => kind.tiles.some((tile) => tile.cells.some((cell) => cell.hues.includes('hue-other'))));
  return there ? (seen.all ? 'others' : "other users' jobs") : null;
}

function Legend({ names, of, rest }: { names: string[]; of: (name: string) => string; rest: string | null }) {
  return (
    <div class="legend map-legend">
      {names.map((name) => <span key={name}><i class={of(name)} /><a href={link(['jobs'], { user: name })}>{name}</a></span>)}
      {rest && <span><i class="hue-other" />{rest}</span>}
      <span><i class="swatch-free" />free</span>
      <span><i class="swatch-idle" />reserved, idle</span>
      <span><i class="swatch-frozen">◆</i>frozen</span>
      <span><i class="swatch-broken">×</i>out of service</span>
    </div>
  );
}

interface Queued { job: number; reason: string; text: string }

function Queue({ open, seen }: { open: Job[]; seen: Sight }) {
  const waiting = open.filter((job) => !holds(job));
  const mayRun = useStore().me?.scope !== 'read';
  const turn = useTurn(waiting.map((job) => job.id).join(), 4000);
  const { value, error, again } = useGet<{ waiting: number; jobs: Queued[] }>('/v1/queue', turn);
  const reasons = useMemo(() => {
    const found = new Map<string, Queued[]>();
    for (const job of value?.jobs ?? []) found.set(job.reason, [...(found.get(job.reason) ?? []), job]);
    return [...found].sort((a, b) => b[1].length - a[1].length);
  }, [value]);
  const explained = value?.jobs.length ?? 0;
  return (
    <Panel title="Queue" aside={<a href={link(['jobs'], { state: 'waiting' })}>{plural(waiting.length, 'job')}</a>}>
      {error && <Failed error={error} again={again} />}
      {waiting.length === 0 && seen.waiting > 0 && (
        <Empty title="None of your jobs is waiting."><p>{plural(seen.waiting, 'job')} of other users {seen.waiting === 1 ? 'waits' : 'wait'}; this token does not show {seen.waiting === 1 ? 'it' : 'them'}.</p></Empty>
      )}
      {waiting.length === 0 && seen.waiting === 0 && (
        <Empty title="No jobs are waiting.">
          {mayRun && <p>Submit one: <code>yard submit --gpus 1 -- python train.py</code></p>}
        </Empty>
      )}
      {waiting.length > 0 && !value && !error && <p class="note">Asking the scheduler why…</p>}
      {waiting.length > 0 && (
        <ul class="reasons">
          {reasons.map(([reason, jobs]) => (
            <li key={reason}>
              <span class="reason-name">{reason}</span>
              <Bar part={jobs.length / Math.max(1, explained)} label={`${reason}: ${jobs.length}`} />
              <b>{jobs.length}</b>
              <a class="reason-text" href={link(['jobs', String(jobs[0]!.job)])} title={jobs[0]!.text}>{jobs[0]!.text}</a>
            </li>
          ))}
        </ul>
      )}
      {waiting.length > 0 && seen.waiting > 0 && <p class="note">{plural(seen.waiting, 'job')} of other users {seen.waiting === 1 ? 'waits' : 'wait'} too.</p>}
      {value && value.waiting > explained && <p class="note">The first {explained} of {count(value.waiting)} are explained.</p>}
    </Panel>
  );
}

const HOURS = 3;

function Past({ past, open, turn }: { past: Stretch[]; open: Job[]; turn: number }) {
  const store = useStore();
  const points = useMemo(() => overTime(past, open, store.now()), [past, turn]);
  if (points.length === 0) return null;
  const series = [{ name: 'waiting', hue: 'hue-1' }, { name: 'running', hue: 'hue-0' }];
  return (
    <Panel title="Jobs over time">
      <Chart label="Jobs waiting and running" points={points} series={series} height={130} />
    </Panel>
  );
}

/** How many waited and ran: from events, with jobs of which nothing was told for long as they are. */
function overTime(past: Stretch[], open: Job[], now: number) {
  const from = Math.max(past[0]?.from ?? now, now - HOURS * 3600);
  if (now - from < 5) return [];
  const told = new Set(past.map((stretch) => stretch.job));
  const opened = new Set(open.map((job) => job.id));
  const list = past.map((stretch) => (stretch.to === null && !opened.has(stretch.job) ? { ...stretch, to: now } : stretch));
  for (const job of open) {
    if (told.has(job.id)) continue;
    list.push({ job: job.id, doing: holds(job) ? 'running' : 'waiting', from: job.submitted_at, to: null, gpus: job.gpus, kind: job.kind, places: [], why: null });
  }
  return series(list, from, now, 90, 2, (stretch) => [holding(stretch.doing) ? 1 : 0, 1]);
}

function Risk({ open }: { open: Job[] }) {
  const store = useStore();
  const due = open.filter((job) => job.deadline !== null);
  const risky = due.filter((job) => risk(job) !== null).sort((a, b) => a.deadline! - b.deadline!);
  if (due.length === 0) return null;
  return (
    <Panel title="Deadlines" aside={<a href={link(['jobs'], { deadline: 'any', state: 'open', sort: 'deadline' })}>{plural(due.length, 'job')}</a>}>
      {risky.length === 0 && <p class="note">{due.length === 1 ? 'It will probably be met.' : `All ${due.length} will probably be met.`}</p>}
      <ul class="risks">
        {risky.slice(0, 6).map((job) => (
          <li key={job.id}>
            <a href={link(['jobs', String(job.id)])}>{job.name}</a>
            <span>due {ago(job.deadline!, store.now())}</span>
            <b class={TONE[risk(job)!]}>{riskText(job, store.now())}</b>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Prices({ store }: { store: Store }) {
  const prices = Object.entries(store.status?.prices ?? {}).filter(([, price]) => price > 0);
  const most = Math.max(...prices.map(([, price]) => price), 0);
  if (prices.length === 0) return null;
  return (
    <Panel title="Prices" aside={<span class="note">one device, as a fraction of the whole cluster</span>}>
      <ul class="reasons">
        {prices.sort((a, b) => b[1] - a[1]).map(([kind, price]) => (
          <li key={kind}><span class="reason-name">{kind}</span><Bar part={price / most} label={`${kind}: ${worth(price)} of the cluster's price for one device`} /><b>{worth(price)}</b></li>
        ))}
      </ul>
    </Panel>
  );
}
