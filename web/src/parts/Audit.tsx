// Who did what, the newest first, a page at a time.

import { useEffect, useState } from 'preact/hooks';
import * as api from '../lib/api';
import { said } from '../lib/ask';
import { ago, clock } from '../lib/format';
import { useClock } from '../lib/store';
import type { AuditEntry } from '../lib/types';
import { Empty, Failed, Panel } from './bits';

interface Page { entries: AuditEntry[]; more: boolean }

export function Audit() {
  const now = useClock(10);
  const [user, setUser] = useState('');
  const [page, setPage] = useState<Page | null>(null);
  const [error, setError] = useState<string | null>(null);
  const ask = async (before: number | null, abort?: AbortSignal) => {
    const query = new URLSearchParams({ ...(user.trim() ? { user: user.trim() } : {}), ...(before === null ? {} : { before: String(before) }) });
    try {
      const next = await api.get<Page>(`/v1/audit?${query}`, abort);
      setPage((was) => (before === null || !was ? next : { entries: [...was.entries, ...next.entries], more: next.more }));
      setError(null);
    } catch (problem) {
      if (!abort?.aborted) setError(said(problem));
    }
  };
  useEffect(() => {
    const abort = new AbortController();
    void ask(null, abort.signal);
    return () => abort.abort();
  }, [user]);
  const entries = page?.entries ?? [];
  return (
    <Panel title="Audit trail" aside={<input type="search" aria-label="Only what this user did" placeholder="User" value={user} onInput={(event) => setUser(event.currentTarget.value)} />}>
      {error && <Failed error={error} again={() => void ask(null)} />}
      {page && entries.length === 0 && <Empty title={user ? `No entries for ${user}.` : 'No entries yet.'} />}
      {entries.length > 0 && (
        <div class="wide-table" tabIndex={0}>
          <table>
            <thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">Target</th><th scope="col">Outcome</th></tr></thead>
            <tbody>
              {entries.map((entry) => (
                <tr key={entry.id}>
                  <td>{clock(entry.time, now)} <small>{ago(entry.time, now)}</small></td><td>{entry.user}</td><td>{entry.what}</td><td>{entry.target}</td><td>{entry.outcome}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {page?.more && <p><button type="button" onClick={() => void ask(entries[entries.length - 1]!.id)}>Show older</button></p>}
    </Panel>
  );
}
