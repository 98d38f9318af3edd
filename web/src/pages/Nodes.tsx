// The machines: how they are, what they hold, taken out of service and back.

import { useState } from 'preact/hooks';
import { palette } from '../lib/cells';
import { ago, percent, plural } from '../lib/format';
import { go, link, setQuery, type Route } from '../lib/route';
import { useClock, useStore } from '../lib/store';
import type { Node } from '../lib/types';
import { Empty } from '../parts/bits';
import { DrainDialog } from '../parts/DrainDialog';
import { Cells } from '../parts/Cells';
import { VirtualTable, type Column } from '../parts/VirtualTable';

const STATES = ['up', 'draining', 'unreachable', 'down', 'problem'];

export function Nodes({ route }: { route: Route }) {
  const store = useStore();
  const now = useClock(5);
  const [asked, setAsked] = useState<Node | null>(null);
  const q = (route.query.get('q') ?? '').toLowerCase();
  const state = route.query.get('state') ?? '';
  const sort = route.query.get('sort') ?? '';
  const nodes = order(store.nodesByName().filter((node) => fits(node, q, state)), sort);
  const colors = palette(store.jobs.values(), 'user');
  const admin = store.me?.scope === 'admin';
  const columns: Column<Node>[] = [
    { name: 'name', title: 'Node', sort: 'name', class: 'col-name', cell: (node) => <a href={link(['nodes', node.name])}>{node.name}</a> },
    { name: 'state', title: 'State', sort: 'state', class: 'col-state', cell: (node) => <span class={`state node-${node.state}`}>{node.state}</span> },
    { name: 'kind', title: 'Kind', class: 'col-kind', cell: (node) => [...new Set(node.devices.map((device) => device.kind))].join(', ') },
    { name: 'devices', title: 'Devices', class: 'col-cells', cell: (node) => <Cells node={node} store={store} colors={colors} /> },
    { name: 'held', title: 'Held', sort: 'held', class: 'num col-held', cell: (node) => `${held(node)} of ${node.devices.length}` },
    { name: 'busy', title: 'Busy', sort: 'busy', class: 'num col-busy', cell: (node) => { const part = busy(node); return part === null ? '' : percent(part); } },
    { name: 'hot', title: 'Hottest', sort: 'hot', class: 'num col-hot', cell: (node) => { const hot = hottest(node); return hot === null ? '' : `${hot} °C`; } },
    { name: 'heard', title: 'Heard', class: 'num col-heard', cell: (node) => { const at = store.heard.get(node.name); return at === undefined ? 'never' : ago(at, now); } },
    { name: 'note', title: 'Note', class: 'col-note', cell: (node) => { const text = note(node); return text && <span class="cut" title={text}>{text}</span>; } },
  ];
  if (admin) columns.push({ name: 'do', title: <span class="sr">Action</span>, class: 'col-do', cell: (node) => <button type="button" class="small" onClick={() => setAsked(node)}>{node.state === 'draining' ? 'Resume' : 'Drain'}</button> });
  return (
    <div class="page page-full nodes">
      <div class="page-head"><h1>Nodes</h1><span class="note" role="status">{plural(nodes.length, 'node')}</span></div>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <input type="search" aria-label="Search by name, kind or note" placeholder="Search name, kind, note   /" value={route.query.get('q') ?? ''} onInput={(event) => setQuery(route, { q: event.currentTarget.value })} />
        <select aria-label="State" value={state} class={state ? 'is-set' : ''} onChange={(event) => setQuery(route, { state: event.currentTarget.value })}>
          <option value="">State: all</option>
          {STATES.map((name) => <option key={name} value={name}>{name === 'problem' ? 'with a problem' : name}</option>)}
        </select>
      </form>
      {nodes.length === 0 ? (
        <Empty title={store.nodes.size > 0 ? 'No node matches.' : 'No node has joined yet.'}>
          {store.nodes.size > 0 ? <p><a href={link(['nodes'])}>Show all nodes</a></p> : <p>On each machine: <code>yard agent --server URL --join-token FILE</code></p>}
        </Empty>
      ) : (
        <VirtualTable label="Nodes" rows={nodes} columns={columns} id={(node) => node.name} open={(node) => go(link(['nodes', node.name]))} sort={sort} setSort={(sort) => setQuery(route, { sort })} />
      )}
      {asked && <DrainDialog node={asked} close={() => setAsked(null)} />}
    </div>
  );
}

function fits(node: Node, q: string, state: string): boolean {
  if (state === 'problem' ? note(node) === null : state && node.state !== state) return false;
  const text = `${node.name} ${node.state} ${node.devices.map((device) => device.kind).join(' ')} ${note(node) ?? ''}`.toLowerCase();
  return q.split(/\s+/).every((word) => text.includes(word));
}

/** Nodes come in the order of their names, and equal ones stay in it. */
function order(nodes: Node[], sort: string): Node[] {
  const name = sort.replace(/^-/, '');
  const keys: Record<string, (node: Node) => number> = {
    state: (node) => STATES.indexOf(node.state),
    held: (node) => held(node) / Math.max(1, node.devices.length),
    busy: (node) => busy(node) ?? -1,
    hot: (node) => hottest(node) ?? -1,
  };
  const key = keys[name];
  const back = sort.startsWith('-');
  if (!key) return back ? nodes.reverse() : nodes;
  const worth = new Map(nodes.map((node) => [node, key(node)]));
  return nodes.sort((a, b) => (back ? -1 : 1) * (worth.get(a)! - worth.get(b)!));
}

function held(node: Node): number {
  return node.devices.filter((device) => device.jobs.length > 0).length;
}

function busy(node: Node): number | null {
  const known = node.devices.map((device) => device.busy).filter((busy): busy is number => busy !== null);
  return known.length > 0 ? known.reduce((a, b) => a + b, 0) / known.length : null;
}

function hottest(node: Node): number | null {
  const known = node.devices.map((device) => device.temperature_c).filter((hot): hot is number => hot !== null);
  return known.length > 0 ? Math.max(...known) : null;
}

/** What there is to say against a node. */
function note(node: Node): string | null {
  const broken = node.devices.filter((device) => device.problem);
  const parts = [node.reason, broken[0] && `${broken.length > 1 ? `${broken.length} devices, ` : ''}${broken[0].kind} ${broken[0].index}: ${broken[0].problem}`];
  return parts.filter(Boolean).join('; ') || null;
}
