import { useState } from 'preact/hooks';
import * as api from '../lib/api';
import { said } from '../lib/ask';

export interface Asking<T> { answer: T | null; error: string | null; busy: boolean; ask: (event: Event) => Promise<void> }

/** A form that is answered by the server: what it asks is made when it is sent, and may throw what is wrong with it. */
export function useAsking<T>(path: string, question: () => unknown): Asking<T> {
  const [answer, setAnswer] = useState<T | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const ask = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      setAnswer(await api.post<T>(path, question()));
    } catch (problem) {
      setError(said(problem));
    }
    setBusy(false);
  };
  return { answer, error, busy, ask };
}
