// The frame around all pages: where one can go, how the connection stands, and the keys that work everywhere.

import { useEffect, useState } from 'preact/hooks';
import { Banner } from './parts/Banner';
import { Help } from './parts/Help';
import { ThemeButton } from './parts/ThemeButton';
import { go, link, useRoute, type Route } from './lib/route';
import { leave, useSession, whoami } from './lib/session';
import { useStore } from './lib/store';
import { Access } from './pages/Access';
import { Job } from './pages/Job';
import { Jobs } from './pages/Jobs';
import { Login } from './pages/Login';
import { Node } from './pages/Node';
import { Nodes } from './pages/Nodes';
import { Now } from './pages/Now';
import { Simulations } from './pages/Simulations';
import { Submit } from './pages/Submit';
import { Teams } from './pages/Teams';
import { WhatIf } from './pages/WhatIf';

interface PageLink { path: string; name: string; key: string; scopes?: string[] }

/** `scopes`: whose tokens are offered it; without, all. */
const PAGES: PageLink[] = [
  { path: 'now', name: 'Now', key: 'n' },
  { path: 'jobs', name: 'Jobs', key: 'j' },
  { path: 'nodes', name: 'Nodes', key: 'd' },
  { path: 'teams', name: 'Teams', key: 't' },
  { path: 'submit', name: 'Submit', key: 'u', scopes: ['submit', 'admin'] },
  { path: 'what-if', name: 'What if', key: 'w' },
  { path: 'simulations', name: 'Simulations', key: 's' },
  { path: 'access', name: 'Access', key: 'a', scopes: ['admin'] },
];

export function App() {
  const session = useSession();
  const { me } = useStore();
  const route = useRoute();
  const [help, setHelp] = useState(false);
  useEffect(() => keys(setHelp), []);
  if (!session.inside) return <Login why={session.why} />;
  const offered = PAGES.filter((page) => !page.scopes || page.scopes.includes(me?.scope ?? ''));
  const here = route.path[0] ?? 'now';
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>To the content</a>
      <nav class="rail" aria-label="Pages">
        <a class="brand" href="#/now"><img src="/assets/icon.svg" alt="" width="22" height="22" />Switchyard</a>
        <div class="rail-links">
          {offered.map((page) => (
            <a key={page.path} href={link([page.path])} aria-current={here === page.path ? 'page' : undefined}>
              {page.name}<kbd aria-hidden="true">g {page.key}</kbd>
            </a>
          ))}
        </div>
        <Who help={() => setHelp(true)} />
      </nav>
      <div class="stage">
        <Banner />
        <main id="main" tabIndex={-1}><Page route={route} /></main>
      </div>
      {help && <Help pages={offered} close={() => setHelp(false)} />}
    </div>
  );
}

function Page({ route }: { route: Route }) {
  const { ready } = useStore();
  const [page = 'now', name] = route.path;
  useEffect(() => { document.title = `${name ? `${page} ${name}` : page} · Switchyard`; }, [page, name]);
  if (!ready) return <p class="loading" role="status">Connecting…</p>;
  switch (page) {
    case 'jobs': return name ? <Job key={name} id={name} /> : <Jobs route={route} />;
    case 'nodes': return name ? <Node key={name} name={name} /> : <Nodes route={route} />;
    case 'teams': return <Teams route={route} />;
    case 'what-if': return <WhatIf route={route} />;
    case 'submit': return <Submit />;
    case 'access': return <Access route={route} />;
    case 'simulations': return <Simulations />;
    default: return <Now route={route} />;
  }
}

function Who({ help }: { help: () => void }) {
  const { me, status, link: state } = useStore();
  useEffect(() => { if (!me && state.state === 'live') void whoami(); }, [me, state.state]);
  return (
    <div class="who">
      {me && <div class="who-name" title={`Your token allows: ${me.scope}`}><b>{me.user}</b> <span>{me.scope}</span></div>}
      <div class="who-row">
        <ThemeButton />
        <button type="button" class="quiet" onClick={help} aria-label="Keys" title="Keys (?)">?</button>
        <button type="button" class="quiet" onClick={() => leave(null)}>Log out</button>
      </div>
      {status && <div class="who-version">{status.policy} · v{status.version}</div>}
    </div>
  );
}

/** Keys that work everywhere but where one types: `/` searches, `g` and a letter goes to a page, `?` helps. */
function keys(help: (show: boolean) => void): () => void {
  let going = 0;
  const pressed = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) {
      if (event.key === 'Escape') target.blur();
      return;
    }
    const page = Date.now() - going < 1500 ? PAGES.find((page) => page.key === event.key) : undefined;
    going = event.key === 'g' ? Date.now() : 0;
    if (page) return go(link([page.path]));
    if (event.key === '?') return help(true);
    if (event.key !== '/') return;
    event.preventDefault();
    const search = document.querySelector<HTMLInputElement>('input[type=search]');
    if (search) search.focus();
    else go(link(['jobs']));
  };
  window.addEventListener('keydown', pressed);
  return () => window.removeEventListener('keydown', pressed);
}
