import { expect, test } from 'vitest';
import { lengthOf, unknown, unknownStart } from './foretold';

test('where there is no interval the reason is said', () => {
  expect(unknown('length')).toBe('length unknown');
  expect(unknown('scattered')).toContain('which jobs arrive');
  expect(unknown(null)).toBe('not within weeks');
  expect(unknownStart('length')).toBe('no estimate: jobs ahead of it do not state their length');
  expect(unknownStart('beyond')).toBe('not within weeks');
});

test('a length that nobody stated says by what it is known', () => {
  expect(lengthOf({ seconds: null, alike: 'all', jobs: 0 })).toContain('unknown');
  expect(lengthOf({ seconds: 7200, alike: 'user', jobs: 12 })).toBe('not stated; about 2 h 00, from 12 past jobs of the same user and size');
  expect(lengthOf({ seconds: 7200, alike: 'all', jobs: 1 })).toBe('not stated; about 2 h 00, from 1 past job');
});
