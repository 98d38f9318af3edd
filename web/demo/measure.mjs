// How fast the page is on a large made-up cluster, 1 000 nodes of 8 and 10 000 jobs, or on a server that runs, such as
// the one of `yard bench live --rounds 60 --dir DIR`. Usage: node demo/measure.mjs [URL TOKEN]
import { browser } from '../screenshots/browser.mjs';
import { demo } from './server.mjs';

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

/** Milliseconds from an action until what it changes is painted. */
async function took(name, action) {
  const before = await worked();
  const ms = await page.evaluate(async (source) => {
    const began = performance.now();
    await new Function(`return (${source})()`)();
    await new Promise((then) => requestAnimationFrame(() => setTimeout(then)));
    return performance.now() - began;
  }, action.toString());
  console.log(`${name.padEnd(34)} ${ms.toFixed(0)} ms, of these ${((await worked()) - before).toFixed(0)} of work`);
}

for (let n = 0; n < 3; n++) {
  await page.goto('about:blank');
  const began = performance.now();
  await page.goto(`${url}/#/now`);
  await page.waitForSelector('.map canvas');
  console.log(`${'first view'.padEnd(34)} ${(performance.now() - began).toFixed(0)} ms`);
}
await page.waitForTimeout(1500);
await took('colour by team', () => [...document.querySelectorAll('.choice button')].find((one) => one.textContent === 'team').click());
await took('pointer over the map', () => {
  const canvas = document.querySelector('.map canvas');
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new MouseEvent('mousemove', { bubbles: true, clientX: box.left + 40, clientY: box.top + 20 }));
});
await took('to the jobs', () => { location.hash = '#/jobs'; });
await page.waitForTimeout(1500);
const type = (text) => `() => { const box = document.querySelector('input[type=search]'); box.value = '${text}'; box.dispatchEvent(new Event('input', { bubbles: true })); }`;
for (const text of ['l', 'llama', 'llama ada']) await took(`search "${text}"`, { toString: () => type(text) });
await took('clear the search', { toString: () => type('') });
await took('order by name', () => [...document.querySelectorAll('.sort')].find((one) => one.textContent.startsWith('Name')).click());
await took('scroll to the middle', () => { const box = document.querySelector('.scroll'); box.scrollTop = box.scrollHeight / 2; });
await took('select all', () => document.querySelector('thead input').click());
await took('to the nodes', () => { location.hash = '#/nodes'; });
await took('to the teams', () => { location.hash = '#/teams'; });
await took('back to now', () => { location.hash = '#/now'; });
await page.waitForTimeout(1000);
await session.send('HeapProfiler.collectGarbage');
const { usedSize } = await session.send('Runtime.getHeapUsage');
console.log(`${'memory of the page\'s script'.padEnd(34)} ${(usedSize / 1e6).toFixed(0)} MB`);
await page.screenshot({ path: process.env.SHOT ?? '/dev/null', type: 'png' });
await chrome.close();
close();
