// Every page, in both themes and at the width of a phone, has no fault that axe finds; keys alone reach what matters.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
// @ts-expect-error a script of its own, without types
import { demo } from '../demo/server.mjs';
import { browser, go, login, paint, visit } from './page';

interface Demo { url: string; close: () => void }

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PAGES = ['now', 'jobs', 'jobs/107', 'jobs/410', 'nodes', 'nodes/h200-04', 'teams', 'what-if', 'what-if?about=node', 'what-if?about=history', 'submit', 'access', 'access?view=audit', 'simulations'];
let chrome: Browser;
let server: Demo;

beforeAll(async () => {
  [chrome, server] = await Promise.all([browser(), demo({}) as Promise<Demo>]);
});

afterAll(async () => {
  await chrome?.close();
  server?.close();
});

async function faults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe;
    const { violations } = await axe.run();
    return violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(' | ')}`);
  });
}

test.each([['light', 1280], ['dark', 1280], ['light', 390]] as const)('%s, %i pixels wide: no page has a fault', async (theme, width) => {
  const page = await visit(chrome, server.url);
  await paint(page, theme);
  await page.setViewportSize({ width, height: 850 });
  const found = (await faults(page)).map((fault) => `login: ${fault}`);
  await login(page, 'yard_demo');
  for (const name of PAGES) {
    await go(page, `#/${name}`);
    const ask = page.getByRole('button', { name: 'Ask', exact: true });
    if (await ask.count()) await ask.click();
    await page.waitForTimeout(400);
    found.push(...(await faults(page)).map((fault) => `${name}: ${fault}`));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) found.push(`${name}: it is ${wide} pixels wide`);
  }
  expect(found).toEqual([]);
  await page.context().close();
});

test('keys go to pages, open the first job and reach a device', async () => {
  const page = await visit(chrome, server.url);
  await login(page, 'yard_demo');
  await page.locator('.map canvas').first().focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  expect(await page.locator('.tip').textContent()).toContain('h100-01 · h100 1');
  await page.keyboard.press('g');
  await page.keyboard.press('j');
  await page.getByRole('heading', { name: 'Jobs' }).waitFor();
  await page.getByRole('region', { name: 'Jobs' }).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('x');
  await page.getByRole('button', { name: 'Cancel 1 job' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'reward-model-40' }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.context().close();
});
