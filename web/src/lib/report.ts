// What `yard sim --html` puts into its page, and what is made of it to look at: recordings, points of charts, rows.

import { Palette } from './colors';
import type { Lease, MapNode, Recording, Run } from './simfile';
import type { Point } from './spans';

export interface Cdf { x: number[]; p: number[] }
export interface Box { count: number; mean: number; p10: number; p25: number; p50: number; p75: number; p90: number }
export interface Track { mean: number[]; max: number[] }
export interface Series { t0: number; width: number; used: Track; queued_jobs: Track; queued_gpus: Track; running: Track }
export type Measure = 'used' | 'queued_jobs' | 'queued_gpus' | 'running';

/** Who held what, by column: ticks since the bar before, and how many ticks. */
export interface Bars {
  tick_s: number; origin_s: number; until_s: number | null;
  node: number[]; first: number[]; devices: number[]; job: number[]; start: number[]; length: number[]; lane: number[]; lanes: number[];
  /** Which team each is of; empty where there are not several. */
  team: number[];
}

export interface Market { kinds: string[]; t: number[]; end: number; prices: number[][]; objective: number[]; gap: number[] }
export interface TeamRow { team: number; jobs: number; wait: number; jct: number; gpu_h: number; rho: number | null; met: number; due: number }

export interface RunView {
  policy: string;
  summary: Run;
  cluster: number;
  jobs: number;
  jct: Cdf;
  wait: Cdf;
  boxes: (Box | null)[];
  series: Series | null;
  gantt: Bars;
  /** In the order of the page's jobs; nothing where a job did not end. */
  ended: { wait: (number | null)[]; jct: (number | null)[]; preemptions: (number | null)[] };
  teams: TeamRow[];
  market: Market | null;
  followed: [number, number][];
}

export interface Report {
  title: string;
  command: string;
  version: string;
  settings: [string, string][];
  classes: string[];
  clusters: { name: string[]; kind: string[]; gpus: number[]; gpus_total: number; nodes_total: number }[];
  /** The jobs that are listed, by column; `total` counts all. */
  jobs: { total: number; id: number[]; name: string[]; gpus: number[]; submit: number[]; team: number[] };
  teams: string[];
  runs: RunView[];
}

const OPENING = '<script type="application/json" id="data">';

/** The data of a page that `yard sim --html` wrote; nothing where it is none. */
export function reportIn(html: string): Report | null {
  const at = html.indexOf(OPENING);
  if (at < 0) return null;
  const text = html.slice(at + OPENING.length, html.indexOf('</script>', at));
  const value = JSON.parse(text) as Report;
  return Array.isArray(value.runs) && value.jobs ? value : null;
}

/** When the last run of a report ended. */
export function endOf(report: Report): number {
  return Math.max(0, ...report.runs.map((run) => (run.series ? seriesEnd(run.series) : 0)), ...report.runs.map((run) => run.gantt.until_s ?? 0));
}

function seriesEnd(series: Series): number {
  return series.t0 + series.width * series.used.mean.length;
}

/** How many devices a run's cluster has; without a list of nodes the most that was ever used. */
export function capacity(report: Report, run: RunView): number {
  return report.clusters[run.cluster]?.gpus_total || Math.max(1, ...(run.series?.used.max ?? []));
}

/** A measure at `steps` even times from one time to another: the mean since the time before. */
export function sampled(series: Series | null, measure: Measure, from: number, to: number, steps: number): number[] {
  const width = (to - from) / steps;
  return Array.from({ length: steps + 1 }, (_, n) => (series ? meanOf(series, measure, from + n * width, width) : 0));
}

function meanOf({ t0, width, ...tracks }: Series, measure: Measure, time: number, span: number): number {
  const { mean } = tracks[measure];
  const first = Math.max(0, Math.floor((time - span - t0) / width) + 1);
  const last = Math.floor((time - t0) / width);
  if (last < 0 || first >= mean.length) return 0;
  const [begin, end] = [Math.min(first, last), Math.min(last, mean.length - 1)];
  let sum = 0;
  for (let at = begin; at <= end; at++) sum += mean[at]!;
  return sum / (end - begin + 1);
}

/** Points of a chart that compares runs. */
export function compared(report: Report, runs: RunView[], measure: Measure, from: number, to: number, steps = 240): Point[] {
  const columns = runs.map((run) => {
    const whole = measure === 'used' ? capacity(report, run) : 1;
    return sampled(run.series, measure, from, to, steps).map((value) => value / whole);
  });
  return Array.from({ length: steps + 1 }, (_, n) => ({ time: from + ((to - from) * n) / steps, values: columns.map((column) => column[n]!) }));
}

/** Prices as they were at even times; a price holds until the next plan. */
export function pricesOf(market: Market, from: number, to: number, steps = 400): Point[] {
  let at = 0;
  return Array.from({ length: steps + 1 }, (_, n) => {
    const time = from + ((to - from) * n) / steps;
    while (at + 1 < market.t.length && market.t[at + 1]! <= time) at++;
    return { time, values: market.prices.map((line) => line[at] ?? 0) };
  });
}

/** What jobs are called and which team they are of, as far as they are listed. */
export class Names {
  private at = new Map<number, number>();
  private teams = new Map<number, number>();
  private colors: Palette;

  constructor(private report: Report) {
    report.jobs.id.forEach((id, n) => this.at.set(id, n));
    for (const { gantt } of report.runs) gantt.team.forEach((team, n) => this.teams.set(gantt.job[n]!, team));
    this.colors = new Palette(report.teams);
  }

  name(job: number): string {
    const at = this.at.get(job);
    return at === undefined ? `job ${job}` : `job ${job} ${this.report.jobs.name[at]}`;
  }

  team(job: number): string | null {
    return this.report.teams[this.teams.get(job) ?? -1] ?? null;
  }

  teamHue(job: number): string {
    const team = this.team(job);
    return team === null ? 'hue-other' : this.colors.of(team);
  }
}

/** A run as a recording to play. */
export function recordingOf(report: Report, run: RunView, names: Names, byTeam: boolean): Recording {
  const cluster = report.clusters[run.cluster];
  const nodes: MapNode[] = (cluster?.name ?? []).map((name, n) => ({ name, kind: cluster!.kind[n]!, devices: cluster!.gpus[n]! }));
  return {
    name: run.policy,
    leases: leasesOf(run.gantt),
    nodes: nodes.map((node) => node.devices),
    cluster: nodes,
    away: [],
    end: run.series ? seriesEnd(run.series) : 0,
    jobs: run.jobs,
    until: run.gantt.until_s,
    points: (end) => {
      const [waiting, running] = [sampled(run.series, 'queued_jobs', 0, end, 240), sampled(run.series, 'running', 0, end, 240)];
      return waiting.map((value, n) => ({ time: (end * n) / 240, values: [value, running[n]!] }));
    },
    describe: (job) => [names.name(job), names.team(job)].filter(Boolean).join(' · '),
    hue: byTeam ? (job) => names.teamHue(job) : undefined,
  };
}

function leasesOf(bars: Bars): Lease[] {
  let tick = 0;
  return bars.start.map((step, n) => {
    tick += step;
    const from = bars.origin_s + tick * bars.tick_s;
    const devices = Array.from({ length: bars.devices[n]! }, (_, k) => bars.first[n]! + k);
    const lease: Lease = { jobs: [bars.job[n]!], places: [{ node: bars.node[n]!, devices }], from, to: from + bars.length[n]! * bars.tick_s };
    if ((bars.lanes[n] ?? 1) > 1) lease.lane = [bars.lane[n]!, bars.lanes[n]!];
    return lease;
  });
}
