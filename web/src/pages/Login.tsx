import { useState } from 'preact/hooks';
import { Problem } from '../lib/api';
import { said } from '../lib/ask';
import { enter } from '../lib/session';
import { ThemeButton } from '../parts/ThemeButton';

export function Login({ why }: { why: string | null }) {
  const [token, setToken] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await enter(token.trim());
    } catch (problem) {
      setError(problem instanceof Problem && problem.status === 401 && !token.trim().startsWith('yard_')
        ? 'A token begins with yard_; copy the whole token.' : said(problem));
      setBusy(false);
    }
  };
  const shown = error ?? why;
  return (
    <main class="door">
      <form class="door-box" onSubmit={submit}>
        <img src="/assets/icon.svg" alt="" width="40" height="40" />
        <h1>Switchyard</h1>
        {shown && <p class="failed" role="alert">{shown}</p>}
        <label for="token">Your token</label>
        <input
          id="token" type="password" autocomplete="off" spellcheck={false} required autofocus
          value={token} onInput={(event) => setToken(event.currentTarget.value)} placeholder="yard_…"
        />
        <button type="submit" class="main" disabled={busy}>{busy ? 'Looking…' : 'Log in'}</button>
        <p class="door-help">
          On the server's machine, the token is in <code>.yard/token</code>. An admin can create others:
          {' '}<code>yard token create --user ada --scope submit</code>. It is kept in this tab only.
        </p>
        <div class="door-end"><ThemeButton /></div>
      </form>
    </main>
  );
}
