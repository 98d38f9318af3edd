import { useState } from 'preact/hooks';
import { setTheme, theme, type Theme } from '../lib/theme';

const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };
const MARK: Record<Theme, string> = { system: '◐', light: '○', dark: '●' };

export function ThemeButton() {
  const [now, set] = useState(theme());
  const next = () => { setTheme(NEXT[now]); set(NEXT[now]); };
  return <button type="button" class="quiet" onClick={next} aria-label={`Theme: ${now}`} title={`Theme: ${now}`}>{MARK[now]}</button>;
}
