// Requests to the server. The token is kept for this tab only and never stands in an address.

import { Parser, type Frame } from './sse';

const KEY = 'yard-token';

/** What the server said instead of the answer hoped for. */
export class Problem extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

let token = sessionStorage.getItem(KEY);
let refused: (why: string) => void = () => {};

export function hasToken(): boolean {
  return token !== null;
}

export function setToken(next: string | null): void {
  token = next;
  if (next === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, next);
}

/** What happens when the server takes the token no more. */
export function onRefused(then: (why: string) => void): void {
  refused = then;
}

async function call(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token !== null) headers.set('authorization', `Bearer ${token}`);
  const used = token;
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, cache: 'no-store', credentials: 'omit', redirect: 'error' });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Problem(0, 'Cannot reach the server. Is it running?');
  }
  if (response.ok) return response;
  const message = await said(response);
  if (response.status === 401 && used === token && used !== null) refused(message);
  throw new Problem(response.status, message);
}

async function said(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const view = JSON.parse(text) as { error?: string };
    if (view.error) return view.error;
  } catch {
    // Not ours: something between here and the server answered.
  }
  return `The server answered ${response.status}.`;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await call(path, { signal: signal ?? null })).json()) as T;
}

export async function post<T>(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T | null> {
  const init: RequestInit = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } };
  if (body !== undefined) init.body = JSON.stringify(body);
  const response = await call(path, init);
  return response.status === 204 ? null : ((await response.json()) as T);
}

export async function remove(path: string): Promise<void> {
  await call(path, { method: 'DELETE' });
}

/** Text as it comes, until the server or the signal ends it. */
export async function text(path: string, signal: AbortSignal, piece: (text: string) => void): Promise<void> {
  const response = await call(path, { signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    piece(value);
  }
}

/** Frames of a stream as they come. `alive` is called whenever anything comes at all. */
export async function frames(
  path: string,
  last: string | null,
  signal: AbortSignal,
  alive: () => void,
  frame: (frame: Frame) => void,
): Promise<void> {
  const response = await call(path, { signal, headers: last === null ? {} : { 'last-event-id': last } });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new Parser();
  alive();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    parser.push(value).forEach(frame);
  }
}
