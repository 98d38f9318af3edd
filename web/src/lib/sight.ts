// What the holder of a token does not see: jobs of other users, of which there are only totals.

import { holds, isOver, type Store } from './store';
import { plural } from './format';

export interface Sight {
  /** Whether nothing is hidden. */
  all: boolean;
  /** Jobs of others that wait and that hold devices. */
  waiting: number;
  running: number;
  /** Whose jobs are shown, in a sentence. */
  says: string;
}

export function sight({ me, status, jobs }: Pick<Store, 'me' | 'status' | 'jobs'>): Sight {
  const open = [...jobs.values()].filter((job) => !isOver(job));
  const running = open.filter(holds).length;
  const others = { waiting: Math.max(0, (status?.pending ?? 0) - (open.length - running)), running: Math.max(0, (status?.running ?? 0) - running) };
  const all = me === null || me.scope === 'admin';
  if (all) return { all, waiting: 0, running: 0, says: '' };
  const hidden = others.waiting + others.running > 0 ? ` Not shown: ${plural(others.running, 'running job')} and ${plural(others.waiting, 'waiting job')} of other users.` : '';
  return { all, ...others, says: `You see only jobs of ${me.user}.${hidden}` };
}
