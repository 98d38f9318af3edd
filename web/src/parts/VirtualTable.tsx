// A table of which only the rows in sight exist, so that ten thousand cost no more than fifty. It stays a table for
// screen readers: each row says which of how many it is.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Column<T> {
  name: string;
  title: ComponentChildren;
  /** What the order is called in the address; none: it cannot be ordered by. */
  sort?: string;
  class?: string;
  cell: (row: T) => ComponentChildren;
}

interface Props<T> {
  label: string;
  rows: T[];
  columns: Column<T>[];
  id: (row: T) => string | number;
  /** What a click on a row does, where it does something. */
  open?: (row: T) => void;
  sort: string;
  setSort: (sort: string) => void;
  pressed?: (row: T, key: string) => void;
}

const ROW = 34;
const MORE = 8;

export function VirtualTable<T>({ label, rows, columns, id, open, sort, setSort, pressed }: Props<T>) {
  const box = useRef<HTMLDivElement>(null);
  // The first row in sight, and as many as a window has room for: neither asks the browser how large the table is,
  // which it would have to work out there and then.
  const [top, setTop] = useState(0);
  const [tall, setTall] = useState(window.innerHeight);
  const [active, setActive] = useState(-1);
  useEffect(() => {
    const look = () => setTall(window.innerHeight);
    window.addEventListener('resize', look);
    return () => window.removeEventListener('resize', look);
  }, []);
  useEffect(() => {
    if (active < 0) return;
    const element = box.current!;
    const top = active * ROW;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + 2 * ROW > element.scrollTop + element.clientHeight) element.scrollTop = top + 2 * ROW - element.clientHeight;
  }, [active]);
  const first = Math.max(0, Math.min(top, rows.length - Math.ceil(tall / ROW)) - MORE);
  const last = Math.min(rows.length, top + Math.ceil(tall / ROW) + MORE);
  const key = (event: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
    const move = moves[event.key];
    const row = rows[active];
    if (move !== undefined) {
      event.preventDefault();
      setActive(Math.max(0, Math.min(rows.length - 1, active + move)));
    } else if (event.key === 'Enter' && row && event.target === box.current) open?.(row);
    else if (row && event.target === box.current) pressed?.(row, event.key);
  };
  return (
    <div class={`scroll ${open ? '' : 'is-still'}`} ref={box} onScroll={() => setTop(Math.floor(box.current!.scrollTop / ROW))} tabIndex={0} onKeyDown={key} role="region" aria-label={label}>
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => <Head key={column.name} column={column} sort={sort} setSort={setSort} />)}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <tr class="spacer" aria-hidden="true" style={{ height: `${first * ROW}px` }} />}
          {rows.slice(first, last).map((row, n) => (
            <tr
              key={id(row)}
              aria-rowindex={first + n + 2}
              class={first + n === active ? 'is-active' : ''}
              onClick={(event) => { if (!(event.target as HTMLElement).closest('a,button,input,label')) open?.(row); }}
            >
              {columns.map((column) => <td key={column.name} class={column.class}>{column.cell(row)}</td>)}
            </tr>
          ))}
          {last < rows.length && <tr class="spacer" aria-hidden="true" style={{ height: `${(rows.length - last) * ROW}px` }} />}
        </tbody>
      </table>
    </div>
  );
}

function Head<T>({ column, sort, setSort }: { column: Column<T>; sort: string; setSort: (sort: string) => void }) {
  const name = column.sort;
  if (!name) return <th scope="col" class={column.class}>{column.title}</th>;
  const order = sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : 'none';
  const next = order === 'ascending' ? `-${name}` : order === 'descending' ? '' : name;
  return (
    <th scope="col" class={column.class} aria-sort={order}>
      <button type="button" class="sort" onClick={() => setSort(next)}>
        {column.title}<span aria-hidden="true">{order === 'ascending' ? ' ↑' : order === 'descending' ? ' ↓' : ''}</span>
      </button>
    </th>
  );
}
