// A whole report of `yard sim`: what the file shows, and what the page of simulations shows of such a file.

import { useMemo, useState } from 'preact/hooks';
import { count } from '../lib/format';
import { Palette } from '../lib/colors';
import { endOf, Names, recordingOf, type Report } from '../lib/report';
import { Panel } from '../parts/bits';
import { Playback } from '../parts/Playback';
import { RunTable } from '../parts/RunTable';
import { Distribution } from './Distribution';
import { Followed } from './Followed';
import { Head } from './Head';
import { JobTable } from './JobTable';
import { OverTime, Prices } from './OverTime';
import { Sizes } from './Sizes';
import { TeamTable } from './TeamTable';

export function ReportView({ report }: { report: Report }) {
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [byTeam, setByTeam] = useState(false);
  const colors = useMemo(() => new Palette(report.runs.map((run) => run.policy)), [report]);
  const names = useMemo(() => new Names(report), [report]);
  const runs = useMemo(() => report.runs.filter((run) => !hidden.has(run.policy)), [report, hidden]);
  const recordings = useMemo(() => runs.filter((run) => run.gantt.job.length > 0).map((run) => recordingOf(report, run, names, byTeam)), [runs, byTeam]);
  const end = useMemo(() => endOf(report), [report]);
  const hue = (policy: string) => colors.of(policy);
  const toggle = (policy: string) => setHidden((was) => { const next = new Set(was); if (!next.delete(policy)) next.add(policy); return next; });
  return (
    <div class="stack">
      <Head report={report} />
      {report.runs.length > 1 && (
        <div class="policies" role="group" aria-label="Policies shown">
          {report.runs.map(({ policy }) => <button key={policy} type="button" class="small" aria-pressed={!hidden.has(policy)} onClick={() => toggle(policy)}><i class={`mark ${hue(policy)}`} />{policy}</button>)}
        </div>
      )}
      {runs.length === 0 && <p class="note">No policy is selected.</p>}
      {runs.length > 0 && (
        <>
          <Panel title="Policies"><RunTable runs={runs.map((run) => ({ ...run.summary, policy: run.policy }))} hue={hue} /><All report={report} /></Panel>
          <OverTime report={report} runs={runs} end={end} hue={hue} />
          <div class="charts"><Distribution runs={runs} hue={hue} /><Sizes report={report} runs={runs} hue={hue} /></div>
          {(runs.some((run) => run.market) || runs.some((run) => run.followed.length > 0)) && <div class="charts"><Prices runs={runs} /><Followed runs={runs} hue={hue} /></div>}
          <TeamTable report={report} runs={runs} hue={hue} />
          {recordings.length > 0 && (
            <section class="stack" aria-label="Devices over time">
              <div class="page-head">
                <h2 class="section">Devices over time</h2>
                {report.clusters.some((cluster) => cluster.nodes_total > cluster.name.length) && <span class="note">The first {count(report.clusters[0]!.name.length)} of {count(report.clusters[0]!.nodes_total)} nodes.</span>}
                {report.teams.length > 1 && (
                  <div class="choice" role="group" aria-label="Colour by">
                    <button type="button" aria-pressed={!byTeam} onClick={() => setByTeam(false)}>job</button>
                    <button type="button" aria-pressed={byTeam} onClick={() => setByTeam(true)}>team</button>
                  </div>
                )}
                {byTeam && <Teams names={report.teams} />}
              </div>
              <Playback recordings={recordings} end={end} clusters={[]} />
            </section>
          )}
          <JobTable report={report} runs={runs} />
        </>
      )}
    </div>
  );
}

function Teams({ names }: { names: string[] }) {
  const colors = new Palette(names);
  return <div class="legend">{colors.names().map((name) => <span key={name}><i class={colors.of(name)} />{name}</span>)}{names.length > colors.names().length && <span><i class="hue-other" />others</span>}</div>;
}

/** Every figure of the JSON output, for whoever wants the rest. */
function All({ report }: { report: Report }) {
  const keys = [...new Set(report.runs.flatMap((run) => Object.keys(run.summary)))].filter((key) => key !== 'policy');
  const write = (value: unknown) => (value === null || value === undefined ? '–' : typeof value === 'object' ? JSON.stringify(value) : String(value));
  return (
    <details class="all-figures">
      <summary>All figures, as in the JSON output</summary>
      <div class="wide-table" tabIndex={0}>
        <table>
          <thead><tr><td />{report.runs.map((run) => <th key={run.policy} scope="col">{run.policy}</th>)}</tr></thead>
          <tbody>{keys.map((key) => <tr key={key}><th scope="row">{key}</th>{report.runs.map((run) => <td key={run.policy}>{write(run.summary[key])}</td>)}</tr>)}</tbody>
        </table>
      </div>
    </details>
  );
}
