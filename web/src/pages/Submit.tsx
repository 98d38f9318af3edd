// A new job from a form, with the command and the file that would say the same.

import { useState } from 'preact/hooks';
import * as api from '../lib/api';
import { said } from '../lib/ask';
import { go, link } from '../lib/route';
import { store, useStore } from '../lib/store';
import { asCommand, asYaml, BLANK, submission, type JobFields } from '../lib/submission';
import type { Job } from '../lib/types';
import { Failed, Panel } from '../parts/bits';
import { Copied } from '../parts/Copied';

const fresh = (): string => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;

export function Submit() {
  const { nodes, me } = useStore();
  const [fields, setFields] = useState<JobFields>(BLANK);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  // Asking twice by accident makes one job.
  const [key, setKey] = useState(fresh);
  const kinds = [...new Set([...nodes.values()].flatMap((node) => node.devices.map((device) => device.kind)))].sort();
  const set = (change: Partial<JobFields>) => { setFields({ ...fields, ...change }); setError(null); setKey(fresh()); };
  const toggle = (kind: string) => set({ kinds: fields.kinds.includes(kind) ? fields.kinds.filter((one) => one !== kind) : [...fields.kinds, kind] });
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const body = submission(fields, store.now());
      const job = await api.post<Job>('/v1/jobs', body, { 'idempotency-key': key });
      if (job) return go(link(['jobs', String(job.id)]));
    } catch (problem) {
      setError(said(problem));
    }
    setBusy(false);
  };
  const field = (name: keyof JobFields, label: string, hint: string, wide = false) => (
    <label class={wide ? 'is-wide' : ''}>{label}<input value={fields[name] as string} placeholder={hint} spellcheck={false} onInput={(event) => set({ [name]: event.currentTarget.value })} /></label>
  );
  if (me?.scope === 'read') return <div class="page"><h1>Submit</h1><p class="note">This token may only read. Submitting needs one made with <code>--scope submit</code>.</p></div>;
  return (
    <div class="page">
      <div class="page-head"><h1>Submit</h1><span class="note">A new job.</span></div>
      <div class="submit">
        <Panel title="The job">
          <form class="form is-grid" onSubmit={submit}>
            {field('command', 'Command', 'python train.py --epochs 3', true)}
            {field('name', 'Name', 'the name of the program')}
            {field('workdir', 'Folder', `/home/${me?.user ?? 'ada'}/project`)}
            {field('gpus', 'Devices', '1')}
            {field('min', 'Minimum devices', 'if it may shrink')}
            {field('max', 'Maximum devices', 'if it may grow')}
            {field('duration', 'Duration', 'unknown; 2h')}
            {field('time', 'Time limit', 'none; 6h')}
            {field('deadline', 'Deadline', 'none; 6h or 18:00')}
            {field('priority', 'Priority', '0')}
            {field('tenant', 'Team', 'none')}
            {field('checkpoints', 'Folder for checkpoints', 'none')}
            {kinds.length > 1 && (
              <fieldset class="is-wide">
                <legend>Kinds of device</legend>
                {kinds.map((kind) => <label key={kind} class="check"><input type="checkbox" checked={fields.kinds.includes(kind)} onChange={() => toggle(kind)} /> {kind}</label>)}
                <small>{fields.kinds.length === 0 && 'any'}</small>
              </fieldset>
            )}
            {error && <div class="is-wide"><Failed error={error} /></div>}
            <button type="submit" class="main is-wide" disabled={busy}>{busy ? 'Submitting…' : 'Submit'}</button>
          </form>
        </Panel>
        <Same fields={fields} />
      </div>
    </div>
  );
}

/** The same job as a command and as a file; what is wrong, once something was filled in. */
function Same({ fields }: { fields: JobFields }) {
  const told = (): { command: string; file: string } | { wrong: string } => {
    try {
      submission(fields, store.now());
      return { command: asCommand(fields, store.now()), file: asYaml(fields, store.now()) };
    } catch (problem) {
      return { wrong: said(problem) };
    }
  };
  const same = told();
  return (
    <div class="stack">
      {'wrong' in same ? (
        <Panel title="As a command"><p class="note">{same.wrong}</p></Panel>
      ) : (
        <>
          <Copied title="As a command" text={same.command} />
          <Copied title="As a file" text={same.file} note={<>Submit it with <code>yard submit -f job.yaml</code></>} />
        </>
      )}
    </div>
  );
}
