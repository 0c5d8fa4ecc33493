import { describe, expect, it } from 'vitest';
import { createLog, type LogFormat, type LogLevel } from '../../agent/process/log.ts';
import { logProblems } from '../../agent/process/serve-webhook.ts';
import { virtualEnv } from '../kit/virtual-env.ts';

const nowMs = Date.UTC(2026, 10, 21, 20, 0, 0, 5);

function logged(format: LogFormat, write: (log: ReturnType<typeof createLog>) => void, level: LogLevel = 'debug'): string {
  let text = '';
  write(createLog({ format, level, clock: { nowMs: () => nowMs }, write: (line) => (text += line) }));
  return text;
}

describe('logfmt', () => {
  it('begins with the instant, the level and the message', () => {
    expect(logged('logfmt', (log) => log.info('turn ended', { group: 'ingester', durationMs: 12, isLeader: true, none: undefined }))).toBe(
      'ts=2026-11-21T20:00:00.005Z level=info msg="turn ended" group=ingester durationMs=12 isLeader=true\n',
    );
  });

  it.each([
    ['plain-1.2/3:x', 'plain-1.2/3:x'],
    ['', ''],
    ['two words', '"two words"'],
    ['a=b', '"a=b"'],
    ['say "no"', String.raw`"say \"no\""`],
    ['back\\slash', String.raw`"back\\slash"`],
    ['one\ntwo\tthree', String.raw`"one\ntwo\tthree"`],
    ['\u001b[31mred', String.raw`"\u001b[31mred"`],
    ['\u007f\u0085\u202e', String.raw`"\u007f\u0085\u202e"`],
    ['zürich', 'zürich'],
  ])('writes %j as %s', (value, written) => {
    expect(logged('logfmt', (log) => log.warn('m', { value }))).toBe(`ts=2026-11-21T20:00:00.005Z level=warn msg=m value=${written}\n`);
  });

  it('prevents a key from breaking a line or hiding another key', () => {
    expect(logged('logfmt', (log) => log.error('m', { 'a b=\n': 1, msg: 'other', level: 'x', ts: 't' }))).toBe(
      'ts=2026-11-21T20:00:00.005Z level=error msg=m a_b__=1 msg_=other level_=x ts_=t\n',
    );
  });
});

describe('JSON', () => {
  it('has the same keys in the same order', () => {
    expect(logged('json', (log) => log.debug('turn ended', { group: 'a "b"', count: 1 }))).toBe(
      `{"ts":"2026-11-21T20:00:00.005Z","level":"debug","msg":"turn ended","group":"a \\"b\\"","count":1}\n`,
    );
  });

  it('escapes control characters of a terminal', () => {
    const line = logged('json', (log) => log.info('m', { value: '\u001b]0;x\u0007\u009b\u202e\n' }));
    expect(line).toContain(String.raw`"\u001b]0;x\u0007\u009b\u202e\n"`);
    expect(JSON.parse(line)).toMatchObject({ value: '\u001b]0;x\u0007\u009b\u202e\n' });
  });
});

describe('the log', () => {
  it.each([
    ['debug', 4],
    ['info', 3],
    ['warn', 2],
    ['error', 1],
  ] as const)('writes at %s each line of this level or above', (level, count) => {
    const text = logged(
      'logfmt',
      (log) => {
        for (const one of ['debug', 'info', 'warn', 'error'] as const) log[one]('m');
      },
      level,
    );
    expect(text.split('\n').filter((line) => line !== '')).toHaveLength(count);
  });

  it('redacts credentials and cuts long values', () => {
    const text = logged('logfmt', (log) => {
      log.info('m', { url: 'http://user:secret@proxy:3128/x', header: 'Bearer abcdefgh.ijkl-mnop', long: 'y'.repeat(5000) });
    });
    expect(text).not.toMatch(/secret|abcdefgh/);
    expect(text).toContain('url=http://***@proxy:3128/x header="Bearer ***"');
    expect(text).toContain('y... (904 characters more)');
  });
});

it('problems of the webhooks are logged once when they start and once when they end', async () => {
  const env = virtualEnv();
  const told: string[] = [];
  const silent = () => undefined;
  let problems: readonly string[] = [];
  const stop = logProblems(
    {
      timers: env.timers,
      log: {
        debug: silent,
        error: silent,
        info: (message) => void told.push(message),
        warn: (_message, fields) => void told.push(String(fields?.['problem'])),
      },
    },
    () => problems,
  );
  await env.advance(120_000);
  problems = ['the certificate ends soon'];
  await env.advance(180_000);
  problems = ['the certificate ends soon', 'configuration x cannot be written'];
  await env.advance(120_000);
  problems = [];
  await env.advance(120_000);
  expect(told).toEqual(['the certificate ends soon', 'configuration x cannot be written', 'webhook problems resolved']);
  stop();
  expect(env.timerCount()).toBe(0);
});
