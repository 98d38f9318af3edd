import { useEffect, useRef, useState } from 'preact/hooks';

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
