import { expect, test } from 'vitest';
import { signed, ago, clock, count, plain, runs, short, span, tidy, where } from './format';

test('spans have two units at most', () => {
  expect([0, 0.3, 45, 99, 100, 3599, 3600, 7499, 86399, 86400, 360000].map(span)).toEqual(
    ['0 s', '0.3 s', '45 s', '99 s', '2 min', '60 min', '1 h 00', '2 h 05', '1 d 0 h', '1 d 0 h', '4 d 4 h'],
  );
  expect(span(NaN)).toBe('–');
});

test('times are seen from now', () => {
  expect([ago(100, 100), ago(160, 100), ago(40, 100)]).toEqual(['now', 'in 60 s', '60 s ago']);
  const noon = new Date(2026, 4, 6, 12, 5).getTime() / 1000;
  expect([clock(noon, noon), clock(noon - 86400, noon), clock(noon - 400 * 86400, noon)]).toEqual(['12:05', '05-05 12:05', '2025-04-01 12:05']);
});

test('numbers have as many digits as say something', () => {
  expect([1234567, 999].map(count)).toEqual(['1\u202f234\u202f567', '999']);
  expect([0, 0.001, 0.123, 12.34, 123.4, 12345].map(short)).toEqual(['0.00', '1.0e-3', '0.12', '12.3', '123', '12\u202f345']);
});

test('axes have no zeros that say nothing', () => {
  expect([0, 0.5, 2.5, 50, 100, 2000].map(tidy)).toEqual(['0', '0.5', '2.5', '50', '100', '2000']);
});

test('devices in a row are drawn together', () => {
  expect([[], [3], [0, 1], [0, 1, 2, 3, 6], [0, 2, 4]].map(runs)).toEqual(['', '3', '0,1', '0-3,6', '0,2,4']);
  expect(where('h200-04[0,1,2,3,4,5,6,7]')).toBe('h200-04[0-7]');
  expect(where('odd')).toBe('odd');
});

test('logs lose the codes of terminals and keep their text', () => {
  expect(plain('\u001b[31mred\u001b[0m <b>\n')).toBe('red <b>\n');
  expect(plain('10 %\r20 %\r100 %\ndone\r\n')).toBe('100 %\ndone\n');
  expect(plain('\u001b]0;title\u0007text')).toBe('text');
});

test('differences have a sign, and none where there is nothing to say', () => {
  expect([signed(190), signed(-7500), signed(0.01), signed(-3, count)]).toEqual(['+3 min', '−2 h 05', '', '−3']);
});
