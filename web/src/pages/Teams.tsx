// Who has how much: shares now and over time, how even they are, device-hours, waiting and deadlines, by team or owner.

import { useEffect } from 'preact/hooks';
import * as api from '../lib/api';
import { Palette } from '../lib/colors';
import { useFacts } from '../lib/facts';
import { clock, count, percent, short, span, worth } from '../lib/format';
import { link, setQuery, type Route } from '../lib/route';
import { sight } from '../lib/sight';
import { stretches, type Stretch } from '../lib/spans';
import { isOver, teamOf, useStore } from '../lib/store';
import { evennessOverTime, heldOverTime, teams, type Team } from '../lib/teams';
import { useLater, useTurn } from '../lib/turn';
import type { Fact, Job } from '../lib/types';
import { Empty, Panel } from '../parts/bits';
import { Chart } from '../parts/Chart';

const PAST = 5000;
const SHOWN = 8;

export function Teams({ route }: { route: Route }) {
  const store = useStore();
  useEffect(() => {
    void api.get<{ jobs: Job[] }>(`/v1/jobs?all=true&limit=${PAST}`).then((list) => store.addPast(list.jobs), () => {});
  }, []);
  const byOwner = route.query.get('by') === 'owner';
  const nameOf = byOwner ? (job: Job) => job.user : teamOf;
  const jobs = [...store.jobs.values()];
  const all = teams(jobs, nameOf, store.status?.prices ?? {}, store.now(), (job) => store.ran(job));
  const names = [...all].sort((a, b) => b.hours - a.hours).map((team) => team.name);
  const colors = new Palette(names);
  const turn = useTurn(jobs.filter((job) => !isOver(job)).map((job) => `${job.id}${job.state}`).join(), 5000);
  const facts = useFacts(turn, store.me?.user ?? null);
  const past = useLater(() => overTime(facts ?? [], store.jobs, nameOf, names.slice(0, SHOWN), store.now()), [facts, turn, byOwner, all.length]);
  const devices = store.status?.devices ?? 0;
  return (
    <div class="page">
      <div class="page-head">
        <h1>Teams</h1>
        <div class="choice" role="group" aria-label="Add up by">
          <button type="button" aria-pressed={!byOwner} onClick={() => setQuery(route, { by: '' })}>team</button>
          <button type="button" aria-pressed={byOwner} onClick={() => setQuery(route, { by: 'owner' })}>owner</button>
        </div>
        {past && <span class="note">since {clock(past.from, store.now())}</span>}
      </div>
      {!sight(store).all && <p class="note">{sight(store).says} Figures of other users are not in the table.</p>}
      {all.length === 0 ? <Empty title="Nobody has submitted anything yet."><p>A job counts for a team with <code>yard submit --tenant vision …</code></p></Empty> : (
        <div class="stack">
          {past && (
            <div class="charts">
              <Panel title="Devices held"><Chart label="Devices held by each" stacked points={past.held} series={names.slice(0, SHOWN).map((name) => ({ name, hue: colors.of(name) }))} limit={devices} height={210} /></Panel>
              <Panel title="Fairness (Jain)" aside={<span class="note">1: everyone who wants devices has equally many</span>}><Chart label="Fairness of shares" points={past.even} series={[{ name: 'fairness', hue: 'hue-2' }]} limit={1} height={210} /></Panel>
            </div>
          )}
          <Panel title="Now"><Table all={all} devices={devices} colors={colors} priced={all.some((team) => team.pays > 0)} /></Panel>
        </div>
      )}
    </div>
  );
}

function Table({ all, devices, colors, priced }: { all: Team[]; devices: number; colors: Palette; priced: boolean }) {
  const wants = all.filter((team) => team.held + team.wanted > 0).length;
  const fair = wants > 0 ? 1 / wants : 0;
  return (
    <div class="wide-table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th><th scope="col">Share of devices</th><th scope="col" class="num">Held</th><th scope="col" class="num">Also requested</th>
            <th scope="col" class="num">Running</th><th scope="col" class="num">Waiting</th>{priced && <th scope="col" class="num" title="The price of its devices now, as a fraction of the whole cluster">Cost rate</th>}
            <th scope="col" class="num">Device-hours</th><th scope="col" class="num" title="Until the first start; waiting jobs count with their wait so far">Mean wait</th><th scope="col" class="num">Deadlines met</th>
          </tr>
        </thead>
        <tbody>
          {all.map((team) => {
            const part = devices > 0 ? team.held / devices : 0;
            return (
              <tr key={team.name}>
                <th scope="row"><i class={`mark ${colors.of(team.name)}`} /><a href={link(['jobs'], { user: team.name, state: 'open' })}>{team.name}</a></th>
                <td>
                  <span class={`share ${colors.of(team.name)}`} role="img" aria-label={`${percent(part)}, an even share is ${percent(fair)}`} title={`An even share is ${percent(fair)}`}>
                    <i style={{ width: `${part * 100}%` }} /><b style={{ left: `${fair * 100}%` }} />
                  </span> <small>{percent(part)}</small>
                </td>
                <td class="num">{count(team.held)}</td>
                <td class="num">{team.wanted > 0 ? count(team.wanted) : ''}</td>
                <td class="num">{count(team.running)}</td>
                <td class="num">{count(team.waiting)}</td>
                {priced && <td class="num">{worth(team.pays)}</td>}
                <td class="num">{short(team.hours)}</td>
                <td class="num">{team.wait === null ? '' : span(team.wait)}</td>
                <td class="num">{team.met + team.missed > 0 ? `${team.met} of ${team.met + team.missed}` : ''}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function overTime(facts: Fact[], jobs: Map<number, Job>, nameOf: (job: Job) => string, names: string[], to: number) {
  const from = facts.find((fact) => fact.job !== null)?.time;
  if (from === undefined || to - from < 5) return null;
  const list: Stretch[] = stretches(facts);
  for (const stretch of list) if (stretch.to === null && (jobs.get(stretch.job)?.ended_at ?? null) !== null) stretch.to = to;
  const name = (id: number) => { const job = jobs.get(id); return job && nameOf(job); };
  const gpus = (id: number) => jobs.get(id)?.gpus ?? 0;
  return { from, held: heldOverTime(list, names, name, gpus, from, to), even: evennessOverTime(list, names, name, gpus, from, to) };
}
