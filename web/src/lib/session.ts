// From a token to a page that lives: who it is for, the stream, and back to the door when the token is refused.

import { useEffect, useState } from 'preact/hooks';
import * as api from './api';
import { store } from './store';
import type { Me } from './types';
import { Watch } from './watch';

let watch: Watch | null = null;
let turned: (why: string | null) => void = () => {};

/** Tries a token: whose it is, or a `Problem`. */
export async function enter(token: string): Promise<void> {
  api.setToken(token);
  try {
    store.me = await api.get<Me>('/v1/me');
  } catch (error) {
    api.setToken(null);
    throw error;
  }
  begin();
  turned(null);
}

export function leave(why: string | null): void {
  watch?.stop();
  watch = null;
  api.setToken(null);
  Object.assign(store, { me: null, ready: false, status: null, link: { state: 'connecting' } });
  store.jobs.clear();
  store.nodes.clear();
  store.heard.clear();
  turned(why);
}

/** Connects again at once. */
export function retry(): void {
  watch?.now();
}

function begin(): void {
  watch?.stop();
  watch = new Watch((change) => store.apply(change), (link) => store.setLink(link));
  void watch.run();
}

/** Whether somebody is in, and why not. */
export function useSession(): { inside: boolean; why: string | null } {
  const [session, set] = useState<{ inside: boolean; why: string | null }>({ inside: api.hasToken(), why: null });
  useEffect(() => {
    turned = (why) => set({ inside: api.hasToken(), why });
    api.onRefused((why) => leave(why));
    if (api.hasToken()) {
      begin();
      void whoami();
    }
  }, []);
  return session;
}

/** The server may be away just now; the stream goes on trying, and this is asked again when it is back. */
export async function whoami(): Promise<void> {
  try {
    store.me = await api.get<Me>('/v1/me');
    store.tell();
  } catch {
    // Refused: the door says so. Away: the banner does.
  }
}
