// Light or dark: as the system has it, until somebody chooses.

import { forgetInks } from './colors';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'yard-theme';
const listeners = new Set<() => void>();

export function theme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}

export function setTheme(next: Theme): void {
  if (next === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, next);
  applyTheme();
}

export function applyTheme(): void {
  const chosen = theme();
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
