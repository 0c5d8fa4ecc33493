import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { exitCodes, Failure, mostSevere } from '../../plugin/failure.ts';
import { reportEnding } from '../../plugin/process-exit.ts';

function ending(error: unknown, words: readonly string[] = []) {
  let text = '';
  const stderr = new Writable({
    write: (chunk, _encoding, done) => {
      text += chunk;
      done();
    },
  });
  const exitCode = reportEnding(error, { words, stderr, env: {} });
  return { exitCode, lines: text.trimEnd().split('\n') };
}

const refusal = new Failure({
  exitCode: exitCodes.refused,
  what: 'zone-b stays',
  why: 'zone-a shrank 2h ago',
  todo: 'wait until 19:58',
  code: 'RG9999',
});

describe('an unsuccessful exit', () => {
  it('names the error, its cause, and the next step', () => {
    expect(ending(refusal)).toEqual({
      exitCode: 5,
      lines: ['error: RG9999 zone-b stays', '  why: zone-a shrank 2h ago', '  do:  wait until 19:58'],
    });
  });

  it('collapses errors to 1 with --detailed-exitcode, but no verdict', () => {
    const missing = new Failure({ exitCode: exitCodes.notFound, what: 'x does not exist' });
    expect([ending(missing, ['plan', '--detailed-exitcode']).exitCode, ending(refusal, ['plan', '--detailed-exitcode']).exitCode]).toEqual([
      1, 5,
    ]);
    expect(ending(new TypeError('x'), ['plan', '--detailed-exitcode']).exitCode).toBe(1);
  });

  it('is a defect for every other error, with an id that does not depend on paths or messages', () => {
    const defect = (message: string) => ending(throwing(message));
    const [first = '', why, todo, ...others] = defect('zone-a').lines;
    expect(first).toMatch(/^error: kubectl rollout-group stopped because of a defect in itself \(crash [0-9a-f]{8}\)\.$/);
    expect([why, others]).toEqual(['  why: RangeError: zone-a', []]);
    expect(todo).toMatch(/^ {2}do: {2}report the crash id, the version \S+ and the command line; -v=1 adds/);
    expect(defect('zone-b').lines[0]).toBe(first);
    expect(ending(new TypeError('zone-a')).lines[0]).not.toBe(first);
    expect(defect('zone-a').exitCode).toBe(70);
  });

  it('shows the stack only on request', () => {
    for (const flag of ['-v=1', '-v', '--v=1']) expect(ending(throwing('x'), [flag]).lines.length).toBeGreaterThan(3);
    expect(ending('a text that was thrown').lines).toHaveLength(3);
  });
});

function throwing(message: string): RangeError {
  return new RangeError(message);
}

it('the most serious of several exit codes wins', () => {
  const inOrder = [130, 70, 3, 12, 11, 10, 6, 5, 9, 7, 4, 8, 2, 1, 0] as const;
  for (const [index, code] of inOrder.entries()) expect(mostSevere([...inOrder.slice(index)].reverse())).toBe(code);
  expect(mostSevere([])).toBe(0);
});

it('every exit code has a rank', () => {
  for (const code of Object.values(exitCodes)) expect(mostSevere([code])).toBe(code);
});
