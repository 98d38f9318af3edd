import { useState } from 'preact/hooks';
import * as api from '../lib/api';
import { said } from '../lib/ask';
import { go, link } from '../lib/route';
import type { Job } from '../lib/types';
import { Dialog } from './bits';

/** The same request again, changed where one likes. */
export function ResubmitDialog({ request, close }: { request: Record<string, unknown>; close: () => void }) {
  const [text, setText] = useState(() => JSON.stringify(request, null, 2));
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  // Asking twice by accident makes one job.
  const [key] = useState(() => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const body: unknown = JSON.parse(text);
      const job = await api.post<Job>('/v1/jobs', body, { 'idempotency-key': `${key}-${text.length}` });
      close();
      if (job) go(link(['jobs', String(job.id)]));
    } catch (problem) {
      setError(problem instanceof SyntaxError ? `This is not JSON: ${problem.message}` : said(problem));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Submit again" close={close} wide>
      <form onSubmit={submit}>
        <label for="spec">What is submitted; change what should differ.</label>
        <textarea id="spec" spellcheck={false} rows={16} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        {error && <p class="failed" role="alert">{error}</p>}
        <div class="dialog-end">
          <button type="button" onClick={close}>Close</button>
          <button type="submit" class="main" disabled={busy}>Submit</button>
        </div>
      </form>
    </Dialog>
  );
}
