// The connection is lost: said at the top of every page, with what is done about it.

import { span } from '../lib/format';
import { retry } from '../lib/session';
import { useClock, useStore } from '../lib/store';

export function Banner() {
  const { link, ready } = useStore();
  if (link.state !== 'lost') return null;
  return <Lost why={link.why} retryAt={link.retryAt} ready={ready} />;
}

function Lost({ why, retryAt, ready }: { why: string; retryAt: number; ready: boolean }) {
  useClock(0.5);
  const left = Math.max(0, retryAt - Date.now()) / 1000;
  return (
    <div class="banner" role="alert">
      <b>Connection lost.</b> {why}
      {ready && ' The page shows the last known state.'}
      <span class="banner-next">{left > 0.4 ? `Trying again in ${span(Math.ceil(left))}` : 'Trying…'}</span>
      <button type="button" onClick={retry}>Try now</button>
    </div>
  );
}
