// The system's own Chromium or Firefox, as root in a closed network.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, firefox } from 'playwright-core';

const ARGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
];

/** Which one: Chromium, or what `ENGINE` says. */
export const engine = process.env.ENGINE ?? 'chromium';

export function browser() {
  const env = { ...process.env, HOME: mkdtempSync(join(tmpdir(), `yard-${engine}-`)) };
  if (engine === 'chromium') return chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true, args: ARGS, env });
  if (engine !== 'firefox') throw new Error(`ENGINE=${engine}: one of chromium and firefox`);
  // Named by its channel, an ordinary Firefox is driven over WebDriver BiDi; without, a patched one is expected.
  return firefox.launch({ executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr', channel: 'moz-firefox', headless: true, env });
}
