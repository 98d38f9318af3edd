// Where one is: the part of the address behind `#`, so that a page can be kept, sent and gone back to.

import { useEffect, useState } from 'preact/hooks';

export interface Route { path: string[]; query: URLSearchParams }

export function parse(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function link(path: string[], query?: URLSearchParams | Record<string, string>): string {
  const text = new URLSearchParams(query).toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

export function useRoute(): Route {
  const [route, go] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => go(parse(location.hash));
    window.addEventListener('hashchange', changed);
    return () => window.removeEventListener('hashchange', changed);
  }, []);
  return route;
}

export function go(hash: string): void {
  location.hash = hash;
}

/** Changes what stands behind the `?` without a step in the browser's history. */
export function setQuery(route: Route, changes: Record<string, string>): void {
  const query = new URLSearchParams(route.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  history.replaceState(null, '', link(route.path, query));
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}
