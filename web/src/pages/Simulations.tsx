// Runs of `yard sim`, opened from disk: policies beside each other, and time to scrub through on the device map.
// Nothing is sent anywhere.

import { useMemo, useState } from 'preact/hooks';
import { said } from '../lib/ask';
import { plural, span } from '../lib/format';
import type { Report } from '../lib/report';
import { read, type Recording, type Run } from '../lib/simfile';
import { Empty, Failed, Panel } from '../parts/bits';
import { Playback } from '../parts/Playback';
import { RunTable } from '../parts/RunTable';
import { ReportView } from '../report/ReportView';

export function Simulations() {
  const [runs, setRuns] = useState<Run[]>([]);
  const [recordings, setRecordings] = useState<Recording[]>([]);
  const [reports, setReports] = useState<Report[]>([]);
  const [error, setError] = useState<string | null>(null);
  const [over, setOver] = useState(false);
  const open = async (files: Iterable<File>) => {
    setError(null);
    for (const file of files) {
      try {
        const found = read(file.name, await file.text());
        if ('runs' in found) setRuns((was) => [...was, ...found.runs]);
        else if ('report' in found) setReports((was) => [...was, found.report]);
        else setRecordings((was) => [...was.filter((one) => one.name !== file.name), found.recording]);
      } catch (problem) {
        setError(said(problem));
      }
    }
  };
  const end = useMemo(() => Math.max(0, ...recordings.map((recording) => recording.end)), [recordings]);
  const nothing = runs.length + recordings.length + reports.length === 0;
  return (
    <div
      class={`page ${over ? 'is-over' : ''}`}
      onDragOver={(event) => { event.preventDefault(); setOver(true); }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => { event.preventDefault(); setOver(false); void open(event.dataTransfer?.files ?? []); }}
    >
      <div class="page-head">
        <h1>Simulations</h1>
        {!nothing && <span class="note">{[reports.length > 0 && plural(reports.length, 'report'), runs.length > 0 && plural(runs.length, 'run'), recordings.length > 0 && `${plural(recordings.length, 'recording')} of ${span(end)}`].filter(Boolean).join(', ')}</span>}
        <div class="chosen">
          {!nothing && <button type="button" class="quiet" onClick={() => { setRuns([]); setRecordings([]); setReports([]); }}>Close all</button>}
          <label class="file">Open files
            <input type="file" multiple onChange={(event) => { void open([...(event.currentTarget.files ?? [])]); event.currentTarget.value = ''; }} />
          </label>
        </div>
      </div>
      {error && <Failed error={error} />}
      {nothing && (
        <Panel title="Compare policies on your own trace">
          <Empty title="Open a simulation's output, or drop it here.">
            <p><code>yard sim --trace day.csv --cluster a100:8x8 --policy fifo,srtf -o json --events run.jsonl &gt; report.json</code></p>
            <p>The report compares the policies; an event file can be played, and what <code>yard sim --html</code> writes has both. They stay on this machine.</p>
          </Empty>
        </Panel>
      )}
      <div class="stack">
        {reports.map((report, n) => <section key={n} class="stack" aria-label={report.title}><h2 class="section">{report.title}</h2><ReportView report={report} /></section>)}
        {runs.length > 0 && <Panel title="Policies"><RunTable runs={runs} /></Panel>}
        {recordings.length > 0 && <Playback recordings={recordings} end={end} clusters={runs.map((run) => run.cluster)} />}
      </div>
    </div>
  );
}
