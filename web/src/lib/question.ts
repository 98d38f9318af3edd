// From the fields of a form to a job that could be submitted, with what is wrong said in a sentence.

export interface Fields {
  gpus: string;
  kinds: string[];
  duration: string;
  deadline: string;
  priority: string;
  min: string;
  max: string;
}

export const EMPTY: Fields = { gpus: '1', kinds: [], duration: '1h', deadline: '', priority: '', min: '', max: '' };

const UNITS: Record<string, number> = { s: 1, m: 60, min: 60, h: 3600, d: 86400 };

/** `90`, `30s`, `45min`, `2h`, `1h30m`, `2d`: seconds. */
export function seconds(text: string): number | null {
  const compact = text.replace(/\s+/g, '').toLowerCase();
  if (/^\d+(\.\d+)?$/.test(compact)) return Number(compact);
  if (!/^(\d+(\.\d+)?(min|[smhd]))+$/.test(compact)) return null;
  let sum = 0;
  for (const [, number, unit] of compact.matchAll(/(\d+(?:\.\d+)?)(min|[smhd])/g)) sum += Number(number) * UNITS[unit!]!;
  return sum;
}

/** A span from now, or a time of day: the next one. Seconds since 1970. */
export function instant(text: string, now: number): number | null {
  const day = /^(\d{1,2}):(\d{2})$/.exec(text.trim());
  if (!day) {
    const span = seconds(text);
    return span === null ? null : now + span;
  }
  const at = new Date(now * 1000);
  at.setHours(Number(day[1]), Number(day[2]), 0, 0);
  const time = at.getTime() / 1000;
  return time > now ? time : time + 86400;
}

/** The request that the fields stand for, over another where there is one. Throws what is wrong. */
export function request(fields: Fields, base: Record<string, unknown> | null, now: number): Record<string, unknown> {
  const whole = (name: string, text: string): number | undefined => {
    if (text.trim() === '') return undefined;
    if (!/^-?\d+$/.test(text.trim())) throw new Error(`${name}: a whole number.`);
    return Number(text);
  };
  const out: Record<string, unknown> = { command: ['true'], name: 'what-if', ...base };
  const put = (name: string, value: unknown) => { if (value === undefined) delete out[name]; else out[name] = value; };
  put('gpus', whole('Devices', fields.gpus));
  put('min_gpus', whole('At least', fields.min));
  put('max_gpus', whole('At most', fields.max));
  put('priority', whole('Priority', fields.priority));
  put('kinds', fields.kinds.length > 0 ? fields.kinds : undefined);
  const duration = fields.duration.trim() === '' ? undefined : seconds(fields.duration);
  if (duration === null) throw new Error('Duration: such as 45min, 2h or 1h30m.');
  put('duration_s', duration);
  const deadline = fields.deadline.trim() === '' ? undefined : instant(fields.deadline, now);
  if (deadline === null) throw new Error('Deadline: such as 6h from now, or 18:00.');
  put('deadline', deadline);
  return out;
}

/** The fields for a job that was submitted before. */
export function fieldsOf(base: Record<string, unknown>): Fields {
  const text = (name: string): string => { const value = base[name]; return typeof value === 'number' && value !== 0 ? String(value) : ''; };
  const kinds = base['kinds'];
  const duration = base['duration_s'];
  return {
    gpus: typeof base['gpus'] === 'number' ? String(base['gpus']) : '', kinds: Array.isArray(kinds) ? kinds.map(String) : [], priority: text('priority'),
    min: text('min_gpus'), max: text('max_gpus'), deadline: '', duration: typeof duration === 'number' ? `${Math.round(duration)}s` : '',
  };
}

/** What happens to a node, as a form has it. */
export interface NodeFields { node: string; what: 'drain' | 'fail'; evict: boolean; at: string }

/** The question about a node. Throws what is wrong. */
export function nodeQuestion({ node, what, evict, at }: NodeFields, now: number): Record<string, unknown> {
  if (node === '') throw new Error('Node: choose one.');
  const time = at.trim() === '' ? undefined : instant(at, now);
  if (time === null) throw new Error('When: such as 2h from now, or 18:00.');
  return { ...(what === 'drain' ? { drain: node, evict } : { fail: node }), ...(time === undefined ? {} : { at: time }) };
}

/** What would have been different, as a form has it. */
export interface ChangeFields { policy: string; round: string; add: string; remove: string }

export const NO_CHANGE: ChangeFields = { policy: '', round: '', add: '', remove: '' };

/** The question about the past. Throws what is wrong. */
export function replayQuestion(last: string, changes: ChangeFields[]): Record<string, unknown> {
  const history_s = seconds(last);
  if (history_s === null || history_s <= 0) throw new Error('Period: such as 24h or 7d.');
  const list = (text: string) => text.split(/[\s,]+/).filter(Boolean);
  const alternatives = changes.map(({ policy, round, add, remove }) => {
    const round_s = round.trim() === '' ? null : seconds(round);
    if (round.trim() !== '' && round_s === null) throw new Error('Round: such as 60s or 6min.');
    return { policy: policy.trim() === '' ? null : policy.trim(), round_s, add: list(add), remove: list(remove) };
  });
  return { history_s, alternatives };
}
