// A page in a real browser, which remembers when the page throws, breaks its own content policy or asks elsewhere.

import type { Browser, Page } from 'playwright-core';
// @ts-expect-error a script of its own, without types
import { browser as launch, engine as chosen } from '../screenshots/browser.mjs';

export const engine = chosen as 'chromium' | 'firefox';

export function browser(): Promise<Browser> {
  return launch() as Promise<Browser>;
}

const wrongs = new WeakMap<Page, string[]>();

/** Ends a visit; what went wrong on the page meanwhile. */
export async function leave(page: Page): Promise<string[]> {
  await page.context().close();
  return wrongs.get(page) ?? [];
}

export async function visit(browser: Browser, url: string): Promise<Page> {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 850 } })).newPage();
  const wrong: string[] = [];
  page.on('pageerror', (error) => wrong.push(error.message));
  page.on('console', (message) => {
    if (/Content Security Policy|Uncaught/.test(message.text())) wrong.push(message.text());
  });
  page.on('request', (request) => { if (!request.url().startsWith(url) && !request.url().startsWith('data:')) wrong.push(`it asked for ${request.url()}`); });
  wrongs.set(page, wrong);
  // Firefox tells nobody but the page of what its policy forbade.
  await page.addInitScript(() => addEventListener('securitypolicyviolation', (event) => console.error(`Content Security Policy: ${event.violatedDirective} ${event.blockedURI}`)));
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

/** Has the page be light or dark, as if somebody had chosen it: not each engine can be told what the system likes. */
export async function paint(page: Page, theme: 'light' | 'dark'): Promise<void> {
  await page.evaluate((theme) => localStorage.setItem('yard-theme', theme), theme);
  await page.reload();
  await page.waitForSelector(`html[data-theme=${theme}]`);
}
