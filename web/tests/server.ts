// A real server with pretend devices, in a folder of its own: what `yard up` starts.

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const BINARY = resolve(process.env['YARD'] ?? '../target/debug/yard');
const PATIENCE_MS = 30_000;

export class Server {
  private folder = mkdtempSync(join(tmpdir(), 'yard-web-'));
  private process: ChildProcess | null = null;
  private listen = '127.0.0.1:0';
  url = '';
  admin = '';

  async start(): Promise<void> {
    if (!existsSync(BINARY)) throw new Error(`${BINARY} is not there: build it with cargo build, or say where it is by YARD=`);
    const args = ['up', '--listen', this.listen, '--name', 'bench', '--fake', 'h100:2,cpu:8', '--round', '1s', '--policy', 'fifo', '--log', 'warn'];
    rmSync(join(this.folder, '.yard/server.json'), { force: true });
    const server = spawn(BINARY, args, { cwd: this.folder, stdio: ['ignore', 'ignore', 'pipe'] });
    server.stderr?.pipe(createWriteStream(join(this.folder, 'log'), { flags: 'a' }));
    this.process = server;
    await until('the server is up', async () => {
      if (server.exitCode !== null) throw new Error(`yard up ended: ${readFileSync(join(this.folder, 'log'), 'utf8')}`);
      const file = join(this.folder, '.yard/server.json');
      if (!existsSync(file)) return false;
      this.url = (JSON.parse(readFileSync(file, 'utf8')) as { url: string }).url;
      this.admin = readFileSync(join(this.folder, '.yard/token'), 'utf8').trim();
      const nodes = await this.get<{ nodes: { state: string }[] }>('/v1/nodes').catch(() => ({ nodes: [] }));
      return nodes.nodes.some((node) => node.state === 'up');
    });
    this.listen = new URL(this.url).host;
  }

  async stop(): Promise<void> {
    const server = this.process;
    if (!server || server.exitCode !== null) return;
    const ended = new Promise((done) => server.once('exit', done));
    server.kill('SIGINT');
    const timer = setTimeout(() => server.kill('SIGINT'), 8000);
    await ended;
    clearTimeout(timer);
  }

  /** Runs the binary in the server's folder; what it printed. */
  run(...args: string[]): string {
    return execFileSync(BINARY, args, { cwd: this.folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  }

  /** What a job file is, as the binary reads it. */
  dryRun(text: string): unknown {
    writeFileSync(this.file('job.yaml'), text);
    return JSON.parse(this.run('submit', '--dry-run', '-o', 'json', '-f', 'job.yaml'));
  }

  /** What a command that submits something would send, as a shell and the binary read it. */
  dryCommand(text: string): unknown {
    const command = text.replace(/^yard submit/, `'${BINARY}' submit --dry-run -o json`);
    return JSON.parse(execFileSync('sh', ['-c', command], { cwd: this.folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  async end(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async get<T>(path: string, token = this.admin): Promise<T> {
    return this.call<T>('GET', path, token);
  }

  async call<T>(method: string, path: string, token: string, body?: unknown): Promise<T> {
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text ? JSON.parse(text) : null) as T;
  }

  async token(user: string, scope: string, expires_s?: number, teams?: string[]): Promise<string> {
    const made = await this.call<{ secret: string }>('POST', '/v1/tokens', this.admin, { user, scope, ...(expires_s ? { expires_s } : {}), ...(teams ? { teams } : {}) });
    return made.secret;
  }

  async submit(token: string, name: string, script: string, more: Record<string, unknown> = {}): Promise<number> {
    const request = { name, command: ['sh', '-c', script], gpus: 1, checkpoint: { grace_s: 1 }, ...more };
    return (await this.call<{ id: number }>('POST', '/v1/jobs', token, request)).id;
  }

  async state(id: number): Promise<string> {
    // A job that was just submitted is durable before it is on the board.
    const job = await this.get<{ state: string }>(`/v1/jobs/${id}`).catch(() => null);
    return job?.state ?? 'unknown';
  }
}

export async function until(what: string, is: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    if (await is()) return;
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((then) => setTimeout(then, 100));
  }
}
