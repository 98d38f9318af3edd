// Who would be hit if a node were drained or failed. Nothing happens to it.

import { useState } from 'preact/hooks';
import { plural, span } from '../lib/format';
import { nodeQuestion, type NodeFields } from '../lib/question';
import { store, useStore } from '../lib/store';
import type { WhatIf, WhatIfRow } from '../lib/types';
import { Failed, Panel } from '../parts/bits';
import { Delays } from '../parts/Ways';
import { useAsking } from './asking';

export function AskNode({ node }: { node: string | null }) {
  const names = useStore().nodesByName().map((node) => node.name);
  const [fields, setFields] = useState<NodeFields>({ node: node ?? names[0] ?? '', what: 'drain', evict: false, at: '' });
  const { answer, error, busy, ask } = useAsking<WhatIf>('/v1/what-if', () => [nodeQuestion(fields, store.now())]);
  const set = (change: Partial<NodeFields>) => setFields({ ...fields, ...change });
  return (
    <>
      <Panel title="The node">
        <form class="form" onSubmit={ask}>
          <label>Node<select value={fields.node} onChange={(event) => set({ node: event.currentTarget.value })}>{names.map((name) => <option key={name} value={name}>{name}</option>)}</select></label>
          <fieldset>
            <legend>What happens to it</legend>
            <label class="check"><input type="radio" name="what" checked={fields.what === 'drain'} onChange={() => set({ what: 'drain' })} /> it is drained</label>
            <label class="check"><input type="radio" name="what" checked={fields.what === 'fail'} onChange={() => set({ what: 'fail' })} /> it fails</label>
          </fieldset>
          {fields.what === 'drain' && <label class="check"><input type="checkbox" checked={fields.evict} onChange={() => set({ evict: !fields.evict })} /> move its jobs to other nodes</label>}
          <label>When<input value={fields.at} placeholder="now; 2h or 18:00" onInput={(event) => set({ at: event.currentTarget.value })} /></label>
          <button type="submit" class="main" disabled={busy}>{busy ? 'Simulating…' : 'Ask'}</button>
        </form>
      </Panel>
      <Panel title="Affected jobs">
        {error && <Failed error={error} />}
        {answer ? answer.rows.map((row) => <Hit key={row.label} row={row} cut={answer.cut} />) : !error && <p class="note">Choose a node and ask. The scheduler is simulated from the current state, with the node and without it. The node itself is not touched.</p>}
      </Panel>
    </>
  );
}

function Hit({ row, cut }: { row: WhatIfRow; cut: boolean }) {
  const later = row.delayed - row.stranded;
  const nobody = row.delayed + row.stopped + row.late === 0;
  return (
    <div class="ways">
      <h3>{row.label}</h3>
      {nobody ? <p class="why">No job would be delayed or preempted.</p> : (
        <dl class="numbers is-small">
          <div><dt>later</dt><dd>{plural(later, 'job')}<small> {later > 0 && `by ${span(row.delayed_s)} in all`}</small></dd></div>
          <div><dt>stopped</dt><dd>{plural(row.stopped, 'job')}</dd></div>
          {row.stranded > 0 && <div class="is-bad"><dt>would not finish</dt><dd>{plural(row.stranded, 'job')}</dd></div>}
          {row.late > 0 && <div class="is-bad"><dt>after the deadline</dt><dd>{plural(row.late, 'job')}</dd></div>}
        </dl>
      )}
      <Delays delays={row.delays} />
      {row.delays.length < row.delayed && <p class="note">{row.delays.length === 0 ? 'None of them are yours.' : 'The most affected of the jobs that you may see.'}</p>}
      <p class="note">Assumes that no other jobs arrive and that jobs take as long as they state.{cut && ' Incomplete: the limit of work for one question was reached.'}</p>
    </div>
  );
}
