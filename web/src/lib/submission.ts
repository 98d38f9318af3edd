// A job from the fields of a form: what is sent, and the same as a command and as a file, for whoever goes on in a shell.

import { instant, seconds } from './question';

export interface JobFields {
  name: string;
  command: string;
  workdir: string;
  gpus: string;
  kinds: string[];
  time: string;
  duration: string;
  deadline: string;
  priority: string;
  tenant: string;
  min: string;
  max: string;
  checkpoints: string;
}

export const BLANK: JobFields = {
  name: '', command: '', workdir: '', gpus: '1', kinds: [], time: '', duration: '', deadline: '', priority: '', tenant: '', min: '', max: '', checkpoints: '',
};

export type Value = string | number | string[];

/** One thing that a job asks for: as it is sent, as a flag and as a line of a file. */
interface Part { sent: [string, unknown]; flag: [string, string] | null; line: [string, Value] }

/** What only a shell understands. Where it stands in quotes, a shell reads it the same. */
const SHELL = /[|&;<>()$`\\\n*?~#[\]]|^\s*\w+=/;

/** The words of a command: as a shell would take them apart, or one text for a shell, as `run` in a job file is, where it has to
 *  do more than that. */
export function words(command: string): string[] {
  if (SHELL.test(command)) return ['/bin/sh', '-ec', command];
  const found: string[] = [];
  let [word, quoted, inside] = ['', '', false];
  for (const letter of command) {
    if (quoted ? letter === quoted : letter === '"' || letter === "'") [quoted, inside] = [quoted ? '' : letter, true];
    else if (quoted || !/\s/.test(letter)) [word, inside] = [word + letter, true];
    else if (inside) { found.push(word); [word, inside] = ['', false]; }
  }
  if (quoted) throw new Error(`Command: a quote (${quoted}) is not closed.`);
  return inside ? [...found, word] : found;
}

/** A word as a shell takes it. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

/** All parts that were filled in. Throws what is wrong. */
function parts(fields: JobFields, now: number): Part[] {
  const found: Part[] = [];
  const text = (name: string, flag: string, value: string) => {
    if (value.trim()) found.push({ sent: [name, value.trim()], flag: [flag, value.trim()], line: [name, value.trim()] });
  };
  const whole = (label: string, name: string, flag: string, value: string, least: number) => {
    if (!value.trim()) return;
    if (!/^-?\d+$/.test(value.trim()) || Number(value) < least) throw new Error(`${label}: a whole number${least >= 0 ? ` of at least ${least}` : ''}.`);
    found.push({ sent: [name, Number(value)], flag: [flag, value.trim()], line: [name, Number(value)] });
  };
  const length = (label: string, name: string, value: string) => {
    if (!value.trim()) return;
    const sent = seconds(value);
    if (sent === null || sent <= 0) throw new Error(`${label}: such as 45min, 2h or 1h30m.`);
    found.push({ sent: [`${name === 'time' ? 'time_limit' : name}_s`, sent], flag: [`--${name}`, spaceless(value)], line: [name, spaceless(value)] });
  };
  text('name', '--name', fields.name);
  text('workdir', '--workdir', fields.workdir);
  if (fields.workdir.trim() && !fields.workdir.trim().startsWith('/')) throw new Error('Folder: an absolute path, such as /home/ada/project.');
  whole('Devices', 'gpus', '--gpus', fields.gpus, 0);
  whole('Minimum devices', 'min_gpus', '--min-gpus', fields.min, 1);
  whole('Maximum devices', 'max_gpus', '--max-gpus', fields.max, 1);
  if (fields.kinds.length > 0) found.push({ sent: ['kinds', fields.kinds], flag: ['--kind', fields.kinds.join(',')], line: ['kinds', fields.kinds] });
  length('Time limit', 'time', fields.time);
  length('Duration', 'duration', fields.duration);
  const deadline = fields.deadline.trim() ? instant(fields.deadline, now) : undefined;
  if (deadline === null) throw new Error('Deadline: such as 6h from now, or 18:00.');
  if (deadline !== undefined) found.push({ sent: ['deadline', deadline], flag: ['--deadline', spaceless(fields.deadline)], line: ['deadline', spaceless(fields.deadline)] });
  whole('Priority', 'priority', '--priority', fields.priority, -Infinity);
  text('tenant', '--tenant', fields.tenant);
  return found;
}

/** What is sent to the server. Throws what is wrong. */
export function submission(fields: JobFields, now: number): Record<string, unknown> {
  if (!fields.command.trim()) throw new Error('Command: such as python train.py.');
  const sent = Object.fromEntries(parts(fields, now).map((part) => part.sent));
  const dir = fields.checkpoints.trim();
  return { command: words(fields.command), ...sent, ...(dir ? { checkpoint: { dir } } : {}) };
}

/** What fits into a line of the page. */
const LINE = 72;

/** The same as a command for a shell. */
export function asCommand(fields: JobFields, now: number): string {
  const flags = parts(fields, now).flatMap((part) => (part.flag ? [`${part.flag[0]} ${quote(part.flag[1])}`] : []));
  const dir = fields.checkpoints.trim();
  if (dir) flags.push(`--checkpoint-dir ${quote(dir)}`);
  const all = ['yard submit', ...flags, `-- ${words(fields.command).map(quote).join(' ')}`];
  const line = all.join(' ');
  return line.length <= LINE ? line : all.join(' \\\n  ');
}

/** The same as a job file. */
export function asYaml(fields: JobFields, now: number): string {
  const list = words(fields.command);
  const lines = parts(fields, now).map(({ line: [name, value] }) => `${name}: ${yaml(value)}`);
  lines.push(list[0] === '/bin/sh' && list[1] === '-ec' ? `run: ${yaml(list[2]!)}` : `command: ${yaml(list)}`);
  if (fields.checkpoints.trim()) lines.push(`checkpoint: {dir: ${yaml(fields.checkpoints.trim())}}`);
  return `${lines.join('\n')}\n`;
}

/** Text is quoted always: a name such as `no` or `1e3` is then what it says. JSON is YAML. */
function yaml(value: Value): string {
  return Array.isArray(value) ? `[${value.map((one) => JSON.stringify(one)).join(', ')}]` : JSON.stringify(value);
}

function spaceless(text: string): string {
  return text.replace(/\s+/g, '');
}
