// Colours that stay the same for the same name: the names in use share eight hues, the most used first.

const HUES = 8;

/** Gives hues to names; those beyond the eighth share one that says "others". */
export class Palette {
  private hue = new Map<string, number>();

  constructor(names: string[] = []) {
    names.slice(0, HUES).forEach((name, at) => this.hue.set(name, at));
  }

  /** Its class, such as `hue-3`. */
  of(name: string): string {
    const hue = this.hue.get(name);
    return hue === undefined ? 'hue-other' : `hue-${hue}`;
  }

  names(): string[] {
    return [...this.hue.keys()];
  }
}

/** Names by how much they count, most first; equal ones by name, so that colours do not jump about. */
export function ranked(weights: Map<string, number>): string[] {
  return [...weights].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).map(([name]) => name);
}

const known = new Map<string, string>();

/** What a colour of the style sheet is now, for a canvas. */
export function ink(name: string): string {
  const found = known.get(name);
  if (found !== undefined) return found;
  const value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  known.set(name, value);
  return value;
}

/** The theme changed. */
export function forgetInks(): void {
  known.clear();
}
