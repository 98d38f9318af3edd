// The jobs of the last days once more, under another policy, round or cluster, beside how it was.

import { useState } from 'preact/hooks';
import { NO_CHANGE, replayQuestion, type ChangeFields } from '../lib/question';
import { useStore } from '../lib/store';
import type { Replay } from '../lib/types';
import { Failed, Panel } from '../parts/bits';
import { useAsking } from './asking';
import { Replayed } from './Replayed';

const CHANGES_MAX = 8;

export function AskHistory() {
  const here = useStore();
  const { status } = here;
  const [last, setLast] = useState('7d');
  const [changes, setChanges] = useState<ChangeFields[]>([NO_CHANGE]);
  const { answer, error, busy, ask } = useAsking<Replay>('/v1/what-if/history', () => [replayQuestion(last, changes)]);
  const set = (at: number, change: Partial<ChangeFields>) => setChanges(changes.map((one, n) => (n === at ? { ...one, ...change } : one)));
  const hints: [keyof ChangeFields, string, string][] = [
    ['policy', 'Policy', status?.policy ?? 'as now'],
    ['round', 'Round', status ? `${status.round_s}s` : 'as now'],
    ['add', 'More nodes', 'h100:2x8'],
    ['remove', 'Fewer nodes', here.nodesByName()[0]?.name ?? 'its name'],
  ];
  return (
    <>
      <Panel title="The past">
        <form class="form" onSubmit={ask}>
          <label>Last<input value={last} placeholder="7d" onInput={(event) => setLast(event.currentTarget.value)} /></label>
          {changes.map((change, at) => (
            <fieldset key={at} class="form change">
              <legend>{changes.length > 1 ? `Change ${at + 1}` : 'Replay with'}</legend>
              {hints.map(([name, label, hint]) => <label key={name}>{label}<input value={change[name]} placeholder={hint} onInput={(event) => set(at, { [name]: event.currentTarget.value })} /></label>)}
              {changes.length > 1 && <button type="button" class="small quiet" onClick={() => setChanges(changes.filter((_, n) => n !== at))}>Leave it out</button>}
            </fieldset>
          ))}
          {changes.length < CHANGES_MAX && <button type="button" class="small" onClick={() => setChanges([...changes, NO_CHANGE])}>Compare another</button>}
          <button type="submit" class="main" disabled={busy}>{busy ? 'Replaying…' : 'Ask'}</button>
        </form>
      </Panel>
      <Panel title="Results">
        {error && <Failed error={error} />}
        {answer ? <Replayed replay={answer} /> : !error && <p class="note">The jobs that were submitted in that time are simulated: as things are now, and as you say. What differs between the two is the change's doing; how it really was stands beside them and shows how true the simulation is.</p>}
      </Panel>
    </>
  );
}
