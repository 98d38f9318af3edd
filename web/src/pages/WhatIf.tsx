// Questions to the scheduler: about a job, about a node, about the past. Nothing happens.

import { setQuery, type Route } from '../lib/route';
import { AskHistory } from '../what-if/AskHistory';
import { AskJob } from '../what-if/AskJob';
import { AskNode } from '../what-if/AskNode';

const ABOUT: [string, string, string][] = [
  ['', 'a job', 'When a job would start and end, before you submit it.'],
  ['node', 'a node', 'Which jobs a drained or failed node would affect.'],
  ['history', 'the past', 'The past replayed under another policy, round or cluster.'],
];

export function WhatIf({ route }: { route: Route }) {
  const about = route.query.get('about') ?? '';
  const [, , says] = ABOUT.find(([value]) => value === about) ?? ABOUT[0]!;
  return (
    <div class="page">
      <div class="page-head">
        <h1>What if</h1>
        <div class="choice" role="group" aria-label="About">
          {ABOUT.map(([value, name]) => <button key={value} type="button" aria-pressed={about === value} onClick={() => setQuery(route, { about: value })}>{name}</button>)}
        </div>
        <span class="note">{says}</span>
      </div>
      <div class="what-if">
        {about === 'node' ? <AskNode key={route.query.get('node')} node={route.query.get('node')} /> : about === 'history' ? <AskHistory /> : <AskJob like={route.query.get('job')} />}
      </div>
    </div>
  );
}
