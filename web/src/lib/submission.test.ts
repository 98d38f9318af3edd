import { expect, test } from 'vitest';
import { asCommand, asYaml, BLANK, quote, submission, words } from './submission';

test('a command is taken apart as a shell would', () => {
  expect(words('python train.py --name "a b" --x \'y z\'')).toEqual(['python', 'train.py', '--name', 'a b', '--x', 'y z']);
  expect(words('  a   b ')).toEqual(['a', 'b']);
  expect(words('a --x="b c"d \'\' e')).toEqual(['a', '--x=b cd', '', 'e']);
  expect(words('SEED=1 a')).toEqual(['/bin/sh', '-ec', 'SEED=1 a']);
  expect(() => words('a "b')).toThrow('not closed');
  expect(words('a b && c')).toEqual(['/bin/sh', '-ec', 'a b && c']);
  expect(['plain-1.py', 'a b', "it's"].map(quote)).toEqual(['plain-1.py', "'a b'", `'it'\\''s'`]);
});

test('form, command and file say the same', () => {
  const fields = { ...BLANK, name: 'no', command: 'python train.py "a b"', gpus: '4', kinds: ['a100', 'h100'], duration: '1 h 30 m', deadline: '6h', priority: '-2', tenant: 'vision', checkpoints: '/data/ck' };
  expect(submission(fields, 1000)).toEqual({
    command: ['python', 'train.py', 'a b'], name: 'no', gpus: 4, kinds: ['a100', 'h100'], duration_s: 5400, deadline: 22600, priority: -2, tenant: 'vision', checkpoint: { dir: '/data/ck' },
  });
  expect(asCommand(fields, 1000)).toBe("yard submit --name no --gpus 4 --kind a100,h100 --duration 1h30m --deadline 6h --priority -2 --tenant vision --checkpoint-dir /data/ck -- python train.py 'a b'".replace(/ (--)/g, ' \\\n  $1'));
  expect(asCommand({ ...BLANK, command: 'a b' }, 0)).toBe('yard submit --gpus 1 -- a b');
  expect(asYaml(fields, 1000)).toBe('name: "no"\ngpus: 4\nkinds: ["a100", "h100"]\nduration: "1h30m"\ndeadline: "6h"\npriority: -2\ntenant: "vision"\ncommand: ["python", "train.py", "a b"]\ncheckpoint: {dir: "/data/ck"}\n');
});

test('what is wrong is named', () => {
  expect(() => submission(BLANK, 0)).toThrow('Command');
  expect(() => submission({ ...BLANK, command: 'a', gpus: 'two' }, 0)).toThrow('Devices');
  expect(() => submission({ ...BLANK, command: 'a', duration: 'soon' }, 0)).toThrow('Duration');
  expect(() => submission({ ...BLANK, command: 'a', workdir: 'here' }, 0)).toThrow('Folder');
});
