// One machine and its devices.

import { useState } from 'preact/hooks';
import { ago, gib, percent } from '../lib/format';
import { link } from '../lib/route';
import { useClock, useStore } from '../lib/store';
import type { Device, Node as NodeView } from '../lib/types';
import { Bar, Empty, Fact, Panel } from '../parts/bits';
import { DrainDialog } from '../parts/DrainDialog';

export function Node({ name }: { name: string }) {
  const store = useStore();
  const now = useClock(2);
  const [asking, setAsking] = useState(false);
  const node = store.nodes.get(name);
  if (!node) return <div class="page"><Empty title={`There is no node ${name}.`}><p><a href={link(['nodes'])}>All nodes</a></p></Empty></div>;
  const heard = store.heard.get(name);
  return (
    <div class="page">
      <div class="page-head">
        <a class="back" href={link(['nodes'])} aria-label="All nodes">←</a>
        <h1>{node.name}</h1>
        <span class={`state node-${node.state}`}>{node.state}</span>
        <div class="chosen"><a class="button" href={link(['what-if'], { about: 'node', node: node.name })}>What if this node fails?</a>
        {store.me?.scope === 'admin' && <button type="button" onClick={() => setAsking(true)}>{node.state === 'draining' ? 'Resume' : 'Drain'}</button>}</div>
      </div>
      <dl class="facts is-wide">
        {node.reason && <Fact name="Why">{node.reason}</Fact>}
        <Fact name="Address">{node.address}</Fact>
        <Fact name="Last contact">{heard === undefined ? 'never' : ago(heard, now)}</Fact>
      </dl>
      <div class="stack">
        <Panel title="Devices"><Devices node={node} /></Panel>
        {node.devices.some((device) => device.links.length > 0) && <Panel title="Links"><Links devices={node.devices} /></Panel>}
      </div>
      {asking && <DrainDialog node={node} close={() => setAsking(false)} />}
    </div>
  );
}

function Devices({ node }: { node: NodeView }) {
  return (
    <div class="wide-table" tabIndex={0}>
      <table>
        <thead><tr><th scope="col">Device</th><th scope="col">Jobs</th><th scope="col">Busy</th><th scope="col">Memory</th><th scope="col">Temperature</th><th scope="col">Power</th><th scope="col">Memory errors</th><th scope="col">Health</th></tr></thead>
        <tbody>
          {node.devices.map((device) => (
            <tr key={`${device.kind}${device.index}`}>
              <th scope="row" title={device.uuid ?? ''}>{device.kind} {device.index}<small> {device.name}</small></th>
              <td><Holders device={device} /></td>
              <td>{device.busy === null ? '' : <><Bar part={device.busy} label={percent(device.busy)} /> <small>{percent(device.busy)}</small></>}</td>
              <td>{device.memory_mib === null ? '' : device.memory_used_mib === null ? gib(device.memory_mib) : <><Bar part={device.memory_used_mib / device.memory_mib} label={`${gib(device.memory_used_mib)} of ${gib(device.memory_mib)}`} /> <small>{gib(device.memory_used_mib)} of {gib(device.memory_mib)}</small></>}</td>
              <td>{device.temperature_c === null ? '' : `${device.temperature_c} °C`}</td>
              <td>{device.power_w === null ? '' : `${Math.round(device.power_w)} W`}</td>
              <td>{device.ecc && (device.ecc[0] + device.ecc[1] === 0 ? 'none' : <span class={device.ecc[1] > 0 ? 'bad' : ''}>{device.ecc[0]} corrected, {device.ecc[1]} not</span>)}</td>
              <td>{device.problem ? <span class="bad">{device.problem}</span> : device.throttled ? <span class="warn">{device.throttled}</span> : device.split ? 'split into instances' : 'fine'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Holders({ device }: { device: Device }) {
  const store = useStore();
  if (device.jobs.length === 0) return <span class="note">free</span>;
  return (
    <>
      {device.jobs.map((id) => {
        const job = store.jobs.get(id);
        const idle = device.idle_jobs.includes(id) && <small class="warn"> idle</small>;
        return <div key={id}>{job ? <a href={link(['jobs', String(id)])}>{job.name} ({id})</a> : `job ${id}`} {job && <small>{job.user}</small>}{idle}</div>;
      })}
    </>
  );
}

/** How devices of a kind are linked, each with each. */
function Links({ devices }: { devices: Device[] }) {
  const linked = devices.filter((device) => device.links.length > 0);
  return (
    <div class="wide-table" tabIndex={0}>
      <table class="links">
        <thead><tr><td />{linked.map((device) => <th key={device.index} scope="col">{device.index}</th>)}</tr></thead>
        <tbody>
          {linked.map((row) => (
            <tr key={row.index}>
              <th scope="row">{row.kind} {row.index}</th>
              {linked.map((column) => {
                const link = row.links.find(([index]) => index === column.index)?.[1];
                return <td key={column.index} class={link ? `link-${link}` : ''}>{row.index === column.index ? '·' : (link ?? '')}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
