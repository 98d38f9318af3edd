import type { Palette } from '../lib/colors';
import type { Store } from '../lib/store';
import type { Node } from '../lib/types';

/** A node's devices in one line. */
export function Cells({ node, store, colors }: { node: Node; store: Store; colors: Palette }) {
  return (
    <span class="cells" role="img" aria-label={`${node.devices.filter((device) => device.jobs.length > 0).length} of ${node.devices.length} held`}>
      {node.devices.map((device) => {
        const job = store.jobs.get(device.jobs[0] ?? -1);
        const hue = device.jobs.length === 0 ? '' : job ? colors.of(job.user) : 'hue-other';
        return <i key={`${device.kind}${device.index}`} class={`${hue} ${device.problem ? 'is-broken' : ''} ${device.jobs.length > 1 ? 'is-packed' : ''}`} />;
      })}
    </span>
  );
}
