// What a job says, by rank, as it says it. Shown as text, whatever it holds.

import { useEffect, useRef, useState } from 'preact/hooks';
import * as api from '../lib/api';
import { said } from '../lib/ask';
import { plain } from '../lib/format';
import { holds, isOver } from '../lib/store';
import type { Job } from '../lib/types';
import { Panel } from './bits';

const TAIL = 2000;
/** Characters that are kept on the page. */
const MOST = 1_000_000;

export function Logs({ job }: { job: Job }) {
  const [rank, setRank] = useState(0);
  const [stderr, setStderr] = useState(false);
  const [follow, setFollow] = useState(true);
  const [error, setError] = useState<string | null>(null);
  const [some, setSome] = useState(false);
  const pre = useRef<HTMLPreElement>(null);
  const stick = useRef(true);
  const begun = job.starts > 0 || job.started_at !== null;
  const live = holds(job);
  useEffect(() => {
    if (!begun) return;
    const abort = new AbortController();
    const box = pre.current!;
    box.textContent = '';
    setError(null);
    setSome(false);
    const path = `/v1/jobs/${job.id}/logs?rank=${rank}&stderr=${stderr}&tail=${TAIL}&follow=${follow && live}`;
    const show = (text: string) => {
      if (text.length > 0) setSome(true);
      append(box, text);
      if (stick.current) box.scrollTop = box.scrollHeight;
    };
    api.text(path, abort.signal, show).catch((problem: unknown) => {
      if (!abort.signal.aborted) setError(said(problem));
    });
    return () => abort.abort();
  }, [job.id, begun, live, rank, stderr, follow, job.starts]);
  const ranks = rankCount(job);
  const aside = (
    <>
      {ranks > 1 && (
        <label>rank <select value={rank} onChange={(event) => setRank(Number(event.currentTarget.value))}>
          {Array.from({ length: ranks }, (_, n) => <option key={n} value={n}>{n}</option>)}
        </select></label>
      )}
      <div class="choice" role="group" aria-label="Which output">
        <button type="button" aria-pressed={!stderr} onClick={() => setStderr(false)}>output</button>
        <button type="button" aria-pressed={stderr} onClick={() => setStderr(true)}>errors</button>
      </div>
      {live && <label><input type="checkbox" checked={follow} onChange={() => setFollow(!follow)} /> follow</label>}
    </>
  );
  return (
    <Panel title="Log" aside={begun && aside} class="span-all">
      {!begun && <p class="note">{isOver(job) ? 'No log: it never ran.' : 'The log appears here as soon as the job runs.'}</p>}
      {error && <p class="failed" role="alert">{error}</p>}
      {begun && !some && !error && <p class="note">{live ? 'No output yet.' : 'No output.'}{!stderr && ' Some programs write only to standard error.'}</p>}
      <pre
        ref={pre} class={`log ${begun && some ? '' : 'is-empty'}`} tabIndex={0} role="log" aria-label={`Log of rank ${rank}`}
        onScroll={(event) => { const at = event.currentTarget; stick.current = at.scrollHeight - at.scrollTop - at.clientHeight < 30; }}
      />
    </Panel>
  );
}

function append(box: HTMLPreElement, text: string): void {
  box.append(document.createTextNode(plain(text)));
  let size = box.textContent?.length ?? 0;
  while (size > MOST && box.firstChild && box.firstChild !== box.lastChild) {
    size -= box.firstChild.textContent?.length ?? 0;
    box.firstChild.remove();
  }
}

/** One process for each node, or for each device, as was asked for. */
function rankCount(job: Job): number {
  if (job.request?.['ranks'] === 'device') return Math.max(1, job.gpus);
  const asked = Number(job.request?.['nodes'] ?? 0);
  return Math.max(1, job.nodes.length, asked);
}
