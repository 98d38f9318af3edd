// Light or dark: as the system has it, until somebody chooses.

import { forgetInks } from './colors';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'yard-theme';
const listeners = new Set<() => void>();

let chosen: Theme = kept();

/** What was chosen before, where the browser lets a page remember anything: it may not let a file. */
function kept(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === 'light' || found === 'dark' ? found : 'system';
  } catch {
    return 'system';
  }
}

export function theme(): Theme {
  return chosen;
}

export function setTheme(next: Theme): void {
  chosen = next;
  try {
    if (next === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
  } catch {
    // Then only for now.
  }
  applyTheme();
}

export function applyTheme(): void {
  const dark = chosen === 'dark' || (chosen === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
  forgetInks();
  listeners.forEach((listener) => listener());
}

export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', applyTheme);
