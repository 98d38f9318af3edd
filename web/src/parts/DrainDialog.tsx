import { useState } from 'preact/hooks';
import * as api from '../lib/api';
import { said } from '../lib/ask';
import { plural } from '../lib/format';
import type { Node } from '../lib/types';
import { Dialog } from './bits';

/** Takes a node out of service, or back into it. */
export function DrainDialog({ node, close }: { node: Node; close: () => void }) {
  const [reason, setReason] = useState('');
  const [evict, setEvict] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [resume] = useState(node.state === 'draining');
  const jobs = new Set(node.devices.flatMap((device) => device.jobs)).size;
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const path = `/v1/nodes/${encodeURIComponent(node.name)}/${resume ? 'resume' : 'drain'}`;
      await api.post(path, { ...(reason ? { reason } : {}), ...(resume ? {} : { evict }) });
      close();
    } catch (problem) {
      setError(said(problem));
      setBusy(false);
    }
  };
  const word = resume ? 'Resume' : 'Drain';
  return (
    <Dialog title={`${word} ${node.name}?`} close={close}>
      <form onSubmit={submit}>
        <p class="note">{resume ? `It accepts jobs again.${node.reason ? ` It was drained: ${node.reason}.` : ''}` : `It accepts no new jobs. ${jobs === 0 ? 'No job runs there.' : `${plural(jobs, 'job')} there ${jobs === 1 ? 'runs' : 'run'} on.`}`}</p>
        <label>Reason <input value={reason} maxLength={500} autofocus placeholder={resume ? 'fan replaced' : 'fan is noisy'} onInput={(event) => setReason(event.currentTarget.value)} /></label>
        {!resume && jobs > 0 && <label class="check"><input type="checkbox" checked={evict} onChange={() => setEvict(!evict)} /> Move its jobs to other nodes (they save a checkpoint first)</label>}
        {error && <p class="failed" role="alert">{error}</p>}
        <div class="dialog-end">
          <button type="button" onClick={close}>Cancel</button>
          <button type="submit" class="main" disabled={busy}>{word}</button>
        </div>
      </form>
    </Dialog>
  );
}
