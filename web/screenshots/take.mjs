// Pictures of every page in both themes, on the made-up cluster. Usage: node screenshots/take.mjs [folder] [page…]
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { demo } from '../demo/server.mjs';
import { browser } from './browser.mjs';
import { shrink } from './shrink.mjs';

const [folder = '../docs/images', ...only] = process.argv.slice(2);
const simulated = simulate();
mkdirSync(folder, { recursive: true });
const { url, world, close } = await demo({});
const open = world.jobs.filter((job) => job.ended_at === null);
const runs = open.find((job) => job.state === 'running' && job.deadline !== null) ?? open[0];
const waits = open.find((job) => job.started_at === null);
const PAGES = {
  now: '#/now',
  jobs: '#/jobs',
  job: `#/jobs/${runs.id}`,
  waiting: `#/jobs/${waits.id}`,
  nodes: '#/nodes',
  node: '#/nodes/h200-04',
  teams: '#/teams',
  submit: '#/submit',
  'what-if': '#/what-if',
  'what-if-node': '#/what-if?about=node&node=h100-08',
  'what-if-history': '#/what-if?about=history',
  simulations: '#/simulations',
};

async function shoot(page, name) {
  writeFileSync(join(folder, `${name}.png`), shrink(await page.screenshot()));
}

/** A day of jobs under three policies, where there is a binary to simulate with. */
function simulate() {
  const yard = resolve(process.env.YARD ?? '../target/release/yard');
  if (!existsSync(yard)) {
    console.error(`no ${yard}: the page of simulations is pictured empty; say where the binary is by YARD=`);
    return [];
  }
  const cwd = mkdtempSync(join(tmpdir(), 'yard-shots-'));
  const run = (...args) => execFileSync(yard, args, { cwd, maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'ignore'] });
  writeFileSync(join(cwd, 'day.csv'), run('trace', 'gen', '--preset', 'gavel', '--jobs', '400', '--rate', '14', '--seed', '1'));
  writeFileSync(join(cwd, 'report.json'), run('sim', '--trace', 'day.csv', '--cluster', 'h100:12x8,a100:12x4', '--policy', 'fifo,tiresias,srtf', '-o', 'json', '--events', 'run.jsonl'));
  writeFileSync(join(cwd, 'teams.csv'), withTeams(readFileSync(join(cwd, 'day.csv'), 'utf8')));
  run('sim', '--trace', 'teams.csv', '--cluster', 'h100:8x8,a100:8x4', '--policy', 'fifo,tiresias,max-min', '--html', 'report.html');
  return ['report.json', 'run.jsonl.fifo', 'run.jsonl.srtf', 'report.html'].map((name) => join(cwd, name));
}

/** The trace with a team for each job. */
function withTeams(trace) {
  const names = ['vision', 'language', 'vision', 'speech', 'robotics', 'language', 'vision'];
  const [head, ...rows] = trace.trim().split('\n').filter((line) => !line.startsWith('#'));
  return [`${head},tenant`, ...rows.map((row, n) => `${row},${names[n % 7]}`), ''].join('\n');
}

/** The file that `yard sim --html` wrote: its beginning, and the devices at a time. */
async function shootReport(page, theme) {
  await page.goto(pathToFileURL(simulated[3]).href);
  await page.waitForTimeout(600);
  await shoot(page, `report-${theme}`);
  await page.getByRole('group', { name: 'Colour by' }).getByRole('button', { name: 'team' }).click();
  await page.getByText('Who held which devices when').nth(1).click();
  await page.getByRole('region', { name: 'tiresias', exact: true }).evaluate((panel) => scrollTo(0, panel.offsetTop - 70));
  await page.waitForTimeout(400);
  await shoot(page, `report-devices-${theme}`);
}

const chrome = await browser();
for (const theme of ['light', 'dark']) {
  const page = await chrome.newPage({ viewport: { width: 1360, height: 850 }, colorScheme: theme });
  page.on('console', (message) => { if (message.type() === 'error') console.error(message.text()); });
  page.on('pageerror', (error) => console.error(error.message));
  await page.goto(url);
  if (only.length === 0 || only.includes('login')) await shoot(page, `login-${theme}`);
  await page.fill('#token', 'yard_demo');
  await page.click('button[type=submit]');
  await page.waitForSelector('.numbers');
  for (const [name, hash] of Object.entries(PAGES)) {
    if (only.length > 0 && !only.includes(name)) continue;
    await page.goto(`${url}/${hash}`);
    if (name === 'simulations' && simulated.length > 0) await page.setInputFiles('input[type=file]', simulated.slice(0, 3));
    if (name === 'what-if') {
      for (const [label, text] of [['Devices', '8'], ['How long it takes', '2h'], ['Deadline', '2h']]) await page.getByLabel(label, { exact: true }).fill(text);
      await page.getByLabel('h100').check();
      await page.click('.form button');
    }
    if (name === 'submit') {
      for (const [label, text] of [['Command', 'torchrun train.py --config configs/vit.yaml'], ['Name', 'vit-large'], ['Devices', '8'], ['How long it takes', '2h'], ['Deadline', '18:00']]) await page.getByLabel(label, { exact: true }).fill(text);
      await page.getByLabel('h100').check();
    }
    if (name === 'what-if-node') await page.getByRole('button', { name: 'Ask' }).click();
    if (name === 'what-if-history') {
      await page.getByLabel('More nodes').fill('h100:2x8');
      await page.getByRole('button', { name: 'Compare another' }).click();
      await page.getByLabel('Policy').nth(1).fill('srtf');
      await page.getByRole('button', { name: 'Ask' }).click();
    }
    await page.waitForTimeout(900);
    await shoot(page, `${name}-${theme}`);
  }
  if (simulated.length > 0 && (only.length === 0 || only.includes('report'))) await shootReport(page, theme);
  await page.setViewportSize({ width: 390, height: 780 });
  if (only.length === 0 || only.includes('phone')) {
    await page.goto(`${url}/#/jobs?state=open`);
    await page.waitForTimeout(500);
    await shoot(page, `phone-${theme}`);
  }
  await page.close();
}
await chrome.close();
close();
