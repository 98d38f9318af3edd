// Numbers and times as people read them.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

/** A span of time in two units at most: `45 s`, `3 min`, `2 h 05`, `4 d 3 h`. */
export function span(seconds: number): string {
  if (!Number.isFinite(seconds)) return '–';
  const s = Math.max(0, seconds);
  if (s < 1) return s < 0.05 ? '0 s' : `${s.toFixed(1)} s`;
  if (s < 100) return `${Math.round(s)} s`;
  if (s < HOUR) return `${Math.round(s / MINUTE)} min`;
  const whole = Math.round(s / MINUTE) * MINUTE;
  if (whole < DAY) return `${Math.floor(whole / HOUR)} h ${String(Math.floor((whole % HOUR) / MINUTE)).padStart(2, '0')}`;
  const hours = Math.round(s / HOUR);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** How much more or less: `+3 min`, `−2 h 05`; nothing where it is too little to say. */
export function signed(number: number, write: (size: number) => string = span): string {
  const text = write(Math.abs(number));
  return text === write(0) ? '' : `${number < 0 ? '−' : '+'}${text}`;
}

/** When, seen from now: `in 3 min`, `5 s ago`. */
export function ago(time: number, now: number): string {
  const away = time - now;
  if (Math.abs(away) < 1) return 'now';
  return away > 0 ? `in ${span(away)}` : `${span(-away)} ago`;
}

/** A time of day; with its date where it is not today. */
export function clock(time: number, now: number): string {
  const at = new Date(time * 1000);
  const hm = `${two(at.getHours())}:${two(at.getMinutes())}`;
  const today = new Date(now * 1000);
  if (at.toDateString() === today.toDateString()) return hm;
  return `${at.getFullYear() === today.getFullYear() ? '' : `${at.getFullYear()}-`}${two(at.getMonth() + 1)}-${two(at.getDate())} ${hm}`;
}

function two(number: number): string {
  return String(number).padStart(2, '0');
}

/** A count with thin blanks between thousands. */
export function count(number: number): string {
  return Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** A number with as many digits as say something. */
export function short(number: number): string {
  const size = Math.abs(number);
  if (size >= 10000) return count(number);
  if (size >= 100) return number.toFixed(0);
  if (size >= 10) return number.toFixed(1);
  if (size >= 0.01 || size === 0) return number.toFixed(2);
  return number.toExponential(1);
}

/** The same without zeros that say nothing, for axes. */
export function tidy(number: number): string {
  return short(number).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
}

/** A price: all devices of a cluster together cost 1. */
export function worth(price: number): string {
  return `${tidy(price * 100)} %`;
}

export function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function gib(mib: number): string {
  return mib >= 1024 ? `${(mib / 1024).toFixed(mib >= 102400 ? 0 : 1)} GiB` : `${mib} MiB`;
}

/** Names in the order in which people count: node-2 before node-10. */
export const byName: (a: string, b: string) => number = new Intl.Collator('en', { numeric: true }).compare;

/** Numbers with runs drawn together: `0-3,6`. */
export function runs(numbers: number[]): string {
  const parts: string[] = [];
  for (let at = 0; at < numbers.length;) {
    let end = at;
    while (numbers[end + 1] === numbers[end]! + 1) end++;
    parts.push(end - at > 1 ? `${numbers[at]}-${numbers[end]}` : numbers.slice(at, end + 1).join(','));
    at = end + 1;
  }
  return parts.join(',');
}

/** A place as the API writes it, `node[0,1,2,3]`, with runs drawn together. */
export function where(place: string): string {
  const match = /^(.*)\[([\d,]+)\]$/.exec(place);
  return match ? `${match[1]}[${runs(match[2]!.split(',').map(Number))}]` : place;
}

const ESCAPES = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007]*(?:\u0007|\u001b\\)/g;

/** A log without the codes that colour terminals. A carriage return begins the line anew, as a terminal would. */
export function plain(text: string): string {
  return text.replace(ESCAPES, '').replace(/\r\n/g, '\n').replace(/[^\n]*\r/g, '');
}
