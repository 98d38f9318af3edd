// The dashboard in a real browser against a real server.

import { writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { browser, go, leave, login, visit } from './page';
import { Server, until } from './server';

const server = new Server();
let chrome: Browser;
let ada: string;
let bob: string;
const pages: Page[] = [];

beforeAll(async () => {
  [chrome] = await Promise.all([browser(), server.start()]);
  // Jobs run as their owners, who must exist on the node: whoever runs this test does.
  ada = await server.token(userInfo().username, 'submit');
  bob = await server.token('bob', 'submit');
});

afterEach(async () => {
  for (const page of pages.splice(0)) expect(await leave(page)).toEqual([]);
});

afterAll(async () => {
  await chrome?.close();
  await server.end();
});

interface Replayed { alternatives: { label: string; run: unknown }[]; window: { jobs: number } }

interface Told { rows: { label: string; start: number }[] }

async function enter(token: string): Promise<Page> {
  const page = await visit(chrome, server.url);
  pages.push(page);
  await login(page, token);
  return page;
}

test('a wrong token is refused with a reason, a right one shows the cluster', async () => {
  const page = await visit(chrome, server.url);
  pages.push(page);
  await page.getByLabel('Your token').fill('nonsense');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('A token begins with yard_').waitFor();
  await login(page, server.admin);
  await page.getByText('0 of 2 held').first().waitFor();
  await page.getByText('No jobs are waiting.').waitFor();
  expect(page.url()).not.toContain('yard_');
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('yard_');
});

test('a job goes from waiting to running to done without a reload, and its log follows', async () => {
  const holder = await server.submit(ada, 'holder', 'sleep 600', { gpus: 2, kinds: ['h100'] });
  await until('the holder runs', async () => (await server.state(holder)) === 'running');
  const id = await server.submit(ada, 'counter', 'for i in 1 2 3 4 5 6; do echo line $i; sleep 0.5; done', { kinds: ['h100'] });
  const page = await enter(ada);
  await go(page, `#/jobs/${id}`);
  await page.locator('.page-head .state-pending').waitFor();
  await page.getByRole('region', { name: 'Why it waits' }).getByText(/needs 1, free 0 of 2/).waitFor();
  await page.evaluate(() => { document.body.dataset['kept'] = 'yes'; });
  await server.call('POST', `/v1/jobs/${holder}/cancel`, ada, {});
  await page.locator('.page-head .state-running').waitFor();
  const log = page.getByRole('log');
  await log.getByText('line 1').waitFor();
  expect(await log.textContent()).not.toContain('line 6');
  await log.getByText('line 6').waitFor();
  await page.locator('.page-head .state-succeeded').waitFor();
  await page.getByRole('region', { name: 'Timeline' }).getByText('ran').waitFor();
  expect(await page.evaluate(() => document.body.dataset['kept'])).toBe('yes');
});

test('jobs are found, filtered by the address, and cancelled several at once', async () => {
  const ids = [];
  for (const name of ['needle-a', 'needle-b', 'haystack']) ids.push(await server.submit(ada, name, 'sleep 600', { gpus: 0 }));
  const page = await enter(ada);
  await go(page, '#/jobs?state=open');
  await page.getByText('haystack').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('needle');
  await page.getByText('2 jobs').waitFor();
  expect(page.url()).toContain('q=needle');
  await page.getByLabel('Select all that are not over').check();
  await page.getByRole('button', { name: 'Cancel 2 jobs' }).click();
  await page.getByRole('dialog').getByLabel('Reason').fill('a test');
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel 2 jobs' }).click();
  await page.getByText('No job matches.').waitFor();
  expect((await server.get<{ reason: string }>(`/v1/jobs/${ids[0]}`)).reason).toBe(`cancelled by ${userInfo().username}: a test`);
  expect(await server.state(ids[2]!)).not.toBe('cancelled');
  await server.call('POST', `/v1/jobs/${ids[2]}/cancel`, ada, {});
});

test('a job is submitted again, changed', async () => {
  const id = await server.submit(ada, 'first', 'true', { gpus: 0 });
  const page = await enter(ada);
  await go(page, `#/jobs/${id}`);
  await page.getByRole('button', { name: 'Resubmit' }).click();
  const spec = page.getByLabel('What is submitted');
  await spec.fill((await spec.inputValue()).replace('"first"', '"second"'));
  await page.getByRole('button', { name: 'Submit', exact: true }).click();
  await page.getByRole('heading', { name: 'second' }).waitFor();
  await page.locator('.page-head .state-succeeded').waitFor();
});

test('a what-if says the same as the command, and submits nothing', async () => {
  const holder = await server.submit(ada, 'holder', 'sleep 600', { gpus: 2, kinds: ['h100'], duration_s: 900 });
  await until('the holder runs', async () => (await server.state(holder)) === 'running');
  const before = (await server.get<{ jobs: unknown[] }>('/v1/jobs?all=true')).jobs.length;
  const page = await enter(ada);
  await go(page, '#/what-if');
  await page.getByLabel('Devices', { exact: true }).fill('2');
  await page.getByLabel('Duration').fill('10min');
  await page.getByLabel('h100').check();
  const answers: Told[] = [];
  page.on('response', async (one) => { if (one.url().endsWith('/v1/what-if')) answers.push((await one.json()) as Told); });
  await page.getByRole('button', { name: 'Ask' }).click();
  await until('both answers are there', async () => answers.length === 2);
  const [first, shown] = answers as [Told, Told];
  // The first answer is the job as it is; the second one begins with the same.
  expect(first.rows.map((row) => [row.label, Math.round(row.start)])).toEqual([['as asked', Math.round(shown.rows[0]!.start)]]);
  writeFileSync(server.file('asked.yaml'), 'command: ["true"]\ngpus: 2\nkinds: [h100]\nduration_s: 600\n');
  const told = JSON.parse(server.run('what-if', '-o', 'json', 'asked.yaml')) as Told;
  const row = page.getByRole('row', { name: /as asked/ });
  await row.waitFor();
  expect(shown.rows.map((row) => row.label)).toEqual(told.rows.map((row) => row.label));
  // Both were asked while a job was running: what comes after it begins at the same instant.
  expect(shown.rows.map((row) => Math.round(row.start))).toEqual(told.rows.map((row) => Math.round(row.start)));
  expect(await row.textContent()).toMatch(/in 1[45] min/);
  expect((await server.get<{ jobs: unknown[] }>('/v1/jobs?all=true')).jobs.length).toBe(before);
  await server.call('POST', `/v1/jobs/${holder}/cancel`, ada, {});
});

test('what a node that fails would cost is the same as the command says, and nothing happens to it', async () => {
  const holder = await server.submit(ada, 'on-the-node', 'sleep 600', { gpus: 2, kinds: ['h100'], duration_s: 900 });
  await until('the holder runs', async () => (await server.state(holder)) === 'running');
  const page = await enter(ada);
  await go(page, '#/nodes/bench');
  await page.getByRole('link', { name: 'What if this node fails?' }).click();
  const ask = page.getByRole('button', { name: 'Ask' });
  const hit = page.getByRole('region', { name: 'Affected jobs' });
  await ask.click();
  await hit.getByRole('heading', { name: 'bench drained' }).waitFor();
  await page.getByLabel('it fails').check();
  await page.getByLabel('When').fill('soon');
  await ask.click();
  await hit.getByText('When: such as 2h from now, or 18:00.').waitFor();
  await page.getByLabel('When').fill('');
  await ask.click();
  await hit.getByText('would not finish').first().waitFor();
  const told = server.run('what-if', '--fail', 'bench');
  expect(told).toMatch(/^bench fails: 1 job stopped, 1 job would not finish/);
  expect(await hit.locator('.numbers').textContent()).toMatch(/stopped1 job.*would not finish1 job/);
  expect(await hit.getByRole('listitem').textContent()).toMatch(new RegExp(`on-the-node \\(${holder}\\).*would not finish`));
  expect(await server.state(holder)).toBe('running');
  await server.call('POST', `/v1/jobs/${holder}/cancel`, ada, {});
});

test('the past under another policy and cluster has the same figures as the command gives', async () => {
  const teams = await server.token(userInfo().username, 'submit', undefined, ['vision', 'speech']);
  for (const name of ['past-a', 'past-b', 'past-c']) {
    const id = await server.submit(teams, name, 'sleep 0.4', { gpus: 2, kinds: ['h100'], tenant: name === 'past-c' ? 'speech' : 'vision' });
    await until('it is over', async () => (await server.state(id)) === 'succeeded');
  }
  const page = await enter(server.admin);
  await go(page, '#/what-if?about=history');
  await page.getByLabel('Last', { exact: true }).fill('1h');
  await page.getByLabel('Policy').fill('srtf');
  await page.getByLabel('More nodes').fill('h100:1x2');
  const [answered] = await Promise.all([page.waitForResponse((one) => one.url().endsWith('/v1/what-if/history')), page.getByRole('button', { name: 'Ask' }).click()]);
  const asked = (await answered.json()) as Replayed;
  const shown = page.getByRole('region', { name: 'Results' });
  await shown.getByRole('columnheader', { name: /srtf.*h100:1x2/ }).first().waitFor();
  expect(await shown.getByRole('rowheader', { name: 'vision' }).count()).toBe(1);
  const told = JSON.parse(server.run('what-if', '--history', '1h', '--policy', 'srtf', '--add', 'h100:1x2', '-o', 'json')) as Replayed;
  expect(asked.alternatives.map(({ label, run }) => [label, run])).toEqual(told.alternatives.map(({ label, run }) => [label, run]));
  expect(await shown.textContent()).toContain(`${told.window.jobs} jobs, submitted from`);
  await page.getByLabel('Policy').fill('no-such-policy');
  await page.getByRole('button', { name: 'Ask' }).click();
  await shown.getByRole('alert').getByText(/no-such-policy/).waitFor();
});

test('an admin drains a node with a reason and takes it back; others are not offered it', async () => {
  const page = await enter(server.admin);
  await go(page, '#/nodes');
  await page.getByRole('button', { name: 'Drain' }).click();
  await page.getByRole('dialog').getByLabel('Reason').fill('fan is noisy');
  await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click();
  await page.locator('.node-draining').waitFor();
  await page.getByText('fan is noisy').waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click();
  await page.locator('.node-up').waitFor();
  const other = await enter(ada);
  await go(other, '#/nodes');
  await other.locator('.node-up').waitFor();
  expect(await other.getByRole('button', { name: 'Drain' }).count()).toBe(0);
});

test("another's job is neither shown nor reachable", async () => {
  const id = await server.submit(ada, 'ada-secret', 'sleep 600', { gpus: 0 });
  const page = await enter(bob);
  await go(page, '#/jobs');
  await page.getByText('No jobs yet.').waitFor();
  await go(page, `#/jobs/${id}`);
  await page.getByText(`you have no job ${id}`).waitFor();
  expect(await page.content()).not.toContain('ada-secret');
  await server.call('POST', `/v1/jobs/${id}/cancel`, ada, {});
});

test('markup in names, reasons and logs is text', async () => {
  const evil = '<img src=x onerror=document.title=1><b>bold';
  const id = await server.submit(ada, evil, `echo '${evil}'; exit 3`, { gpus: 0, max_restarts: 0 });
  const page = await enter(server.admin);
  await go(page, `#/jobs/${id}`);
  await page.locator('.page-head .state-failed').waitFor();
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(evil);
  await page.getByRole('log').getByText(evil).waitFor();
  await go(page, '#/jobs');
  await page.getByText(evil).waitFor();
  expect(await page.locator('img[src=x], main b').count()).toBe(0);
});

test('markup in what admins and users give as reasons is text', async () => {
  const evil = '<img src=x onerror=document.title=1><b>bold';
  const id = await server.submit(ada, 'cancelled', 'sleep 600', { gpus: 0 });
  await server.call('POST', `/v1/jobs/${id}/cancel`, ada, { reason: evil });
  await server.call('POST', '/v1/nodes/bench/drain', server.admin, { reason: evil });
  const page = await enter(server.admin);
  await go(page, `#/jobs/${id}`);
  await page.getByRole('region', { name: 'How it ended' }).getByText(evil).first().waitFor();
  await go(page, '#/jobs');
  await page.getByTitle(evil).first().waitFor();
  await go(page, '#/nodes');
  await page.getByText(evil).waitFor();
  await go(page, '#/nodes/bench');
  await page.getByText(evil).waitFor();
  expect(await page.locator('img[src=x], main dd b').count()).toBe(0);
  await server.call('POST', '/v1/nodes/bench/resume', server.admin, {});
});

test('a job that says how far it is shows how fast it went', async () => {
  // What the training-side package says, line by line.
  const source = `const s = require('net').connect(process.env.YARD_SOCKET); let n = 0; const say = (it) => s.write(JSON.stringify(it) + '\\n');
    say({ hello: { rank: 0 } }); setInterval(() => { say({ progress: { step: ++n, total: 12 } }); if (n === 12) s.end(() => process.exit(0)); }, 500);`;
  const id = await server.submit(ada, 'steps', '', { gpus: 0, command: [process.execPath, '-e', source] });
  const page = await enter(ada);
  await go(page, `#/jobs/${id}`);
  const progress = page.getByRole('region', { name: 'Progress' });
  await progress.getByRole('img', { name: /^Steps per second: steps\/s [\d.]+$/ }).waitFor();
  await page.locator('.page-head .state-succeeded').waitFor();
  const { points } = await server.get<{ points: { step: number; start: number }[] }>(`/v1/jobs/${id}/progress`);
  expect(points[points.length - 1]).toMatchObject({ step: 12, start: 1 });
});

test('what the simulator wrote is opened, compared and scrubbed through', async () => {
  writeFileSync(server.file('t.csv'), 'job_id,submit_s,gpus,duration_s\n1,0,4,100\n2,10,2,50\n3,20,1,500\n');
  const report = server.run('sim', '--trace', 't.csv', '--cluster', 'a100:1x4,v100:2x2', '--policy', 'fifo,srtf', '-o', 'json', '--events', 'e.jsonl', '--html', 'r.html');
  writeFileSync(server.file('r.json'), report);
  const page = await enter(ada);
  await go(page, '#/simulations');
  await page.setInputFiles('input[type=file]', [server.file('t.csv')]);
  await page.getByText('neither an event file').waitFor();
  await page.setInputFiles('input[type=file]', ['r.json', 'e.jsonl.fifo', 'e.jsonl.srtf'].map((name) => server.file(name)));
  for (const run of (JSON.parse(report) as { runs: { policy: string }[] }).runs) await page.getByRole('rowheader', { name: run.policy }).waitFor();
  const fifo = page.getByRole('region', { name: 'e.jsonl.fifo' });
  expect(await fifo.getByRole('heading', { level: 3 }).allTextContents()).toEqual(['a100', 'v100']);
  await page.getByRole('slider', { name: 'Time' }).fill('60');
  await fifo.getByText(/3 running, 0 waiting, 7 of 8 devices in use/).waitFor();
  await page.getByRole('slider', { name: 'Time' }).fill('1000');
  await fifo.getByText(/0 running, 0 waiting, 0 of 8 devices in use/).waitFor();
  await page.getByRole('button', { name: 'Close all' }).click();
  await page.setInputFiles('input[type=file]', [server.file('r.html')]);
  const whole = page.getByRole('region', { name: 't.csv on a100:1x4,v100:2x2' });
  await whole.getByRole('slider', { name: 'Time' }).fill('60');
  await whole.getByRole('region', { name: 'srtf', exact: true }).getByText(/3 running, 0 waiting, 7 of 8 devices in use/).waitFor();
  await whole.getByRole('region', { name: 'List of jobs' }).waitFor();
});

test('a token that ends leads to the door, with why', async () => {
  const brief = await server.token('ada', 'read', 4);
  const page = await enter(brief);
  await page.getByText('this token has expired').waitFor();
  await page.getByLabel('Your token').waitFor();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
});

test('a lost connection is said, and the page recovers by itself', async () => {
  const page = await enter(ada);
  await go(page, '#/jobs?q=after-restart');
  await page.getByText('No job matches.').waitFor();
  await server.stop();
  await page.getByText('Connection lost.').waitFor();
  await server.start();
  await server.submit(ada, 'after-restart', 'true', { gpus: 0 });
  await page.getByRole('cell', { name: 'after-restart' }).waitFor();
  expect(await page.getByText('Connection lost.').count()).toBe(0);
});
