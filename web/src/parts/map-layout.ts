// Where each device stands on the map, and which one is under the pointer. Pure, so that it can be tested.

export interface Cell {
  /** Classes of the jobs that hold it, one for each; none: it is free. */
  hues: string[];
  /** How busy it is, from 0 to 1, where that is known. */
  busy: number | null;
  broken: boolean;
  /** Held, but not used. */
  idle: boolean;
  /** A job lies frozen here. */
  frozen: boolean;
}

export interface Tile { name: string; state: string; cells: Cell[] }

export interface Layout {
  cell: number;
  gap: number;
  label: number;
  columns: number;
  across: number;
  tileWidth: number;
  tileHeight: number;
  width: number;
  height: number;
}

const MARGIN = 10;

/** What all maps of a page together may be high while cells grow. */
const ROOM = 420;
const LARGEST = 56;

/** As large as there is room for: cells shrink as they become many. */
export function layout(tiles: Tile[], width: number, devices: number): Layout {
  const most = tiles.reduce((most, tile) => Math.max(most, tile.cells.length), 1);
  const columns = Math.min(most, most > 8 ? 8 : most);
  const rows = Math.ceil(most / columns);
  const room = (ROOM * tiles.reduce((sum, tile) => sum + tile.cells.length, 0)) / Math.max(1, devices);
  const few = devices <= 200 ? large(tiles.length, columns, rows, width, Math.max(90, room)) : null;
  if (few) return few;
  return usual(tiles.length, columns, rows, width, devices);
}

/** Cells of a small cluster: the largest with which all of it is in the room that it has. */
function large(tiles: number, columns: number, rows: number, width: number, room: number): Layout | null {
  for (let cell = LARGEST; cell > 20; cell -= 2) {
    const at = arranged(tiles, columns, rows, width, cell, 3, 17);
    if (at.tileWidth - MARGIN <= width && at.height <= room) return at;
  }
  return null;
}

function arranged(tiles: number, columns: number, rows: number, width: number, cell: number, gap: number, label: number): Layout {
  const tileWidth = columns * (cell + gap) + MARGIN;
  const tileHeight = rows * (cell + gap) + label + (label > 0 ? MARGIN : 5);
  const across = Math.max(1, Math.floor((width + MARGIN) / tileWidth));
  return { cell, gap, label, columns, across, tileWidth, tileHeight, width, height: Math.ceil(tiles / across) * tileHeight };
}

function usual(tiles: number, columns: number, rows: number, width: number, devices: number): Layout {
  const [least, gap, label] = devices <= 700 ? [13, 2, 15] : devices <= 2500 ? [10, 1, 0] : [6, 1, 0];
  const across = Math.max(1, Math.floor((width + MARGIN) / (columns * (least + gap) + MARGIN)));
  // The rest of the line is shared out, up to half as much again.
  const room = Math.floor(((width + MARGIN) / across - MARGIN) / columns) - gap;
  const cell = Math.max(least, Math.min(room, Math.floor(least * 1.5)));
  return { ...arranged(tiles, columns, rows, width, cell, gap, label), across, height: Math.ceil(tiles / across) * (rows * (cell + gap) + label + (label > 0 ? MARGIN : 5)) };
}

export function place(at: Layout, tile: number, cell: number): [number, number] {
  const x = (tile % at.across) * at.tileWidth + (cell % at.columns) * (at.cell + at.gap);
  const y = Math.floor(tile / at.across) * at.tileHeight + at.label + Math.floor(cell / at.columns) * (at.cell + at.gap);
  return [x, y];
}

export interface Spot { tile: number; cell: number }

export function under(at: Layout, tiles: Tile[], x: number, y: number): Spot | null {
  const column = Math.floor(x / at.tileWidth);
  const tile = Math.floor(y / at.tileHeight) * at.across + column;
  const [dx, dy] = [x - column * at.tileWidth, (y % at.tileHeight) - at.label];
  if (column >= at.across || dy < 0 || x < 0 || y < 0) return null;
  const [i, j] = [Math.floor(dx / (at.cell + at.gap)), Math.floor(dy / (at.cell + at.gap))];
  const cell = j * at.columns + i;
  if (i >= at.columns || cell >= (tiles[tile]?.cells.length ?? 0)) return null;
  return { tile, cell };
}

/** The spot that an arrow key leads to. */
export function step(at: Layout, tiles: Tile[], from: Spot, key: string): Spot {
  const size = tiles[from.tile]?.cells.length ?? 0;
  const tileAt = (tile: number): number => Math.max(0, Math.min(tiles.length - 1, tile));
  const into = (tile: number, cell: number): Spot => {
    const most = (tiles[tile]?.cells.length ?? 1) - 1;
    return { tile, cell: Math.max(0, Math.min(most, cell)) };
  };
  switch (key) {
    case 'ArrowRight': return from.cell + 1 < size ? { ...from, cell: from.cell + 1 } : into(tileAt(from.tile + 1), 0);
    case 'ArrowLeft': return from.cell > 0 ? { ...from, cell: from.cell - 1 } : into(tileAt(from.tile - 1), 99);
    case 'ArrowDown': return into(tileAt(from.tile + at.across), from.cell);
    case 'ArrowUp': return into(tileAt(from.tile - at.across), from.cell);
    case 'Home': return into(0, 0);
    case 'End': return into(tiles.length - 1, 99);
    default: return from;
  }
}
