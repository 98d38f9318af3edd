import { useEffect, useState } from 'preact/hooks';
import type { RefObject } from 'preact';

/** How wide an element is, in whole pixels, whenever that changes. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    watcher.observe(element.current!);
    return () => watcher.disconnect();
  }, []);
  return width;
}
