// The file that `yard sim --html` writes, opened from disk in a real browser.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { browser, engine, leave, visit } from './page';

const BINARY = resolve(process.env['YARD'] ?? '../target/debug/yard');
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const EVIL = '<img src=x onerror=document.title=1><b>bold';
const folder = mkdtempSync(join(tmpdir(), 'yard-report-'));
const url = pathToFileURL(join(folder, 'r.html')).href;
let chrome: Browser;

beforeAll(async () => {
  writeFileSync(join(folder, 't.csv'), `job_id,submit_s,gpus,duration_s,tenant\nfirst,0,4,100,${EVIL}\nsecond,10,2,50,speech\n${EVIL},20,1,500,speech\n`);
  execFileSync(BINARY, ['sim', '--trace', 't.csv', '--cluster', 'a100:1x4,v100:2x2', '--policy', 'fifo,srtf', '--overheads', 'none', '--html', 'r.html'], { cwd: folder, stdio: 'ignore' });
  chrome = await browser();
});

afterAll(async () => {
  await chrome?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('it compares policies, is scrubbed through, and lists jobs by name as text', async () => {
  const page = await visit(chrome, url);
  expect(await page.getByRole('region', { name: 'Policies', exact: true }).getByRole('rowheader', { name: 'srtf' }).count()).toBe(1);
  const fifo = page.getByRole('region', { name: 'fifo', exact: true });
  expect(await fifo.getByRole('heading', { level: 3 }).allTextContents()).toEqual(['a100', 'v100']);
  await page.getByRole('slider', { name: 'Time' }).fill('60');
  await fifo.getByText(/3 running, 0 waiting, 7 of 8 devices in use/).waitFor();
  await fifo.locator('.map canvas').first().focus();
  await page.keyboard.press('ArrowRight');
  expect(await page.locator('.tip').textContent()).toBe(`a100-0 · device 0job 0 first · ${EVIL}`);
  await page.getByRole('slider', { name: 'Time' }).fill('1000');
  await fifo.getByText(/0 of 8 devices in use/).waitFor();
  const jobs = page.getByRole('region', { name: 'Jobs', exact: true });
  await jobs.getByLabel('Search jobs').fill('bold');
  await jobs.getByText(EVIL).first().waitFor();
  expect(await jobs.getByRole('table').getAttribute('aria-rowcount')).toBe('2');
  await page.getByRole('group', { name: 'Policies shown' }).getByRole('button', { name: 'srtf' }).click();
  expect(await page.getByRole('region', { name: 'srtf', exact: true }).count()).toBe(0);
  expect(await page.title()).toBe('t.csv on a100:1x4,v100:2x2');
  expect(await page.locator('img').count()).toBe(0);
  expect(await leave(page)).toEqual([]);
});

test('the window of who held what is chosen, and its click sets the time', async () => {
  const page = await visit(chrome, url);
  const fifo = page.getByRole('region', { name: 'fifo', exact: true });
  await fifo.getByText('Device use over time').click();
  const chart = fifo.getByLabel(/^Devices in use from 0 s/);
  await chart.focus();
  await page.keyboard.press('+');
  await fifo.getByLabel(/^Devices in use from 2 min/).waitFor();
  await page.keyboard.press('0');
  await chart.waitFor();
  const box = (await chart.boundingBox())!;
  await chart.click({ position: { x: box.width - 3, y: 30 } });
  await fifo.getByText(/1 of 8 devices in use/).waitFor();
  expect(await leave(page)).toEqual([]);
});

// It has no button for its theme, and only Chromium lets a test past the policy of a page.
test.skipIf(engine !== 'chromium').each(['light', 'dark'] as const)('%s: axe finds no fault', async (theme) => {
  const page = await visit(chrome, url);
  await page.emulateMedia({ colorScheme: theme });
  for (const summary of await page.locator('summary').all()) await summary.click();
  // Nothing may run but the page's own script, so axe is put in past its policy.
  const session = await page.context().newCDPSession(page);
  await session.send('Runtime.evaluate', { expression: AXE });
  const found = await page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe;
    return (await axe.run()).violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(' | ')}`);
  });
  expect(found).toEqual([]);
  expect(await leave(page)).toEqual([]);
});

test('it fits a phone', async () => {
  const page = await visit(chrome, url);
  for (const summary of await page.locator('summary').all()) await summary.click();
  await page.setViewportSize({ width: 390, height: 800 });
  await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  expect(await leave(page)).toEqual([]);
});
