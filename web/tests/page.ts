// A page in a real browser, which fails its test when the page throws or breaks its own content policy.

import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
// @ts-expect-error a script of its own, without types
import { browser as launch } from '../screenshots/browser.mjs';

export function browser(): Promise<Browser> {
  return launch() as Promise<Browser>;
}

export async function visit(browser: Browser, url: string): Promise<Page> {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 850 } })).newPage();
  const wrong: string[] = [];
  page.on('pageerror', (error) => wrong.push(error.message));
  page.on('console', (message) => {
    if (/Content Security Policy|Uncaught/.test(message.text())) wrong.push(message.text());
  });
  page.on('request', (request) => { if (!request.url().startsWith(url) && !request.url().startsWith('data:')) wrong.push(`it asked for ${request.url()}`); });
  page.on('close', () => expect(wrong).toEqual([]));
  page.setDefaultTimeout(30_000);
  await page.goto(url);
  return page;
}

export async function login(page: Page, token: string): Promise<void> {
  await page.getByLabel('Your token').fill(token);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
}

/** Changes the address as a link would. */
export async function go(page: Page, hash: string): Promise<void> {
  await page.evaluate((hash) => { location.hash = hash; }, hash);
}
