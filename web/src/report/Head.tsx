// What was simulated, how to do it again, and the one sentence to take away.

import { useRef, useState } from 'preact/hooks';
import { plural, span } from '../lib/format';
import type { Report } from '../lib/report';

export function Head({ report }: { report: Report }) {
  return (
    <>
      <Takeaway report={report} />
      {report.command && <Command text={report.command} />}
      <dl class="settings">
        {report.settings.map(([name, value], n) => <div key={n}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
    </>
  );
}

/** Who was done soonest on average, and by how much. */
function Takeaway({ report }: { report: Report }) {
  const known = report.runs.flatMap((run) => { const mean = run.summary['avg_jct_s']; return typeof mean === 'number' ? [{ run, mean }] : []; });
  const [first, ...others] = known.sort((a, b) => a.mean - b.mean);
  const last = others[others.length - 1];
  if (!first) return null;
  if (!last) return <p class="lead">Jobs took <b>{span(first.mean)}</b> on average, over {plural(first.run.jobs, 'finished job')}.</p>;
  const ratio = last.mean / first.mean;
  if (!(ratio >= 1.005)) return <p class="lead">Under all policies jobs took {span(first.mean)} on average.</p>;
  return (
    <p class="lead">
      Under <b>{first.run.policy}</b> jobs took {span(first.mean)} on average, <b>{ratio.toFixed(ratio < 10 ? 2 : 0)} times</b> less than the {span(last.mean)} under {last.run.policy}.
    </p>
  );
}

function Command({ text }: { text: string }) {
  const code = useRef<HTMLElement>(null);
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      // A page from a file may not be allowed to: at least it is selected.
      getSelection()?.selectAllChildren(code.current!);
    }
  };
  return (
    <div class="command">
      <pre tabIndex={0} aria-label="Command"><code ref={code}>{text}</code></pre>
      <button type="button" class="small" onClick={() => void copy()}>{copied ? 'Copied' : 'Copy'}</button>
    </div>
  );
}

const MEASURES: [string, string][] = [
  ['Completion', 'From arrival to end, over jobs that ended.'],
  ['Waiting', 'The part of that time without devices, also after preemptions.'],
  ['Makespan', 'From the first arrival to the last end.'],
  ['Use', 'Device time used by jobs, of the device time available.'],
  ['ρ', 'Finish-time fairness: completion compared with that on a private 1/n share; 1 is fair, larger is worse.'],
];

export function Foot({ report }: { report: Report }) {
  return (
    <footer class="report-foot">
      <dl>{MEASURES.map(([name, text]) => <div key={name}><dt>{name}</dt><dd>{text}</dd></div>)}</dl>
      <p>Made by {report.version}. This file is whole: it loads nothing.</p>
    </footer>
  );
}
