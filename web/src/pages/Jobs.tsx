// All jobs that one may see: searched, filtered, ordered, and cancelled several at a time.

import { useEffect, useMemo, useState } from 'preact/hooks';
import * as api from '../lib/api';
import { filterOf, select, type Filter } from '../lib/filter';
import { plural } from '../lib/format';
import { go, link, setQuery, type Route } from '../lib/route';
import { sight } from '../lib/sight';
import { isOver, teamOf, useClock, useStore } from '../lib/store';
import type { Job } from '../lib/types';
import { Empty } from '../parts/bits';
import { CancelDialog } from '../parts/CancelDialog';
import { jobColumns } from '../parts/job-columns';
import { VirtualTable } from '../parts/VirtualTable';

const PAST = 5000;
const STATES = ['open', 'waiting', 'pending', 'starting', 'running', 'suspending', 'suspended', 'over', 'succeeded', 'failed', 'cancelled', 'rejected'];

export function Jobs({ route }: { route: Route }) {
  const store = useStore();
  const now = useClock(2);
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const [asking, setAsking] = useState(false);
  useEffect(() => {
    void api.get<{ jobs: Job[] }>(`/v1/jobs?all=true&limit=${PAST}`).then((list) => store.addPast(list.jobs), () => {});
  }, []);
  const filter = filterOf(route.query);
  const jobs = select(store.jobs.values(), filter);
  const may = store.me !== null && store.me.scope !== 'read';
  const toggle = (id: number) => setChosen((was) => {
    const next = new Set(was);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  const able = jobs.filter((job) => !isOver(job));
  const picked = [...chosen].map((id) => store.jobs.get(id)).filter((job): job is Job => !!job && !isOver(job));
  const all = picked.length > 0 && picked.length === able.length;
  const columns = jobColumns({ now, may, chosen, toggle, all, toggleAll: () => setChosen(new Set(all ? [] : able.map((job) => job.id))) });
  return (
    <div class="page page-full">
      <div class="page-head">
        <h1>Jobs</h1>
        <span class="note" role="status">{plural(jobs.length, 'job')}</span>
        <span class="note">{sight(store).says}</span>
        {picked.length > 0 && (
          <div class="chosen">
            <button type="button" class="danger" onClick={() => setAsking(true)}>Cancel {plural(picked.length, 'job')}</button>
            <button type="button" class="quiet" onClick={() => setChosen(new Set())}>Clear</button>
          </div>
        )}
      </div>
      <Filters route={route} filter={filter} />
      {jobs.length === 0 ? <Nothing any={store.jobs.size > 0} /> : (
        <VirtualTable
          label="Jobs" rows={jobs} columns={columns} id={(job) => job.id}
          open={(job) => go(link(['jobs', String(job.id)]))}
          sort={filter.sort} setSort={(sort) => setQuery(route, { sort })}
          pressed={(job, key) => { if (key === 'x' && may && !isOver(job)) toggle(job.id); }}
        />
      )}
      {asking && <CancelDialog jobs={picked} close={() => { setAsking(false); setChosen(new Set()); }} />}
    </div>
  );
}

function Filters({ route, filter }: { route: Route; filter: Filter }) {
  const store = useStore();
  const set = (name: string) => (event: Event) => setQuery(route, { [name]: (event.currentTarget as HTMLInputElement).value });
  const size = store.jobs.size;
  const owners = useMemo(() => {
    const names = new Set<string>();
    for (const job of store.jobs.values()) names.add(job.user).add(teamOf(job));
    return [...names].sort();
  }, [size]);
  const kinds = [...new Set([...store.nodes.values()].flatMap((node) => node.devices.map((device) => device.kind)))].sort();
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <input type="search" aria-label="Search by name, number, owner or node" placeholder="Search name, number, owner, node   /" value={route.query.get('q') ?? ''} onInput={set('q')} />
      <Select name="State" value={filter.state} set={set('state')} options={STATES} />
      {owners.length > 1 && <Select name="Owner or team" value={filter.user} set={set('user')} options={owners} />}
      {kinds.length > 1 && <Select name="Kind" value={filter.kind} set={set('kind')} options={kinds} />}
      <Select name="Deadline" value={filter.deadline} set={set('deadline')} options={['any', 'risk', 'missed']} />
    </form>
  );
}

function Select(props: { name: string; value: string; set: (event: Event) => void; options: string[] }) {
  return (
    <select aria-label={props.name} value={props.value} onChange={props.set} class={props.value ? 'is-set' : ''}>
      <option value="">{props.name}: all</option>
      {props.options.map((option) => <option key={option} value={option}>{option}</option>)}
    </select>
  );
}

function Nothing({ any }: { any: boolean }) {
  if (any) {
    return <Empty title="No job matches."><p><a href={link(['jobs'])}>Show all jobs</a></p></Empty>;
  }
  return (
    <Empty title="No jobs yet.">
      <p>Submit one from a folder with your script: <code>yard submit --gpus 1 -- python train.py</code></p>
    </Empty>
  );
}
