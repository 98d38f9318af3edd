import { expect, test } from 'vitest';
import { Parser, type Frame } from './sse';

const STREAM = ': keep\n\nid: 7\nevent: change\ndata: {"a":1}\n\nid: 8\ndata: one\ndata: two\n\n:\n\ndata:bare\n\n';
const FRAMES = [
  { id: '7', event: 'change', data: '{"a":1}' },
  { id: '8', event: 'message', data: 'one\ntwo' },
  { id: null, event: 'message', data: 'bare' },
];

test('frames are the same wherever the stream is cut', () => {
  for (let size = 1; size <= STREAM.length; size++) {
    const parser = new Parser();
    const frames: Frame[] = [];
    for (let at = 0; at < STREAM.length; at += size) frames.push(...parser.push(STREAM.slice(at, at + size)));
    expect(frames, `pieces of ${size}`).toEqual(FRAMES);
  }
});

test('a frame that is not whole yet is not given', () => {
  const parser = new Parser();
  expect(parser.push('data: half')).toEqual([]);
  expect(parser.push('\n')).toEqual([]);
  expect(parser.push('\n').map((frame) => frame.data)).toEqual(['half']);
});
