// A made-up cluster for pictures and for measuring the page: a small simulation of arrivals, placing and ends, from a
// seed, so that jobs, nodes and events agree with each other. It is not the scheduler.

const USERS = [
  ['ada', 'vision'], ['bjarne', 'vision'], ['chen', 'language'], ['dina', 'language'], ['emeka', 'language'],
  ['fatima', 'speech'], ['goran', 'speech'], ['hanako', 'science'], ['ivo', 'science'],
];
const MODELS = [
  ['llama-8b-sft', 8, 9000], ['llama-70b-pretrain', 32, 16000], ['vit-large-imagenet', 8, 7000], ['resnet50-sweep', 1, 2600],
  ['whisper-finetune', 4, 4200], ['sdxl-lora', 2, 3000], ['bert-large-mlm', 4, 5200], ['protein-gnn', 2, 4800],
  ['weather-unet', 16, 9000], ['clip-vit-b32', 8, 6400], ['mamba-1b', 8, 8000], ['tts-vits', 1, 3400], ['reward-model', 4, 3600],
];
const KINDS = [
  { kind: 'h200', nodes: 14, each: 8, memory: 143771, name: 'NVIDIA H200' },
  { kind: 'h100', nodes: 20, each: 8, memory: 81559, name: 'NVIDIA H100 80GB HBM3' },
  { kind: 'a100', nodes: 18, each: 8, memory: 81920, name: 'NVIDIA A100-SXM4-80GB' },
  { kind: 'l40s', nodes: 10, each: 4, memory: 46068, name: 'NVIDIA L40S' },
];

/** Waiting jobs that are looked at when something falls free. */
const TRIED = 150;

/** Numbers that look random and follow from a seed. */
export function dice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** `scale`: how many times as many nodes; `rate`: jobs an hour; `hours` of them until `now`. */
export function cluster({ seed = 1, now, scale = 1, rate = 62, hours = 7 }) {
  const random = dice(seed);
  const nodes = makeNodes(scale);
  const world = { random, now, nodes, jobs: [], events: [], waiting: [], running: [], seq: 1 };
  const begin = now - hours * 3600;
  for (let t = begin; t < now;) {
    t += (-Math.log(1 - random()) * 3600) / (rate * scale);
    finish(world, Math.min(t, now));
    if (t >= now) break;
    arrive(world, t);
    place(world, t);
  }
  finish(world, now);
  decorate(world);
  return world;
}

function makeNodes(scale) {
  const nodes = [];
  for (const { kind, nodes: count, each, memory, name } of KINDS) {
    for (let n = 0; n < Math.round(count * scale); n++) {
      const devices = Array.from({ length: each }, (_, index) => ({
        kind, index, name, uuid: null, memory_mib: memory, jobs: [], problem: null, busy: 0, memory_used_mib: 4,
        temperature_c: 31, power_w: 72, throttled: null, ecc: [0, 0], split: false, idle_jobs: [],
        links: Array.from({ length: each }, (_, other) => [other, kind === 'l40s' ? 'pcie' : 'nvlink']).filter(([other]) => other !== index),
      }));
      nodes.push({ name: `${kind}-${String(n + 1).padStart(2, '0')}`, state: 'up', reason: null, address: `10.20.${n >> 8}.${n & 255}`, devices, heard_s: 1 });
    }
  }
  return nodes;
}

function arrive(world, t) {
  const { random } = world;
  const [user, tenant] = USERS[Math.floor(random() ** 1.5 * USERS.length)];
  const [model, most, length] = MODELS[Math.floor(random() * MODELS.length)];
  const gpus = random() < 0.75 ? most : Math.max(1, most / 2);
  const id = world.jobs.length + 1;
  const steps = Math.round((2000 + random() * 60000) / 100) * 100;
  const wants = random();
  const kinds = wants < 0.4 ? ['h200', 'h100'] : wants < 0.7 ? ['h100', 'a100'] : wants < 0.9 ? ['a100', 'h100'] : gpus <= 4 ? ['l40s', 'a100'] : ['a100', 'h200'];
  const job = {
    id, name: `${model}-${String(1 + Math.floor(random() * 40)).padStart(2, '0')}`, user, tenant, state: 'pending', reason: null, gpus, kind: null,
    nodes: [], frozen: [], priority: random() < 0.08 ? 10 : 0, deadline: random() < 0.16 ? t + length * (1.3 + random() * 2) : null, promise: null, earliest: null,
    submitted_at: t, started_at: null, ended_at: null, executed_s: 0, idle_s: null, step: 0, steps, checkpointed: null, rate: null,
    starts: 0, preemptions: 0, migrations: 0, failures: 0, exit_code: null, estimate: null,
  };
  job.length = length * (0.3 + random() * 1.6);
  job.fails = random() < 0.06;
  job.kinds = kinds;
  world.jobs.push(job);
  world.waiting.push(job);
  say(world, t, 'submitted', job, {});
}

function say(world, time, event, job, detail) {
  world.events.push({ id: world.seq++ * 1048576, time, event, job: job?.id ?? null, node: null, detail });
}

/** In order, and whoever fits behind. */
function place(world, t) {
  const tried = world.waiting.slice(0, TRIED);
  const left = tried.filter((job) => !job.kinds.some((kind) => put(world, t, job, kind)));
  if (left.length < tried.length) world.waiting = [...left, ...world.waiting.slice(TRIED)];
}

/** How many devices of each kind are idle: most jobs that are tried find none, and that should cost nothing. */
function idleOf(world) {
  if (!world.idle) {
    world.idle = {};
    for (const node of world.nodes) for (const device of node.devices) world.idle[device.kind] = (world.idle[device.kind] ?? 0) + 1;
  }
  return world.idle;
}

function put(world, t, job, kind) {
  if (idleOf(world)[kind] < job.gpus) return false;
  const places = [];
  let left = job.gpus;
  const free = world.nodes
    .filter((node) => node.devices[0].kind === kind)
    .map((node) => ({ node, idle: node.devices.filter((device) => device.jobs.length === 0) }))
    .filter(({ idle }) => idle.length > 0)
    .sort((a, b) => (job.gpus >= 8 ? b.idle.length - a.idle.length : a.idle.length - b.idle.length));
  for (const { node, idle } of free) {
    const take = Math.min(left, job.gpus >= 8 ? 8 : job.gpus);
    if (idle.length < take) continue;
    places.push({ node, devices: idle.slice(0, take) });
    left -= take;
    if (left === 0) break;
  }
  if (left > 0) return false;
  for (const { devices } of places) for (const device of devices) device.jobs.push(job.id);
  world.idle[kind] -= job.gpus;
  Object.assign(job, { state: 'running', kind, started_at: t, starts: 1, places, end: t + job.length });
  job.nodes = places.map(({ node, devices }) => `${node.name}[${devices.map((device) => device.index).join(',')}]`);
  const placement = places.map(({ node, devices }) => ({ node: node.name, devices: devices.map((device) => device.index) }));
  say(world, t, 'granted', job, { lease: job.id, gpus: job.gpus, kind, placement });
  say(world, t + 4, 'started', job, {});
  world.running.push(job);
  return true;
}

function finish(world, t) {
  for (;;) {
    world.running.sort((a, b) => a.end - b.end);
    const job = world.running[0];
    if (!job || job.end > t) break;
    world.running.shift();
    world.idle[job.kind] += job.gpus;
    for (const { devices } of job.places) for (const device of devices) device.jobs = device.jobs.filter((id) => id !== job.id);
    const state = job.fails ? 'failed' : 'succeeded';
    const step = job.fails ? Math.round(job.steps * 0.4) : job.steps;
    Object.assign(job, { state, ended_at: job.end, executed_s: job.end - job.started_at, nodes: [], step, exit_code: job.fails ? 1 : 0, reason: job.fails ? 'exit code 1' : null });
    say(world, job.end, 'stopped', job, { outcome: job.fails ? 'crashed' : 'finished', steps: step });
    say(world, job.end, 'ended', job, { state, exit_code: job.exit_code, reason: job.reason });
    place(world, job.end);
  }
}

/** What agents and the forecaster would add. */
function decorate(world) {
  const { random, now, nodes, jobs } = world;
  world.events.sort((a, b) => a.time - b.time);
  world.events.forEach((event, n) => { event.id = (n + 1) * 1048576; });
  for (const node of nodes) {
    for (const device of node.devices) {
      if (device.jobs.length === 0) continue;
      const busy = Math.min(1, 0.55 + random() * 0.45);
      Object.assign(device, { busy, memory_used_mib: Math.round(device.memory_mib * (0.4 + random() * 0.5)), temperature_c: Math.round(44 + busy * 27), power_w: Math.round(180 + busy * 480) });
    }
  }
  mishaps(world);
  for (const job of jobs) {
    if (job.ended_at === null && job.started_at !== null) running(job, now, random);
    if (job.started_at === null) waiting(job, now, random);
    for (const made of ['length', 'fails', 'kinds', 'places', 'end']) delete job[made];
  }
}

function mishaps(world) {
  const { nodes, jobs } = world;
  const some = (kind, n) => nodes.filter((node) => node.devices[0].kind === kind)[n];
  Object.assign(some('h100', 6), { state: 'draining', reason: 'drained by root: fan is noisy' });
  const down = some('a100', 11);
  Object.assign(down, { state: 'down', reason: 'not heard of for 312 s', heard_s: 312 });
  for (const id of new Set(down.devices.flatMap((device) => device.jobs))) stop(world, jobs[id - 1], 312, 'lost', 'its node was lost');
  for (const device of down.devices) Object.assign(device, { busy: null, memory_used_mib: null, temperature_c: null, power_w: null });
  const icy = jobs.find((job) => job.state === 'running' && job.kind === 'h100' && job.gpus === 4);
  const cold = icy.places;
  stop(world, icy, 500, 'frozen', 'another job goes first');
  const guest = jobs.find((job) => job.state === 'running' && job.gpus === 4 && job !== icy);
  for (const { devices } of cold) for (const device of devices) Object.assign(device, { jobs: [guest.id], busy: 0.9 });
  const sick = some('h200', 3).devices[5];
  for (const id of sick.jobs) Object.assign(jobs[id - 1], { reason: 'one of its cards has errors' });
  sick.ecc = [12, 2];
  const bad = some('a100', 2).devices[1];
  Object.assign(bad, { problem: 'quarantined for 10 min: 3 starts in a row failed here', jobs: [], busy: 0 });
  const lazy = nodes.flatMap((node) => node.devices).filter((device) => device.jobs.length > 0)[9];
  for (const node of nodes) {
    for (const device of node.devices) {
      if (device.jobs[0] === lazy.jobs[0]) Object.assign(device, { idle_jobs: [...device.jobs], busy: 0, power_w: 81, temperature_c: 34 });
    }
  }
  Object.assign(jobs[lazy.jobs[0] - 1], { idle_s: 1500, reason: 'has not used its devices for 25 min' });
  const small = nodes.filter((node) => node.devices[0].kind === 'l40s').flatMap((node) => node.devices).filter((device) => device.jobs.length === 1);
  small.slice(0, 4).forEach((device, n) => device.jobs.push(small[(n + 5) % small.length].jobs[0]));
  some('l40s', 4)?.devices.forEach((device) => { device.throttled = 'power cap'; });
}

/** A job loses its devices some seconds before now. */
function stop(world, job, ago, outcome, reason) {
  for (const { devices } of job.places) for (const device of devices) Object.assign(device, { jobs: [], busy: 0, temperature_c: 33, power_w: 74 });
  Object.assign(job, { state: 'suspended', kind: null, frozen: outcome === 'frozen' ? job.nodes : [], nodes: [], reason, executed_s: Math.max(0, world.now - ago - job.started_at), preemptions: outcome === 'frozen' ? 1 : 0 });
  say(world, world.now - ago - 6, 'stopping', job, { why: outcome === 'frozen' ? 'preempted' : 'lost', to: [] });
  say(world, world.now - ago, 'stopped', job, { outcome });
  world.events.sort((a, b) => a.time - b.time).forEach((event, n) => { event.id = (n + 1) * 1048576; });
}

function running(job, now, random) {
  const part = Math.min(0.97, (now - job.started_at) / (job.end - job.started_at));
  const step = Math.floor(job.steps * part);
  const left = job.end - now;
  Object.assign(job, {
    executed_s: job.state === 'running' ? now - job.started_at : job.executed_s, step, checkpointed: Math.floor(step / 500) * 500, rate: job.state === 'running' ? job.steps / job.length : null,
    promise: job.deadline !== null && job.deadline > job.end ? job.deadline : null,
    estimate: { made_at: now - 4, start: null, end: { low: now + left * 0.92, mid: now + left * (1 + random() * 0.02), high: now + left * 1.14 } },
  });
}

function waiting(job, now, random) {
  const wait = 300 + random() * 5400;
  const start = { low: now + wait * 0.4, mid: now + wait, high: now + wait * 1.9 };
  job.estimate = { made_at: now - 4, start, end: { low: start.low + job.length * 0.9, mid: start.mid + job.length, high: start.high + job.length * 1.2 } };
  if (job.deadline !== null && job.deadline < start.mid + job.length) job.earliest = start.mid + job.length;
}
