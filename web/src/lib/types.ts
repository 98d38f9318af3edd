// What the API answers, as far as the page reads it. The names are those of `/v1/openapi.json`.

export interface Interval { low: number; mid: number; high: number | null }
/** Why there is no interval. */
export type Unknown = 'beyond' | 'scattered' | 'length';
export interface Estimate { made_at: number; start: Interval | null; end: Interval | null; start_unknown: Unknown | null; end_unknown: Unknown | null }
/** How long a job is of which nobody said so; no seconds: unknown. */
export interface Length { seconds: number | null; alike: string; jobs: number }

export interface Job {
  id: number;
  name: string;
  user: string;
  tenant: string | null;
  state: string;
  reason: string | null;
  gpus: number;
  kind: string | null;
  nodes: string[];
  /** Where it lies frozen. */
  frozen: string[];
  priority: number;
  deadline: number | null;
  promise: number | null;
  /** Whether that may not be kept after all. */
  at_risk?: boolean;
  earliest: number | null;
  submitted_at: number;
  started_at: number | null;
  ended_at: number | null;
  executed_s: number;
  idle_s: number | null;
  step: number | null;
  steps: number | null;
  checkpointed: number | null;
  rate: number | null;
  starts: number;
  preemptions: number;
  migrations: number;
  failures: number;
  exit_code: number | null;
  length: Length | null;
  estimate: Estimate | null;
  request?: Record<string, unknown>;
}

export interface Device {
  kind: string;
  index: number;
  name: string;
  uuid: string | null;
  memory_mib: number | null;
  jobs: number[];
  problem: string | null;
  busy: number | null;
  memory_used_mib: number | null;
  temperature_c: number | null;
  power_w: number | null;
  throttled: string | null;
  ecc: [number, number] | null;
  split: boolean;
  links: [number, string][];
  idle_jobs: number[];
}

export interface Node {
  name: string;
  state: string;
  reason: string | null;
  address: string;
  devices: Device[];
  heard_s: number | null;
}

export interface Status {
  version: string;
  policy: string;
  round_s: number;
  pending: number;
  running: number;
  ended: number;
  nodes_up: number;
  devices: number;
  devices_held: number;
  prices: Record<string, number>;
  rounds: number;
  plans: number;
}

export interface Change {
  revision: number;
  time: number;
  whole: boolean;
  jobs: Job[];
  nodes: Node[];
  status: Status | null;
}

export interface Place { node: string; devices: number[] }

export interface Fact {
  id: number;
  time: number;
  event: string;
  job: number | null;
  node: string | null;
  detail: {
    lease?: number;
    gpus?: number;
    kind?: string | null;
    placement?: Place[];
    why?: string;
    to?: number[];
    outcome?: string;
    state?: string;
    reason?: string | null;
    message?: string | null;
    exit_code?: number | null;
    change?: unknown;
    by?: number;
    likely?: number | null;
    earliest?: number | null;
    after?: number;
  };
}

export interface Explanation {
  job: number;
  state: string;
  reason: string;
  text: string;
  numbers: Record<string, number>;
  ahead: number[];
  remedies: string[];
  prices: Record<string, number>;
  ways?: { kind: string; gpus: number; rate: number; price: number | null; held: boolean }[];
}

/** How far a job was at a time, and which of its starts that was. */
export interface PacePoint { time: number; step: number; start: number; loss?: number }

export interface Me { user: string; scope: string }

/** `delay_s`: none where it would not end at all. */
export interface Delay { job: number; name: string; delay_s: number | null; stops: number; late: boolean }

export interface WhatIfRow {
  label: string;
  best: boolean;
  gpus: number | null;
  kind: string | null;
  nodes: string[];
  start: number | null;
  end: number | null;
  start_interval: Interval | null;
  end_interval: Interval | null;
  start_unknown: Unknown | null;
  end_unknown: Unknown | null;
  in_time: boolean | null;
  refused: string | null;
  earliest: number | null;
  delayed: number;
  delayed_s: number;
  /** Of the delayed, jobs that would not end. */
  stranded: number;
  late: number;
  stopped: number;
  delays: Delay[];
  cut: boolean;
  /** Whether start and end are only about right. */
  rough: boolean;
  rough_end: boolean;
  /** When it would start at the earliest, where it is not known when it would. */
  not_before: number | null;
  /** Whether it is a first answer: what the job would cost others is not in it. */
  alone: boolean;
}

export interface WhatIf { made_at: number; rows: WhatIfRow[]; cut: boolean }

/** A token; never its secret. */
export interface Token {
  id: string;
  user: string;
  scope: string;
  created_at: number;
  expires_at: number | null;
  revoked: boolean;
  last_used_at: number | null;
}

export interface AuditEntry { id: number; time: number; user: string; what: string; target: string; outcome: string }

/** What is different from how things are, on history. */
export interface Altered { policy: string | null; round_s: number | null; add: string[]; remove: string[] }

export interface Figures {
  jobs: number;
  finished: number;
  avg_queue_s: number | null;
  p90_queue_s: number | null;
  avg_jct_s: number | null;
  p99_jct_s: number | null;
  makespan_s: number | null;
  deadline_total: number;
  deadline_met: number;
  preemptions: number;
  avg_rho: number | null;
  max_rho: number | null;
  gpu_hours: number;
  utilization: number | null;
  cost: number | null;
}

export type Difference = { [name in keyof Figures]?: number | null };

export interface ReplayRow {
  label: string;
  change: Altered;
  run: Figures & { policy: string; round_s: number; cluster: string };
  against_baseline: Difference | null;
  teams: (Figures & { team: string; against_baseline: Difference | null })[];
}

export interface Replay {
  window: { from: number; to: number; jobs: number; carried: number; open: number; left_out: number };
  recorded: ReplayRow;
  baseline: ReplayRow;
  alternatives: ReplayRow[];
  notes: string[];
}
