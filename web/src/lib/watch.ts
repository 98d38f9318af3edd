// Keeps one stream to the server open: goes on where it broke off, waits longer each time it fails, and says how it
// stands. A page that nobody looks at lets go of it after a while, because a browser has few connections to a server.

import * as api from './api';
import type { Change } from './types';

export type Link = { state: 'connecting' | 'live' } | { state: 'lost'; why: string; retryAt: number };

const SILENT_MS = 45_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
const UNSEEN_MS = 60_000;

export class Watch {
  private last: string | null = null;
  private stopped = false;
  private away = false;
  private unseen = 0;
  private abort = new AbortController();
  private wake: () => void = () => {};

  constructor(private change: (change: Change) => void, private link: (link: Link) => void) {}

  async run(): Promise<void> {
    window.addEventListener('online', this.now);
    document.addEventListener('visibilitychange', this.seen);
    let wait = FIRST_WAIT_MS;
    while (!this.stopped) {
      const why = await this.once(() => { wait = FIRST_WAIT_MS; });
      if (this.stopped) break;
      if (this.away) {
        await this.pause(Infinity);
        continue;
      }
      this.link({ state: 'lost', why, retryAt: Date.now() + wait });
      await this.pause(wait);
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
    window.removeEventListener('online', this.now);
    document.removeEventListener('visibilitychange', this.seen);
    clearTimeout(this.unseen);
  }

  /** Tries again at once. */
  now = (): void => this.wake();

  /** Lets go when nobody has looked for a while, and goes on when somebody does. */
  private seen = (): void => {
    clearTimeout(this.unseen);
    if (document.hidden) {
      this.unseen = window.setTimeout(() => { this.away = true; this.abort.abort(); }, UNSEEN_MS);
    } else if (this.away) {
      this.away = false;
      this.wake();
    }
  };

  stop(): void {
    this.stopped = true;
    this.abort.abort();
    this.wake();
  }

  /** One connection, until it ends; why it did. */
  private async once(worked: () => void): Promise<string> {
    this.abort = new AbortController();
    let silent = 0;
    const alive = () => {
      clearTimeout(silent);
      silent = window.setTimeout(() => this.abort.abort(), SILENT_MS);
    };
    alive();
    try {
      await api.frames('/v1/watch', this.last, this.abort.signal, alive, (frame) => {
        this.change(JSON.parse(frame.data) as Change);
        this.last = frame.id;
        this.link({ state: 'live' });
        worked();
      });
      return 'The server closed the connection.';
    } catch (error) {
      return error instanceof api.Problem ? error.message : 'The connection was lost.';
    } finally {
      clearTimeout(silent);
    }
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === Infinity ? undefined : setTimeout(resolve, ms);
      this.wake = () => { clearTimeout(timer); resolve(); };
    });
  }
}
