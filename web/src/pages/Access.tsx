// For admins: who may do what, and who did what.

import { useState } from 'preact/hooks';
import * as api from '../lib/api';
import { said, useGet } from '../lib/ask';
import { ago, clock, plural } from '../lib/format';
import { seconds } from '../lib/question';
import { setQuery, type Route } from '../lib/route';
import { useClock, useStore } from '../lib/store';
import type { Token } from '../lib/types';
import { Dialog, Empty, Failed, Panel } from '../parts/bits';
import { Audit } from '../parts/Audit';
import { Copied } from '../parts/Copied';

const SHOWN = 200;
const SCOPES: [string, string][] = [['submit', 'submit: own jobs'], ['read', 'read: view only'], ['admin', 'admin: everything']];

export function Access({ route }: { route: Route }) {
  const { me } = useStore();
  const audit = route.query.get('view') === 'audit';
  if (me && me.scope !== 'admin') return <div class="page"><Empty title="Tokens and the audit trail are for admins."><p>Your own tokens: <code>yard token list</code></p></Empty></div>;
  return (
    <div class="page">
      <div class="page-head">
        <h1>Access</h1>
        <div class="choice" role="group" aria-label="Show">
          <button type="button" aria-pressed={!audit} onClick={() => setQuery(route, { view: '' })}>tokens</button>
          <button type="button" aria-pressed={audit} onClick={() => setQuery(route, { view: 'audit' })}>audit trail</button>
        </div>
      </div>
      {audit ? <Audit /> : <Tokens />}
    </div>
  );
}

function Tokens() {
  const now = useClock(10);
  const { value, error, again } = useGet<{ tokens: Token[] }>('/v1/tokens');
  const [every, setEvery] = useState(false);
  const [revoking, setRevoking] = useState<Token | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const good = (token: Token) => !token.revoked && (token.expires_at === null || token.expires_at > now);
  const all = [...(value?.tokens ?? [])].reverse();
  const tokens = all.filter((token) => every || good(token));
  return (
    <div class="stack">
      <Panel title="New token"><NewToken made={(text) => { setSecret(text); again(); }} /></Panel>
      {secret && <Copied title="The new token" text={secret} note="Copy it now: it is not shown again." />}
      <Panel title="Tokens" aside={<label class="check"><input type="checkbox" checked={every} onChange={() => setEvery(!every)} /> also expired and revoked</label>}>
        {error && <Failed error={error} again={again} />}
        <div class="wide-table" tabIndex={0}>
          <table>
            <thead><tr><th scope="col">Token</th><th scope="col">User</th><th scope="col">Scope</th><th scope="col">Made</th><th scope="col">Expires</th><th scope="col">Last used</th><th scope="col"><span class="sr">Action</span></th></tr></thead>
            <tbody>
              {tokens.slice(0, SHOWN).map((token) => (
                <tr key={token.id}>
                  <th scope="row"><code>{token.id}</code></th>
                  <td>{token.user}</td>
                  <td>{token.scope}</td>
                  <td>{clock(token.created_at, now)}</td>
                  <td>{token.expires_at === null ? 'never' : ago(token.expires_at, now)}</td>
                  <td>{token.last_used_at === null ? 'never' : ago(token.last_used_at, now)}</td>
                  <td>{token.revoked ? <span class="note">revoked</span> : good(token) && <button type="button" class="small danger" onClick={() => setRevoking(token)}>Revoke</button>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {tokens.length > SHOWN && <p class="note">The newest {SHOWN} of {plural(tokens.length, 'token')} are shown.</p>}
        {value && tokens.length === 0 && <Empty title="No token is in force." />}
      </Panel>
      {revoking && <Revoke token={revoking} close={() => { setRevoking(null); again(); }} />}
    </div>
  );
}

function NewToken({ made }: { made: (secret: string) => void }) {
  const [user, setUser] = useState('');
  const [scope, setScope] = useState('submit');
  const [expires, setExpires] = useState('');
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const expires_s = expires.trim() === '' ? undefined : seconds(expires);
    if (expires_s === null) return setError('Expires after: such as 30d or 12h.');
    try {
      const answer = await api.post<{ secret: string }>('/v1/tokens', { user: user.trim(), scope, ...(expires_s === undefined ? {} : { expires_s }) });
      setError(null);
      if (answer) made(answer.secret);
    } catch (problem) {
      setError(said(problem));
    }
  };
  return (
    <form class="form is-row" onSubmit={submit}>
      <label>User<input value={user} required placeholder="ada" onInput={(event) => setUser(event.currentTarget.value)} /></label>
      <label>May<select value={scope} onChange={(event) => setScope(event.currentTarget.value)}>{SCOPES.map(([value, name]) => <option key={value} value={value}>{name}</option>)}</select></label>
      <label>Expires after<input value={expires} placeholder="never; 30d" onInput={(event) => setExpires(event.currentTarget.value)} /></label>
      <button type="submit" class="main">Make token</button>
      {error && <Failed error={error} />}
    </form>
  );
}

function Revoke({ token, close }: { token: Token; close: () => void }) {
  const [error, setError] = useState<string | null>(null);
  const revoke = async () => {
    try {
      await api.remove(`/v1/tokens/${encodeURIComponent(token.id)}`);
      close();
    } catch (problem) {
      setError(said(problem));
    }
  };
  return (
    <Dialog title={`Revoke the token ${token.id} of ${token.user}?`} close={close}>
      <p class="note">It stops working immediately, here and in every script that uses it. This cannot be undone.</p>
      {error && <Failed error={error} />}
      <div class="dialog-end">
        <button type="button" onClick={close}>Close</button>
        <button type="button" class="danger" onClick={() => void revoke()}>Revoke</button>
      </div>
    </Dialog>
  );
}
