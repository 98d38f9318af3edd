// Serves the built page on the made-up cluster. Usage: node demo/server.mjs [port] [scale]
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { cluster } from './cluster.mjs';

const TYPES = { html: 'text/html', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' };
const REASONS = ['priority', 'priority', 'priority', 'capacity', 'capacity', 'topology', 'share'];
const TEXTS = {
  priority: (job) => `${3 + (job.id % 9)} jobs in front hold or get the devices it could use: h100 needs ${job.gpus}, free 2 of 152 (1 on one node).`,
  capacity: (job) => `Not enough devices are free: a100 needs ${job.gpus}, free 3 of 136 (2 on one node).`,
  topology: (job) => `Enough devices are free, but do not lie together as it needs them: h200 needs ${job.gpus}, free 9 of 112 (5 on one node).`,
  share: () => 'Jobs take turns here; it is another job\'s turn. Its part is 42 % of the time.',
};

export function demo({ port = 0, scale = 1, rate, hours, now = Date.now() / 1000, seed = 1, dist = new URL('../dist/', import.meta.url) }) {
  const world = cluster({ seed, now, scale, ...(rate && { rate }), ...(hours && { hours }) });
  const open = world.jobs.filter((job) => job.ended_at === null);
  const prices = { h200: 0.0036, h100: 0.0027, a100: 0.0014, l40s: 0.0002 };
  const devices = world.nodes.flatMap((node) => node.devices);
  const status = {
    version: '0.1.0', policy: 'max-min', round_s: 60, pending: open.filter((job) => job.state !== 'running').length,
    running: open.filter((job) => job.state === 'running').length, ended: world.jobs.length - open.length,
    nodes_up: world.nodes.length - 1, devices: devices.length, devices_held: devices.filter((device) => device.jobs.length > 0).length,
    prices, rounds: 412, plans: 610,
  };
  const reason = (job) => (job.state === 'running' ? 'running' : job.state === 'suspended' ? 'share' : REASONS[job.id % REASONS.length]);
  const find = (id) => (id === 'last' ? world.jobs.at(-1) : world.jobs[Number(id) - 1]);
  const routes = [
    [/^\/v1\/me$/, () => ({ user: 'root', scope: 'admin' })],
    [/^\/v1\/queue$/, () => {
      const waiting = open.filter((job) => job.state !== 'running');
      return { waiting: waiting.length, jobs: waiting.slice(0, 64).map((job) => ({ job: job.id, reason: reason(job), text: TEXTS[reason(job)](job) })) };
    }],
    [/^\/v1\/events$/, (_, query) => {
      const job = query.get('job');
      const after = Number(query.get('after') ?? 0);
      return { events: world.events.filter((event) => event.id > after && (!job || event.job === Number(job))).slice(-Number(query.get('limit') ?? 1000)) };
    }],
    [/^\/v1\/what-if\/history$/, (_, __, body) => replay(now, body)],
    [/^\/v1\/what-if$/, (_, __, body) => (body.job ? whatIf(now, open) : nodeGoes(now, open, body))],
    [/^\/v1\/tokens$/, (_, __, body) => (body.user ? { ...tokens(now)[0], user: body.user, scope: body.scope, secret: 'yard_made-up-secret' } : { tokens: tokens(now) })],
    [/^\/v1\/audit$/, (_, query) => audits(now, query)],
    [/^\/v1\/nodes$/, () => ({ nodes: world.nodes })],
    [/^\/v1\/jobs$/, () => ({ jobs: world.jobs })],
    [/^\/v1\/jobs\/(\w+)$/, ([, id]) => ({ ...find(id), request: request(find(id)) })],
    [/^\/v1\/jobs\/(\w+)\/progress$/, ([, id]) => ({ points: pace(find(id), now) })],
    [/^\/v1\/jobs\/(\w+)\/explain$/, ([, id]) => explain(find(id), reason(find(id)), prices, open)],
  ];
  const server = createServer(async (req, res) => {
    const url = new URL(req.url, 'http://demo');
    if (url.pathname === '/v1/watch') return stream(res, { revision: 1, time: now, whole: true, jobs: world.jobs, nodes: world.nodes, status });
    if (url.pathname.endsWith('/logs')) return res.end(log(find(url.pathname.split('/')[3])));
    for (const [pattern, answer] of routes) {
      const match = pattern.exec(url.pathname);
      if (match) return json(res, answer(match, url.searchParams, await bodyOf(req)));
    }
    const name = url.pathname === '/' ? 'index.html' : url.pathname.slice(1);
    try {
      const body = await readFile(new URL(name, dist));
      res.writeHead(200, { 'content-type': TYPES[name.split('.').pop()] });
      res.end(body);
    } catch {
      res.writeHead(404).end();
    }
  });
  return new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve({ url: `http://127.0.0.1:${server.address().port}`, world, close: () => { server.closeAllConnections(); server.close(); } })));
}

async function bodyOf(req) {
  let text = '';
  for await (const piece of req) text += piece;
  return text === '' ? {} : JSON.parse(text);
}

function json(res, value) {
  res.writeHead(200, { 'content-type': 'application/json' });
  res.end(JSON.stringify(value));
}

function stream(res, change) {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.write(`id: 1\nevent: change\ndata: ${JSON.stringify(change)}\n\n`);
}

function request(job) {
  return {
    name: job.name, command: ['torchrun', 'train.py', '--config', `configs/${job.name.replace(/-\d+$/, '')}.yaml`], env: { WANDB_MODE: 'offline' },
    workdir: `/home/${job.user}/runs`, gpus: job.gpus, kinds: ['h100', 'h200'], ranks: 'device', tenant: job.tenant, priority: job.priority,
    deadline: job.deadline, checkpoint: { dir: `/data/${job.user}/${job.name}`, signal: null, grace_s: 60 }, pause: 'checkpoint',
  };
}

function explain(job, reason, prices, open) {
  const waits = reason !== 'running';
  const over = job.ended_at !== null;
  return {
    job: job.id, state: job.state, reason: over ? 'over' : reason,
    text: over ? `The job is over: ${job.state}.` : waits ? TEXTS[reason](job) : `The job runs on ${job.gpus} × ${job.kind}.`,
    numbers: {}, ahead: waits ? open.filter((other) => other.started_at === null && other.id < job.id).slice(0, 4).map((other) => other.id) : [],
    remedies: waits && !over ? [`ask for ${Math.max(1, job.gpus / 4)} devices of kind h100: it would start now`, 'allow kind l40s, of which 6 are free (--kind l40s): it would start now'] : [],
    prices: waits && !over ? { h100: prices.h100, h200: prices.h200 } : {},
    ways: over ? [] : [['h200', 1.31], ['h100', 1], ['a100', 0.52]].map(([kind, speed]) => ({
      kind, gpus: job.gpus, rate: speed * (job.rate ?? 2.4), price: prices[kind] * job.gpus, held: job.kind === kind,
    })),
  };
}

function whatIf(now, open) {
  const none = { not_before: null, alone: false, best: false, nodes: [], in_time: null, refused: null, earliest: null, delayed: 0, delayed_s: 0, stranded: 0, late: 0, stopped: 0, delays: [], cut: false };
  const way = (label, gpus, kind, node, wait, run, more) => ({
    ...none, label, gpus, kind, nodes: [`${node}[0,1,2,3,4,5,6,7]`], start: now + wait, end: now + wait + run,
    start_interval: { low: now + wait * 0.7, mid: now + wait * 1.1, high: now + wait * 1.9 },
    end_interval: { low: now + wait * 0.7 + run * 0.95, mid: now + wait + run * 1.05, high: now + wait * 1.9 + run * 1.2 }, ...more,
  });
  const hit = open.filter((job) => job.started_at === null).slice(2, 6).map((job, n) => ({ job: job.id, name: job.name, delay_s: 1900 - n * 420, stops: 0, late: n === 1 }));
  return {
    made_at: now, cut: false, rows: [
      way('as asked', 8, 'h100', 'h100-08', 3900, 7200, { in_time: false, delayed: 4, delayed_s: 5080, delays: hit }),
      way('4 devices', 4, 'h100', 'h100-01', 900, 12400, { in_time: false, delayed: 1, delayed_s: 600 }),
      way('16 devices', 16, 'h100', 'h100-11', 9200, 4100, { in_time: false, delayed: 9, delayed_s: 20400 }),
      way('on h200', 8, 'h200', 'h200-11', 1500, 5000, { in_time: true, best: true, delayed: 2, delayed_s: 1310 }),
      way('on a100', 8, 'a100', 'a100-17', 400, 13800, { in_time: false }),
      way('no deadline', 8, 'h100', 'h100-08', 4200, 7200, {}),
    ],
  };
}

function tokens(now) {
  const of = [['root', 'admin', 40], ['ada', 'submit', 21], ['bjarne', 'submit', 20], ['grafana', 'read', 12], ['chen', 'submit', 3], ['nightly', 'submit', 1]];
  return of.map(([user, scope, days], n) => ({
    id: `4f${n}c0a9${n}`, user, scope, created_at: now - days * 86400, expires_at: n % 3 === 2 ? now + (90 - days) * 86400 : null, revoked: n === 4,
    last_used_at: n === 5 ? null : now - n * 340, limits: null, nodes: [], uses_left: null,
  }));
}

function audits(now, query) {
  const did = [['ada', 'cancel', 'job 412'], ['root', 'drain', 'h100-07'], ['chen', 'secret set', 'HF_TOKEN'], ['root', 'token made', '4f5c0a95 for nightly'], ['root', 'resume', 'a100-04']];
  const all = Array.from({ length: 260 }, (_, n) => ({ id: 260 - n, time: now - n * 1700, user: did[n % 5][0], what: did[n % 5][1], target: did[n % 5][2], outcome: 'done' }));
  const found = all.filter((one) => one.id < Number(query.get('before') ?? Infinity) && (!query.get('user') || one.user === query.get('user')));
  return { entries: found.slice(0, 200), more: found.length > 200 };
}

/** Faster and slower by turns, and slower of late. */
function pace(job, now) {
  if (job.started_at === null || !job.step) return [];
  const [from, length] = [job.started_at, (job.ended_at ?? now) - job.started_at];
  let step = 0;
  const each = Array.from({ length: 100 }, (_, n) => 1 + 0.12 * Math.sin(n / 3) - (n > 70 ? 0.25 : 0));
  const sum = each.reduce((a, b) => a + b, 0);
  return each.map((part, n) => ({ time: from + (length * n) / 99, step: Math.round(step += (part / sum) * job.step), start: 1, loss: 2.1 + 3 * Math.exp(-step / (job.steps / 5)) + Math.sin(n) * 0.03 }));
}

function nodeGoes(now, open, { drain, fail }) {
  const node = drain ?? fail;
  const there = open.filter((job) => job.nodes.some((place) => place.startsWith(`${node}[`)));
  const delays = there.slice(0, 5).map((job, n) => ({ job: job.id, name: job.name, delay_s: 5400 - n * 900, stops: 1, late: n === 0 && job.deadline !== null }));
  const row = { label: drain ? `${node} drained` : `${node} fails`, best: false, gpus: null, kind: null, nodes: [], start: null, end: null, start_interval: null, end_interval: null, in_time: null, refused: null, earliest: null, not_before: null, alone: false };
  return { made_at: now, cut: false, rows: [{ ...row, delayed: delays.length + 3, delayed_s: 26400, stranded: 0, late: delays.filter((one) => one.late).length, stopped: delays.length, delays, cut: false }] };
}

function replay(now, { history_s, alternatives }) {
  const figures = (jobs, factor, hours) => ({
    jobs, finished: jobs, avg_queue_s: 2900 * factor, p90_queue_s: 9100 * factor, avg_jct_s: 9400 + 2900 * factor, p99_jct_s: 61000 + 9000 * factor, makespan_s: 604800, deadline_total: Math.round(jobs / 9),
    deadline_met: Math.round((jobs / 9) * (1 - 0.22 * factor)), preemptions: Math.round(jobs * 0.3), avg_rho: 0.8 + 0.5 * factor, max_rho: 2.1 + 3 * factor, gpu_hours: hours, utilization: 0.86 - 0.05 * factor, cost: null,
  });
  const minus = (a, b) => Object.fromEntries(Object.keys(a).map((key) => [key, a[key] === null ? null : a[key] - b[key]]));
  const teams = [['vision', 702, 0.9], ['language', 611, 1.3], ['speech', 388, 0.7], ['robotics', 204, 1]];
  const row = (label, change, factor) => ({
    label, change, run: { policy: change.policy ?? 'max-min', round_s: change.round_s ?? 60, cluster: ['h100:19x8', ...change.add].join(','), devices: 480, ...figures(1905, factor, 61200) },
    against_baseline: label === 'baseline' ? null : minus(figures(1905, factor, 61200), figures(1905, 1, 61200)),
    teams: teams.map(([team, jobs, own], n) => { const now = figures(jobs, factor * own + (factor < 1 ? n * 0.05 : 0), jobs * 32); return { team, ...now, against_baseline: minus(now, figures(jobs, own, jobs * 32)) }; }),
  });
  const none = { policy: null, round_s: null, add: [], remove: [] };
  const label = ({ policy, round_s, add, remove }) => [policy, round_s && `round ${round_s}s`, add.length > 0 && `with ${add.join(' and ')}`, remove.length > 0 && `without ${remove.join(' and ')}`].filter(Boolean).join(', ') || 'as it is';
  return {
    window: { from: now - history_s, to: now, jobs: 1905, carried: 31, open: 214, left_out: 12 }, recorded: row('recorded', none, 1.04), baseline: row('baseline', none, 1),
    alternatives: alternatives.map((change) => row(label(change), change, change.add.length > 0 ? 0.61 : 1.32)),
    notes: ['Failures and drains of nodes are not repeated.'],
  };
}

function log(job) {
  const lines = ['loading configs/train.yaml', `world size ${job.gpus}, backend nccl`, job.checkpointed ? `resumed from step ${Math.max(0, job.checkpointed - 2000)}` : 'starting from scratch'];
  for (let n = 0; n < 40; n++) {
    const step = Math.max(0, (job.step ?? 0) - (40 - n) * 10);
    lines.push(`step ${String(step).padStart(6)}  loss ${(2.1 + 3 * Math.exp(-step / 9000) + Math.sin(n) * 0.02).toFixed(4)}  lr 3.0e-04  ${(job.rate ?? 2).toFixed(2)} it/s`);
  }
  return `${lines.join('\n')}\n`;
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const { url } = await demo({ port: Number(process.argv[2] ?? 7499), scale: Number(process.argv[3] ?? 1) });
  console.log(`${url}  (any token is good)`);
}
