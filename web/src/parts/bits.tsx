// Small things that several pages show.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

export function State({ state }: { state: string }) {
  return <span class={`state state-${state}`}>{state}</span>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Failed({ error, again }: { error: string; again?: () => void }) {
  return (
    <div class="failed" role="alert">
      <span>{error}</span>
      {again && <button type="button" onClick={again}>Try again</button>}
    </div>
  );
}

export function Bar({ part, label, tone = '' }: { part: number; label: string; tone?: string }) {
  const width = `${Math.max(0, Math.min(1, part)) * 100}%`;
  return (
    <span class={`bar ${tone}`} role="img" aria-label={label} title={label}>
      <span class="bar-fill" style={{ width }} />
    </span>
  );
}

export function Panel(props: { title: string; aside?: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <section class={`panel ${props.class ?? ''}`} aria-label={props.title}>
      <header class="panel-head">
        <h2>{props.title}</h2>
        {props.aside && <div class="panel-aside">{props.aside}</div>}
      </header>
      {props.children}
    </section>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A question in front of the page; Escape and a click beside it close it. */
export function Dialog(props: { title: string; close: () => void; children: ComponentChildren; wide?: boolean }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={box}
      class={props.wide ? 'wide' : ''}
      aria-label={props.title}
      onCancel={(event) => { event.preventDefault(); props.close(); }}
      onClick={(event) => { if (event.target === box.current) props.close(); }}
    >
      <div class="dialog-body">
        <h2>{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  );
}
