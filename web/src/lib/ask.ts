// Asks the server for something once, and again when the question changes.

import { useCallback, useEffect, useState } from 'preact/hooks';
import * as api from './api';

export interface Asked<T> { value: T | null; error: string | null; again: () => void }

/** The answer to a GET. The last one stays while a newer one is on its way. */
export function useGet<T>(path: string | null, turn: unknown = null): Asked<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [tries, setTries] = useState(0);
  useEffect(() => setValue(null), [path]);
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    api.get<T>(path, abort.signal).then(
      (answer) => { setValue(answer); setError(null); },
      (problem: unknown) => { if (!abort.signal.aborted) setError(said(problem)); },
    );
    return () => abort.abort();
  }, [path, turn, tries]);
  return { value, error, again: useCallback(() => setTries((n) => n + 1), []) };
}

export function said(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}
