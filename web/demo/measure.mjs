// How fast the page is on a large made-up cluster, 1 000 nodes of 8 and 10 000 jobs, or on a server that runs, such as
// the one of `yard bench live --rounds 60 --dir DIR`. Medians of several
// rounds. Usage: node demo/measure.mjs [URL TOKEN]
import { browser } from '../screenshots/browser.mjs';
import { demo } from './server.mjs';

const ROUNDS = 5;

const [given, token = 'yard_demo'] = process.argv.slice(2);
const { url, close } = given ? { url: given.replace(/\/$/, ''), close: () => {} } : await demo({ scale: 16.3, hours: 9.9 });
const ask = async (path) => (await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })).json();
const nodes = given ? (await ask('/v1/nodes')).nodes : [];
if (given) console.log(`${nodes.length} nodes, ${nodes.reduce((sum, node) => sum + node.devices.length, 0)} devices, ${(await ask('/v1/jobs?limit=20000')).jobs.length} open jobs`);

const chrome = await browser();
const page = await chrome.newPage({ viewport: { width: 1440, height: 900 } });
await page.goto(url);
await page.evaluate((token) => sessionStorage.setItem('yard-token', token), token);

const session = await page.context().newCDPSession(page);
await session.send('Performance.enable', { timeDomain: 'threadTicks' });

/** What the page's own thread has worked so far, in milliseconds: what counts where others use the machine too. */
async function worked() {
  const { metrics } = await session.send('Performance.getMetrics');
  return 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
}

const found = new Map();
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** Milliseconds from an action until what it changes is painted, and how much of that the page's thread worked. */
async function took(name, action) {
  const before = await worked();
  const ms = await page.evaluate(async (source) => {
    const began = performance.now();
    await new Function(`return (${source})()`)();
    await new Promise((then) => requestAnimationFrame(() => setTimeout(then)));
    return performance.now() - began;
  }, action.toString());
  found.set(name, [...(found.get(name) ?? []), [ms, (await worked()) - before]]);
}

async function firstView() {
  await page.goto('about:blank');
  const began = performance.now();
  await page.goto(`${url}/#/now`);
  await page.waitForSelector('.map canvas');
  found.set('first view', [...(found.get('first view') ?? []), [performance.now() - began, NaN]]);
}

const type = (text) => ({ toString: () => `() => { const box = document.querySelector('input[type=search]'); box.value = '${text}'; box.dispatchEvent(new Event('input', { bubbles: true })); }` });

async function round() {
  await firstView();
  await page.waitForTimeout(1500);
  await took('colour by team', () => [...document.querySelectorAll('.choice button')].find((one) => one.textContent === 'team').click());
  await took('pointer over the map', () => {
    const canvas = document.querySelector('.map canvas');
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new MouseEvent('mousemove', { bubbles: true, clientX: box.left + 40, clientY: box.top + 20 }));
  });
  await took('to the jobs', () => { location.hash = '#/jobs'; });
  await page.waitForTimeout(1500);
  for (const text of ['l', 'llama', 'llama ada']) await took(`search "${text}"`, type(text));
  await took('clear the search', type(''));
  await took('order by name', () => [...document.querySelectorAll('.sort')].find((one) => one.textContent.startsWith('Name')).click());
  await took('scroll to the middle', () => { const box = document.querySelector('.scroll'); box.scrollTop = box.scrollHeight / 2; });
  await took('select all', () => document.querySelector('thead input').click());
  await took('to the nodes', () => { location.hash = '#/nodes'; });
  await page.waitForTimeout(500);
  await took('to the teams', () => { location.hash = '#/teams'; });
  await page.waitForTimeout(1000);
  await took('back to now', () => { location.hash = '#/now'; });
  await page.waitForTimeout(1000);
}

for (let n = 0; n < ROUNDS; n++) await round();
for (const [name, all] of found) {
  const [ms, work] = [0, 1].map((n) => all.map((one) => one[n]));
  console.log(`${name.padEnd(34)} ${median(ms).toFixed(0).padStart(4)} ms, ${Math.min(...ms).toFixed(0)} to ${Math.max(...ms).toFixed(0)}${Number.isNaN(work[0]) ? '' : `; of work ${median(work).toFixed(0)} ms`}`);
}
await session.send('HeapProfiler.collectGarbage');
const { usedSize } = await session.send('Runtime.getHeapUsage');
console.log(`${'memory of the page\'s script'.padEnd(34)} ${(usedSize / 1e6).toFixed(0).padStart(4)} MB`);
await chrome.close();
close();
