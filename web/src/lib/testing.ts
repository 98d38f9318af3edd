// Things for tests, with all that does not matter filled in.

import type { Device, Fact, Job, Node } from './types';

export function job(more: Partial<Job> = {}): Job {
  return {
    id: 1, name: 'train', user: 'ada', tenant: null, state: 'pending', reason: null, gpus: 1, kind: null, nodes: [], frozen: [], priority: 0,
    deadline: null, promise: null, earliest: null, submitted_at: 0, started_at: null, ended_at: null, executed_s: 0, idle_s: null,
    step: null, steps: null, checkpointed: null, rate: null, starts: 0, preemptions: 0, migrations: 0, failures: 0, exit_code: null,
    length: null, estimate: null, ...more,
  };
}

export function device(more: Partial<Device> = {}): Device {
  return {
    kind: 'h100', index: 0, name: 'H100', uuid: null, memory_mib: null, jobs: [], problem: null, busy: null, memory_used_mib: null,
    temperature_c: null, power_w: null, throttled: null, ecc: null, split: false, links: [], idle_jobs: [], ...more,
  };
}

export function node(name: string, devices: Device[]): Node {
  return { name, state: 'up', reason: null, address: '', devices, heard_s: 0 };
}

export function fact(time: number, event: string, of: number | null, detail: Fact['detail'] = {}): Fact {
  return { id: time, time, event, job: of, node: null, detail };
}
