// Whether what is on a page has room there, on the made-up cluster.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
// @ts-expect-error a script of its own, without types
import { demo } from '../demo/server.mjs';
import { browser, go, leave, login, visit } from './page';

interface Demo { url: string; close: () => void }

let chrome: Browser;
let server: Demo;

beforeAll(async () => {
  [chrome, server] = await Promise.all([browser(), demo({}) as Promise<Demo>]);
});

afterAll(async () => {
  await chrome?.close();
  server?.close();
});

async function enter(width: number, hash: string, url = server.url): Promise<Page> {
  const page = await visit(chrome, url);
  await page.setViewportSize({ width, height: 850 });
  await login(page, 'yard_demo');
  await go(page, hash);
  return page;
}

test('at 1280 pixels no column of jobs is cut off, and the note has room', async () => {
  const page = await enter(1280, '#/jobs');
  await page.locator('td.col-when').first().waitFor();
  const cut = await page.evaluate(() => [...document.querySelectorAll('.scroll td:not(.col-name, .col-note)')].filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent));
  expect(cut).toEqual([]);
  // What a job waits for, and the deadline of a promised job.
  const note = await page.evaluate(() => {
    const cell = document.querySelector('td.col-note')!;
    cell.innerHTML = '<span class="cut">waits for 2 h100</span>';
    const text = cell.firstElementChild!;
    return text.clientWidth - text.scrollWidth;
  });
  expect(note).toBeGreaterThanOrEqual(0);
  const room = await page.evaluate(() => {
    const cell = document.querySelector('td.col-deadline')!;
    cell.innerHTML = '<span>✓ </span><span>in 1 h 29</span>';
    return cell.clientWidth - cell.scrollWidth;
  });
  expect(room).toBeGreaterThanOrEqual(0);
  expect(await page.evaluate(() => { const box = document.querySelector('.scroll')!; return box.scrollWidth - box.clientWidth; })).toBe(0);
  expect(await leave(page)).toEqual([]);
});

test('on a phone each job that runs shows how far it is', async () => {
  const page = await enter(390, '#/jobs?state=running');
  const row = page.getByRole('row').nth(1);
  await row.locator('.on-phone').waitFor();
  expect(await row.locator('.on-phone').textContent()).toMatch(/\d+ %/);
  expect(await row.getByRole('img', { name: /\d+ % done/ }).count()).toBe(1);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  expect(await leave(page)).toEqual([]);
});

test('a deadline is red only where the likely end is after it, wherever it is shown', async () => {
  const page = await enter(1280, '#/now');
  const risks = page.getByRole('region', { name: 'Deadlines' }).locator('li b');
  await risks.first().waitFor();
  const tones = await risks.evaluateAll((all) => all.map((one) => [one.className, one.textContent!]));
  for (const [tone, text] of tones) expect([tone, text]).toEqual([/ late$/.test(text!) && !/may be/.test(text!) ? 'bad' : text === 'cannot be met' ? 'bad' : 'warn', text]);
  expect(await leave(page)).toEqual([]);
});

test('the end of a job is one figure', async () => {
  const page = await enter(1280, '#/jobs?state=running');
  const row = page.getByRole('row').nth(1);
  const said = /ends (in .*|any moment)$/.exec((await row.locator('.col-when').textContent())!)![1]!;
  await row.locator('.col-id a').click();
  await page.getByRole('region', { name: 'When it will be done' }).getByText(said).waitFor();
  expect(await page.getByRole('region', { name: 'Progress' }).textContent()).not.toMatch(/left|ends/);
  expect(await leave(page)).toEqual([]);
});

test('prices say what they are a part of', async () => {
  const page = await enter(1280, '#/now');
  const prices = page.getByRole('region', { name: 'Prices' });
  await prices.getByText('one device, as a fraction of the whole cluster').waitFor();
  expect(await prices.locator('b').allTextContents()).toEqual(['0.36 %', '0.27 %', '0.14 %', '0.02 %']);
  expect(await leave(page)).toEqual([]);
});
