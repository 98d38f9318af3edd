import { useState } from 'preact/hooks';
import * as api from '../lib/api';
import { said } from '../lib/ask';

/** `more`: what is shown is answered anew in a moment, with more in it. */
export interface Asking<T> { answer: T | null; error: string | null; busy: boolean; more: boolean; ask: (event: Event) => Promise<void> }

/** A form that is answered by the server: what it asks is made when it is sent, and may throw what is wrong with it. Of
 *  several questions each asks for more than the one before, and its answer takes the place of that one's. */
export function useAsking<T>(path: string, questions: () => unknown[]): Asking<T> {
  const [answer, setAnswer] = useState<T | null>(null);
  const [more, setMore] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const ask = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const asked = questions();
      for (const [at, question] of asked.entries()) {
        setAnswer(await api.post<T>(path, question));
        setMore(at + 1 < asked.length);
      }
    } catch (problem) {
      setError(said(problem));
    }
    setBusy(false);
    setMore(false);
  };
  return { answer, error, busy, more, ask };
}
