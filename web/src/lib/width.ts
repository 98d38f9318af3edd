import { useLayoutEffect, useState } from 'preact/hooks';
import type { RefObject } from 'preact';

/** How wide an element is, in whole pixels, whenever that changes. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    // At once, so that what needs it is there when the page is first shown.
    setWidth(Math.floor(element.current!.clientWidth));
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    watcher.observe(element.current!);
    return () => watcher.disconnect();
  }, []);
  return width;
}
