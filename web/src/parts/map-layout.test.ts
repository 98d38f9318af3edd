import { expect, test } from 'vitest';
import { layout, place, step, under, type Tile } from './map-layout';

const CELL = { hues: [], busy: null, broken: false, idle: false, frozen: false };

function tiles(count: number, each: number): Tile[] {
  return Array.from({ length: count }, (_, n) => ({ name: `n${n}`, state: 'up', cells: Array.from({ length: each }, () => CELL) }));
}

test.each([[1, 1, 320], [60, 8, 700], [7, 16, 900], [1000, 8, 1100], [3, 4, 40]])('%i nodes of %i on %i pixels: each cell is found where it is drawn', (count, each, width) => {
  const all = tiles(count, each);
  const at = layout(all, width, count * each);
  for (let tile = 0; tile < count; tile++) {
    for (let cell = 0; cell < each; cell++) {
      const [x, y] = place(at, tile, cell);
      expect(under(at, all, x + 1, y + 1)).toEqual({ tile, cell });
      expect(y + at.cell).toBeLessThanOrEqual(at.height);
    }
  }
  expect(under(at, all, -5, 5)).toBeNull();
  expect(under(at, all, 5, at.height + 50)).toBeNull();
});

test('arrows reach every cell and stop at the ends', () => {
  const all = tiles(3, 2);
  const at = layout(all, 2000, 6);
  let spot = { tile: 0, cell: 0 };
  const seen = [];
  for (let n = 0; n < 6; n++) { seen.push(`${spot.tile}.${spot.cell}`); spot = step(at, all, spot, 'ArrowRight'); }
  expect(seen).toEqual(['0.0', '0.1', '1.0', '1.1', '2.0', '2.1']);
  expect(step(at, all, { tile: 2, cell: 1 }, 'ArrowDown')).toEqual({ tile: 2, cell: 1 });
  expect(step(at, all, { tile: 2, cell: 1 }, 'Home')).toEqual({ tile: 0, cell: 0 });
});

test('a small cluster uses its room, a large one keeps small cells', () => {
  const cell = (count: number, each: number) => layout(tiles(count, each), 680, count * each).cell;
  expect(cell(1, 4)).toBeGreaterThanOrEqual(40);
  expect(cell(4, 8)).toBeGreaterThanOrEqual(30);
  expect(cell(60, 8)).toBeLessThan(20);
  expect(layout(tiles(4, 8), 680, 32).height).toBeLessThanOrEqual(420);
});
