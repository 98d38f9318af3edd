// What pages say to whom, in a real browser against a real server.

import { userInfo } from 'node:os';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { browser, go, leave, login, visit } from './page';
import { Server, until } from './server';

const server = new Server();
const me = userInfo().username;
let chrome: Browser;
let own: string;
const pages: Page[] = [];

beforeAll(async () => {
  [chrome] = await Promise.all([browser(), server.start()]);
  own = await server.token(me, 'submit');
});

afterEach(async () => {
  for (const page of pages.splice(0)) expect(await leave(page)).toEqual([]);
});

afterAll(async () => {
  await chrome?.close();
  await server.end();
});

async function enter(token: string): Promise<Page> {
  const page = await visit(chrome, server.url);
  pages.push(page);
  await login(page, token);
  return page;
}

test('who may not see the jobs of others is told so, and how many there are', async () => {
  const ids = [await server.submit(own, 'holder', 'sleep 600', { gpus: 2, kinds: ['h100'] }), await server.submit(own, 'waits', 'true', { gpus: 2, kinds: ['h100'] })];
  await until('the holder runs', async () => (await server.state(ids[0]!)) === 'running');
  const page = await enter(await server.token('reader', 'read'));
  const queue = page.getByRole('region', { name: 'Queue' });
  await queue.getByText('None of your jobs is waiting.').waitFor();
  await queue.getByText('1 job of other users waits; this token does not show it.').waitFor();
  expect(await queue.textContent()).not.toContain('No jobs are waiting');
  await page.getByRole('region', { name: 'Devices' }).getByText("other users' jobs").waitFor();
  expect(await page.locator('.numbers').first().textContent()).toMatch(/running1 0 of them yours.*waiting1 0 of them yours/);
  await go(page, '#/jobs');
  await page.getByText('You see only jobs of reader. Not shown: 1 running job and 1 waiting job of other users.').waitFor();
  await go(page, '#/submit');
  await page.getByText('This token may only read.').waitFor();
  expect(await page.getByRole('navigation', { name: 'Pages' }).getByText('Access').count()).toBe(0);
  for (const id of ids) await server.call('POST', `/v1/jobs/${id}/cancel`, own, {});
});

test('the map of a small cluster uses its room', async () => {
  const page = await enter(server.admin);
  const map = page.locator('.map canvas').first();
  await map.waitFor();
  expect((await map.boundingBox())!.height).toBeGreaterThan(60);
});

test('a form submits a job and writes the command and the file that say the same', async () => {
  const page = await enter(own);
  await go(page, '#/submit');
  await page.getByText('Command: such as python train.py.').waitFor();
  await page.getByLabel('Command', { exact: true }).fill('echo "made by a form"');
  await page.getByLabel('Name').fill('from-a-form');
  await page.getByLabel('Devices', { exact: true }).fill('0');
  await page.getByLabel('Duration').fill('soon');
  await page.getByText('Duration: such as 45min').waitFor();
  await page.getByLabel('Duration').fill('1h 30m');
  const told = async (name: string) => (await page.locator(`pre[aria-label="${name}"]`).textContent()) ?? '';
  await expect.poll(() => told('As a command')).toBe("yard submit \\\n  --name from-a-form \\\n  --gpus 0 \\\n  --duration 1h30m \\\n  -- echo 'made by a form'");
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.getByRole('heading', { name: 'from-a-form' }).waitFor();
  await page.getByRole('log').getByText('made by a form').waitFor();
  const id = Number(/\d+$/.exec(page.url())![0]);
  const request = async (id: number) => (await server.get<{ request: Record<string, unknown> }>(`/v1/jobs/${id}`, own)).request;
  const { name, command, gpus, duration_s } = await request(id);
  expect({ name, command, gpus, duration_s }).toEqual({ name: 'from-a-form', command: ['echo', 'made by a form'], gpus: 0, duration_s: 5400 });
});

test('the command and the file of the form send the same', async () => {
  const page = await enter(own);
  await go(page, '#/submit');
  const filled = { 'Name': "it's no", 'Devices': '2', 'Minimum devices': '1', 'Maximum devices': '4', 'Duration': '1 h', 'Time limit': '2h', 'Deadline': '23:59', 'Priority': '-2', 'Team': 'a b', 'Folder': '/tmp', 'Folder for checkpoints': '/data/a b' };
  for (const [label, text] of Object.entries(filled)) await page.getByLabel(label, { exact: true }).fill(text);
  for (const command of ['python train.py --name="a b"', 'python train.py | tee "a: b.log"']) {
    await page.getByLabel('Command', { exact: true }).fill(command);
    const shown = async (name: string) => (await page.locator(`pre[aria-label="${name}"]`).textContent())!;
    const [byCommand, byFile] = [server.dryCommand(await shown('As a command')), server.dryRun(await shown('As a file'))] as Record<string, unknown>[];
    expect(byCommand).toEqual(byFile);
    expect(byFile).toMatchObject({ name: "it's no", gpus: 2, min_gpus: 1, max_gpus: 4, duration_s: 3600, time_limit_s: 7200, priority: -2, tenant: 'a b', workdir: '/tmp', checkpoint: { dir: '/data/a b' } });
    expect(byFile!['command']).toEqual(command.includes('|') ? ['/bin/sh', '-ec', command] : ['python', 'train.py', '--name=a b']);
  }
});

test('an admin makes a token, sees it in the trail and revokes it', async () => {
  const page = await enter(server.admin);
  await page.getByRole('navigation', { name: 'Pages' }).getByText('Access').click();
  await page.getByLabel('User').fill('nightly');
  await page.getByLabel('Expires after').fill('soon');
  await page.getByRole('button', { name: 'Make token' }).click();
  await page.getByText('Expires after: such as 30d or 12h.').waitFor();
  await page.getByLabel('Expires after').fill('12h');
  await page.getByRole('button', { name: 'Make token' }).click();
  const secret = (await page.locator('pre[aria-label="The new token"]').textContent())!;
  expect(await server.get('/v1/me', secret)).toMatchObject({ user: 'nightly', scope: 'submit' });
  await page.getByRole('button', { name: 'audit trail' }).click();
  await page.getByRole('row', { name: /token/ }).first().waitFor();
  await page.getByRole('button', { name: 'tokens' }).click();
  await page.getByRole('row', { name: /nightly/ }).getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('row', { name: /nightly/ }).waitFor({ state: 'detached' });
  await expect(server.get('/v1/me', secret)).rejects.toThrow('401');
});

test('tokens and the trail are for admins', async () => {
  const page = await enter(own);
  await go(page, '#/access');
  await page.getByText('Tokens and the audit trail are for admins.').waitFor();
  await expect(server.get('/v1/audit', own)).rejects.toThrow('403');
});

test('the loss that a job reports is drawn over its steps', async () => {
  const source = `const s = require('net').connect(process.env.YARD_SOCKET); let n = 0; const say = (it) => s.write(JSON.stringify(it) + '\\n');
    say({ hello: { rank: 0 } }); setInterval(() => { say({ trained: { local: 1, grad_s: 0.1, step_s: 0.1, noise: null, loss: 8 / (n + 1) } });
    say({ progress: { step: ++n, total: 12 } }); if (n === 12) s.end(() => process.exit(0)); }, 500);`;
  const id = await server.submit(own, 'learns', '', { gpus: 0, command: [process.execPath, '-e', source] });
  const page = await enter(own);
  await go(page, `#/jobs/${id}`);
  await page.getByRole('region', { name: 'Progress' }).getByRole('img', { name: /^Loss by step: loss 0\.[678]/ }).waitFor();
  const { points } = await server.get<{ points: { step: number; loss?: number }[] }>(`/v1/jobs/${id}/progress`, own);
  const told = points.map((point) => point.loss).filter((loss) => loss !== undefined);
  expect(told.length).toBeGreaterThan(2);
  expect([...told].sort((a, b) => b - a)).toEqual(told);
});

test('two open pages of one user are both answered', async () => {
  const both = await Promise.all([enter(own), enter(own)]);
  for (const page of both) await go(page, '#/what-if');
  const job = { command: ['true'], gpus: 2, duration_s: 600 };
  const alike = [1, 2].map(() => server.call<{ rows: unknown[] }>('POST', '/v1/what-if', own, { job }));
  await Promise.all(both.map(async (page) => {
    await page.getByRole('button', { name: 'Ask' }).click();
    const shown = page.getByRole('region', { name: 'What would happen' });
    await shown.getByRole('row', { name: /as asked/ }).waitFor();
    await page.getByRole('button', { name: 'Ask', exact: true, disabled: false }).waitFor();
    expect(await shown.getByRole('alert').count()).toBe(0);
  }));
  for (const { rows } of await Promise.all(alike)) expect(rows.length).toBeGreaterThan(0);
});
