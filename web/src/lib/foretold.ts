// What is said where an estimate says nothing, or a job does not say how long it is.

import { plural, span } from './format';
import type { Length, Unknown } from './types';

const REASONS: Record<Unknown, string> = {
  beyond: 'not within weeks',
  scattered: 'no estimate: it depends on which jobs arrive and how long others take',
  length: 'length unknown',
};

/** Why there is no interval. */
export function unknown(why: Unknown | null): string {
  return REASONS[why ?? 'beyond'];
}

const ALIKE: Record<string, string> = {
  name: ' of the same user, name and size',
  user: ' of the same user and size',
  size: ' of the same size',
};

/** Why there is none for the start. */
export function unknownStart(why: Unknown | null): string {
  return why === 'length' ? 'no estimate: jobs ahead of it do not state their length' : unknown(why);
}

/** How long a job is of which nobody said so, and by what that is known. */
export function lengthOf(length: Length): string {
  if (length.seconds === null) return 'unknown; set it with --duration';
  return `not stated; about ${span(length.seconds)}, from ${plural(length.jobs, 'past job')}${ALIKE[length.alike] ?? ''}`;
}
