import { expect, test } from 'vitest';
import { frozenAt } from './cells';
import { job } from './testing';

test('a frozen job lies on each of its devices', () => {
  const found = frozenAt([job({ id: 1, frozen: ['a[0,1]', 'b[x][2]'] }), job({ id: 2, frozen: ['a[1]'] }), job({ id: 3 })]);
  expect([...found]).toEqual([['a[0]', [1]], ['a[1]', [1, 2]], ['b[x][2]', [1]]]);
});
