import { useEffect, useRef, useState } from 'preact/hooks';

/** Something that takes a while to work out: after what is there already was shown. Until then, and while it is worked out
 *  anew, what it was before. */
export function useLater<T>(work: () => T, when: unknown[]): T | null {
  const [done, setDone] = useState<{ value: T } | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setDone({ value: work() }));
    return () => clearTimeout(timer);
  }, when);
  return done && done.value;
}

/** A number that grows when something changed, but not more often than each so many milliseconds. */
export function useTurn(what: unknown, ms: number): number {
  const [turn, setTurn] = useState(0);
  const state = useRef({ seen: what, at: 0, timer: 0 });
  useEffect(() => {
    const now = state.current;
    if (now.seen === what || now.timer !== 0) return;
    now.timer = window.setTimeout(() => {
      now.timer = 0;
      now.at = Date.now();
      now.seen = what;
      setTurn((n) => n + 1);
    }, Math.max(0, now.at + ms - Date.now()));
  });
  useEffect(() => () => clearTimeout(state.current.timer), []);
  return turn;
}
