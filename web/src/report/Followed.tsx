// The part of the time that plans asked for against the part that jobs received, a dot for each job on a kind.

import { percent } from '../lib/format';
import type { RunView } from '../lib/report';
import { Panel } from '../parts/bits';

const [LEFT, TOP, SIZE] = [42, 8, 232];

export function Followed({ runs, hue }: { runs: RunView[]; hue: (policy: string) => string }) {
  const drawn = runs.filter((run) => run.followed.length > 0);
  if (drawn.length === 0) return null;
  const [x, y] = [(part: number) => LEFT + SIZE * part, (part: number) => TOP + SIZE * (1 - part)];
  const off = (run: RunView) => { const error = run.summary['asked_received_error']; return typeof error === 'number' ? `off by ${percent(error)} of the time` : ''; };
  return (
    <Panel title="Shares planned and received" aside={<span class="note">each dot: one job on one kind</span>}>
      <div class="chart followed">
        <svg width={LEFT + SIZE + 10} height={TOP + SIZE + 34} role="img" aria-label={drawn.map((run) => `${run.policy} ${off(run)}`).join(', ')}>
          {[0, 0.5, 1].map((part) => (
            <g key={part} class="axis">
              <line x1={x(0)} x2={x(1)} y1={y(part)} y2={y(part)} /><line x1={x(part)} x2={x(part)} y1={y(0)} y2={y(1)} />
              <text x={LEFT - 6} y={y(part) + 4} text-anchor="end">{percent(part)}</text><text x={x(part)} y={y(0) + 15} text-anchor="middle">{percent(part)}</text>
            </g>
          ))}
          <line class="limit" x1={x(0)} y1={y(0)} x2={x(1)} y2={y(1)} />
          <text x={x(0.5)} y={y(0) + 29} text-anchor="middle">asked for</text>
          {drawn.map((run) => <g key={run.policy} class={`dots ${hue(run.policy)}`}>{run.followed.map(([asked, received], n) => <circle key={n} cx={x(asked).toFixed(1)} cy={y(received).toFixed(1)} r="2.5" />)}</g>)}
        </svg>
        <div>
          <ul class="legend is-list">{drawn.map((run) => <li key={run.policy}><span><i class={hue(run.policy)} />{run.policy} <small>{off(run)}</small></span></li>)}</ul>
          <p class="note">On the line, rounds follow the plan; above it, the job also got what others left over.</p>
        </div>
      </div>
    </Panel>
  );
}
