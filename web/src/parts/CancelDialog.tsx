import { useState } from 'preact/hooks';
import * as api from '../lib/api';
import { said } from '../lib/ask';
import { plural } from '../lib/format';
import type { Job } from '../lib/types';
import { Dialog } from './bits';

const AT_ONCE = 8;
const NAMED = 6;

/** Asks, cancels, and says which could not be cancelled. */
export function CancelDialog({ jobs, close }: { jobs: Job[]; close: () => void }) {
  const [reason, setReason] = useState('');
  const [done, setDone] = useState<number | null>(null);
  const [errors, setErrors] = useState<string[]>([]);
  const [list] = useState(jobs);
  const cancel = async (event: Event) => {
    event.preventDefault();
    setDone(0);
    const failed: string[] = [];
    const rest = [...list];
    const one = async () => {
      for (let job = rest.shift(); job; job = rest.shift()) {
        try {
          await api.post(`/v1/jobs/${job.id}/cancel`, reason ? { reason } : {});
        } catch (problem) {
          failed.push(`Job ${job.id}: ${said(problem)}`);
        }
        setDone((n) => (n ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    if (failed.length === 0) close();
    else setErrors(failed);
  };
  const what = list.length === 1 ? `job ${list[0]!.id}` : plural(list.length, 'job');
  return (
    <Dialog title={`Cancel ${what}?`} close={close}>
      <form onSubmit={cancel}>
        <ul class="dialog-list">
          {list.slice(0, NAMED).map((job) => <li key={job.id}>{job.id} · {job.name} <small>{job.user}, {job.state}</small></li>)}
          {list.length > NAMED && <li>and {list.length - NAMED} more</li>}
        </ul>
        <p class="note">Running jobs have their grace time to save a checkpoint.</p>
        <label>Reason <input value={reason} maxLength={500} placeholder="not needed" onInput={(event) => setReason(event.currentTarget.value)} /></label>
        {errors.length > 0 && <div class="failed" role="alert">{errors.slice(0, NAMED).map((error) => <div key={error}>{error}</div>)}</div>}
        <div class="dialog-end">
          <button type="button" onClick={close}>{errors.length > 0 ? 'Close' : 'Keep'}</button>
          {errors.length === 0 && (
            <button type="submit" class="danger" disabled={done !== null} autofocus>
              {done === null ? `Cancel ${what}` : `${done} of ${list.length}…`}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
