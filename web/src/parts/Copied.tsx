import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Panel } from './bits';

/** Text to take elsewhere, with a button that does. Where the browser forbids it, the text can be selected. */
export function Copied({ title, text, note }: { title: string; text: string; note?: ComponentChildren }) {
  const [done, setDone] = useState<string | null>(null);
  const copy = () => void navigator.clipboard?.writeText(text).then(() => setDone(text), () => setDone(null));
  return (
    <Panel title={title} aside={navigator.clipboard && <button type="button" class="small" onClick={copy}>{done === text ? 'Copied' : 'Copy'}</button>}>
      <pre class="spec" tabIndex={0} aria-label={title}>{text}</pre>
      {note && <p class="note">{note}</p>}
    </Panel>
  );
}
