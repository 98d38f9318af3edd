// Events of the past, read once and then only what is new.

import { useEffect, useState } from 'preact/hooks';
import * as api from './api';
import type { Fact } from './types';

const MOST = 10_000;
const FIRST_MS = 150;
let known: Fact[] = [];
let whose: string | null = null;

/** The events of late; more of them whenever `turn` changes. `user`: for whom they are kept. */
export function useFacts(turn: unknown, user: string | null): Fact[] | null {
  const [facts, set] = useState<Fact[] | null>(known.length > 0 && whose === user ? known : null);
  useEffect(() => {
    if (user === null) return;
    const abort = new AbortController();
    if (whose !== user) [known, whose] = [[], user];
    const last = known[known.length - 1];
    const path = `/v1/events?follow=false&limit=${MOST}${last ? `&after=${last.id}` : ''}`;
    const ask = () => void api.get<{ events: Fact[] }>(path, abort.signal).then(({ events }) => {
      if (whose !== user || abort.signal.aborted) return;
      if (events.length > 0) known = [...known, ...events].slice(-2 * MOST);
      set(known);
    }, () => {});
    // The first of them are many, and the page is shown before.
    const timer = setTimeout(ask, last ? 0 : FIRST_MS);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [turn, user]);
  return facts;
}
