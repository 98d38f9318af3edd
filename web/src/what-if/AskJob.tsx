// What would become of a job if it were submitted now, and of the same job asked for in other ways. Nothing is
// submitted.

import { useEffect, useState } from 'preact/hooks';
import { useGet } from '../lib/ask';
import { EMPTY, fieldsOf, request, type Fields } from '../lib/question';
import { link } from '../lib/route';
import { store, useStore } from '../lib/store';
import type { Job, WhatIf } from '../lib/types';
import { Failed, Panel } from '../parts/bits';
import { Ways } from '../parts/Ways';
import { useAsking } from './asking';

/** `like`: the number of a job to begin with. */
export function AskJob({ like }: { like: string | null }) {
  const { value: job, error: missing } = useGet<Job>(like ? `/v1/jobs/${encodeURIComponent(like)}` : null);
  const base = job?.request ?? null;
  const [fields, setFields] = useState<Fields>(EMPTY);
  const { answer, error, busy, more, ask } = useAsking<WhatIf>('/v1/what-if', () => questions(request(fields, base, store.now())));
  useEffect(() => { if (base) setFields({ ...fieldsOf(base), duration: fieldsOf(base).duration || EMPTY.duration }); }, [base]);
  return (
    <>
      <Panel title={job ? `Like ${job.name} (${job.id})` : 'The job'} aside={job && <a href={link(['what-if'])}>start over</a>}>
        {missing && <Failed error={missing} />}
        <Form fields={fields} set={setFields} ask={ask} busy={busy} />
      </Panel>
      <Panel title="What would happen">
        {error && <Failed error={error} />}
        {more && <p class="note" role="status">First answer. The exact one, alternatives and the effect on other jobs follow…</p>}
        {answer ? <Ways answer={answer} now={answer.made_at} /> : !error && <p class="note">Describe the job and ask. The scheduler is simulated from the current state: with this job, and with alternatives to it.</p>}
      </Panel>
    </>
  );
}

/** First the job alone, which is answered within a second, then with all that takes longer. */
const questions = (job: Record<string, unknown>) => [{ job, quick: true }, { job }];

interface FormProps { fields: Fields; set: (fields: Fields) => void; ask: (event: Event) => void; busy: boolean }

function Form({ fields, set, ask, busy }: FormProps) {
  const { nodes } = useStore();
  const kinds = [...new Set([...nodes.values()].flatMap((node) => node.devices.map((device) => device.kind)))].sort();
  const field = (name: keyof Fields, label: string, hint: string) => (
    <label>{label}<input value={fields[name] as string} placeholder={hint} onInput={(event) => set({ ...fields, [name]: event.currentTarget.value })} /></label>
  );
  const toggle = (kind: string) => set({ ...fields, kinds: fields.kinds.includes(kind) ? fields.kinds.filter((one) => one !== kind) : [...fields.kinds, kind] });
  return (
    <form class="form" onSubmit={ask}>
      {field('gpus', 'Devices', '1')}
      {field('duration', 'Duration', '2h')}
      {field('deadline', 'Deadline', 'none; 6h or 18:00')}
      {field('priority', 'Priority', '0')}
      {field('min', 'Minimum devices', 'if it may shrink')}
      {field('max', 'Maximum devices', 'if it may grow')}
      {kinds.length > 1 && (
        <fieldset>
          <legend>Kinds</legend>
          {kinds.map((kind) => <label key={kind} class="check"><input type="checkbox" checked={fields.kinds.includes(kind)} onChange={() => toggle(kind)} /> {kind}</label>)}
          <small>{fields.kinds.length === 0 && 'any'}</small>
        </fieldset>
      )}
      <button type="submit" class="main" disabled={busy}>{busy ? 'Simulating…' : 'Ask'}</button>
    </form>
  );
}
