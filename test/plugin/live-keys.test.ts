// The keys of a live screen: what they change, what they ask for, and how the terminal is left.
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { type Keyboard, openKeyboard } from '../../plugin/live/keyboard.ts';
import { answered, commandText, type KeyState, keyBar, press } from '../../plugin/live/keys.ts';
import { runProgram } from '../../plugin/program.ts';
import { type FakeApiServer, fakeApiServer } from './api-server.ts';
import { rolling, waiting } from './live-kit.ts';
import { publishedObject } from './live-objects.ts';
import { look } from './plan-kit.ts';

function pressed(keys: readonly string[], decision: PublishedDecision = rolling, start: KeyState = { view: 'first' }) {
  return keys.reduce<ReturnType<typeof press>>(({ state }, key) => press(state, key, decision), { state: start });
}

describe('a key', () => {
  it.each([
    ['d', 'second'],
    ['e', 'explain'],
    ['?', 'help'],
  ])('%s toggles a view', (key, view) => {
    expect(pressed([key]).state.view).toBe(view);
    expect(pressed([key, key]).state.view).toBe('first');
    expect(pressed([key, 'escape']).state).toEqual({ view: 'first' });
  });

  it('selects one zone after another, then all zones', () => {
    expect([1, 2, 3, 4].map((count) => pressed(Array.from({ length: count }, () => 'tab')).state.zone)).toEqual(['a', 'b', 'c', undefined]);
  });

  it('quits, and Ctrl-C works in every state', () => {
    expect(pressed(['q']).effect).toBe('quit');
    for (const keys of [[], ['p'], ['p', 'y'], ['e']]) expect(pressed([...keys, 'interrupt']).effect).toBe('interrupt');
  });

  it('shows the exact command first and runs it only after y', () => {
    const { state, effect } = pressed(['tab', 'tab', 'p']);
    expect([effect, state.asked === undefined ? '' : commandText(state.asked)]).toEqual([
      undefined,
      'kubectl rollout-group pause mimir/ingester --zone b',
    ]);
    expect(keyBar(state, 'details', look({ columns: 80 })).join(' ')).toContain('press y to run this');
    expect(press(state, 'y', rolling).effect).toEqual({ verb: 'pause', group: 'mimir/ingester', zone: 'b' });
    for (const other of ['n', 'enter', 'q', 'p', 'tab', 'escape'])
      expect(press(state, other, rolling)).toEqual({ state: { view: 'first', zone: 'b', message: 'nothing was changed' } });
  });

  it('runs no second command while one is running, and shows its result', () => {
    const { state } = pressed(['r', 'y']);
    for (const key of ['y', 'p', 'q']) expect(press(state, key, rolling)).toEqual({ state });
    expect(answered(state, 'mimir/ingester resumed')).toEqual({ view: 'first', message: 'mimir/ingester resumed' });
  });

  it('approves the shown wave by name, and only if it waits', () => {
    expect(pressed(['a', 'y'], waiting).effect).toEqual({ verb: 'approve', group: 'mimir/ingester', wave: 'rest' });
    expect(pressed(['a'], rolling).state).toEqual({ view: 'first', message: 'no wave or rule waits for an approval' });
    const [wait] = waiting.waits;
    if (wait === undefined) throw new Error('nothing is waited for');
    const ofRule = { ...wait, rule: 'calm/asks', digest: 'd' };
    expect(pressed(['a', 'y'], { ...waiting, waits: [ofRule] }).effect).toEqual({
      verb: 'approve',
      group: 'mimir/ingester',
      rule: 'calm/asks',
    });
    expect(pressed(['a'], { ...waiting, waits: [wait, ofRule] }).state.message).toContain('more than one approval is missing');
  });
});

class FakeInput extends EventEmitter {
  readonly modes: boolean[] = [];
  isFlowing = false;
  setRawMode(isRaw: boolean): void {
    this.modes.push(isRaw);
  }
  resume(): void {
    this.isFlowing = true;
  }
  pause(): void {
    this.isFlowing = false;
  }
}

describe('the keyboard', () => {
  it('delivers single keys and ignores pasted text', () => {
    const input = new FakeInput();
    const keys: string[] = [];
    const { release } = openKeyboard(input, (key) => keys.push(key));
    for (const text of ['q', '\t', '\u001b', '\u001b[A', 'py', 'p\ny', 'p\u0003', 'é', '\u001a']) input.emit('data', Buffer.from(text));
    release();
    expect(keys).toEqual(['q', 'tab', 'escape', 'interrupt', 'é', 'suspend']);
  });

  it('restores the terminal once, also when the process exits', () => {
    const input = new FakeInput();
    const listeners = () => ['exit', 'SIGHUP', 'SIGQUIT'].map((event) => process.listenerCount(event));
    const before = listeners();
    const { release, capture } = openKeyboard(input, () => undefined);
    const [atExit] = process.listeners('exit').slice(-1);
    expect([input.modes, input.isFlowing, listeners()]).toEqual([[true], true, before.map((count) => count + 1)]);
    atExit?.(1);
    release();
    expect([input.modes, input.isFlowing, input.listenerCount('data'), listeners()]).toEqual([[true, false], false, 0, before]);
    capture();
    release();
    expect(input.modes).toEqual([true, false, true, false]);
  });
});

/** None of our kinds but intents. */
const kinds = ['rolloutgroups', 'rolloutpolicies', 'rolloutexceptions', 'rolloutruns', 'zoneawarepoddisruptionbudgets'];

interface Watched {
  readonly input: FakeInput;
  readonly press: (key: string) => void;
  /** Resolves as soon as the screen shows the text. */
  readonly shows: (text: string) => Promise<void>;
  readonly ended: Promise<number>;
  readonly written: () => string;
}

function watching(server: FakeApiServer, words: string, env: Readonly<Record<string, string>> = {}): Watched {
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 100, rows: 40 });
  const stderr = new PassThrough();
  const input = new FakeInput();
  let text = '';
  const waits = new Map<string, () => void>();
  stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    for (const [wanted, resolve] of waits) if (text.includes(wanted)) resolve();
  });
  const ended = runProgram([...words.split(' '), '--server', server.url, '-n', 'mimir'], {
    stdout: stdout as unknown as NodeJS.WriteStream,
    stderr: stderr as unknown as NodeJS.WriteStream,
    readStdin: async () => '',
    keyboard: async (onKey): Promise<Keyboard> => openKeyboard(input, onKey),
    env: { LANG: 'C.UTF-8', TERM: 'xterm', ...env },
    cwd: process.cwd(),
    nowMs: Date.now,
  });
  return {
    input,
    press: (key) => {
      text = '';
      input.emit('data', Buffer.from(key));
    },
    shows: (wanted) => (text.includes(wanted) ? Promise.resolve() : new Promise((resolve) => waits.set(wanted, resolve))),
    ended,
    written: () => text,
  };
}

describe('the live screen', () => {
  const published = publishedObject({ ...rolling, decidedMs: Date.now() });

  it('handles keys, asks for confirmation and restores the terminal', async () => {
    const server = await fakeApiServer([published], { missing: kinds });
    const screen = watching(server, 'status ingester');
    await screen.shows('q quit  d details');
    screen.press('d');
    await screen.shows('STATE');
    screen.press('e');
    await screen.shows('blocked by 1 of 13 rules');
    screen.press('p');
    await screen.shows('kubectl rollout-group pause mimir/ingester   press y to run this');
    expect(server.writes).toEqual([]);
    screen.press('y');
    await screen.shows('mimir/ingester paused');
    expect(server.writes.length).toBe(1);
    screen.press('q');
    expect(await screen.ended).toBe(130);
    expect(screen.input.modes.at(-1)).toBe(false);
    // The last frame stays, without the keys, which nothing listens to any more.
    expect(screen.written().slice(screen.written().lastIndexOf('mimir/ingester'))).not.toContain('q quit');
  });

  it('exits with 0 after q without a condition, and with 130 after Ctrl-C', async () => {
    const server = await fakeApiServer([published], { missing: kinds });
    const quit = watching(server, 'get ingester -w');
    await quit.shows('q quit  d summary');
    quit.press('q');
    expect(await quit.ended).toBe(0);
    const interrupted = watching(server, 'get -w');
    await interrupted.shows('q quit');
    interrupted.press('\u0003');
    expect(await interrupted.ended).toBe(130);
    expect([...quit.input.modes, ...interrupted.input.modes]).toEqual([true, false, true, false]);
  });

  it('restores the terminal at the end, and does not change it for a condition without its zone', async () => {
    const server = await fakeApiServer([published], { missing: kinds });
    const over = watching(server, 'status ingester --timeout 50ms');
    expect(await over.ended).toBe(7);
    const wrong = watching(server, 'status ingester --for=zone=x');
    await expect(wrong.ended).rejects.toThrow('no zone x');
    expect([over.input.modes, wrong.input.modes]).toEqual([[true, false], []]);
  });

  it.each([{ CI: 'true' }, { TERM: 'dumb' }])('ignores keys if it does not draw: %o', async (env) => {
    const server = await fakeApiServer([published], { missing: kinds });
    const lines = watching(server, 'status ingester --timeout 50ms', env);
    expect(await lines.ended).toBe(7);
    expect(lines.input.modes).toEqual([]);
  });

  it('escapes control characters from the cluster', async () => {
    const pods = rolling.pods.map((pod) => ({ ...pod, reason: 'x\u001b[2Jy' }));
    const server = await fakeApiServer([publishedObject({ ...rolling, pods, decidedMs: Date.now() })], { missing: kinds });
    const screen = watching(server, 'get ingester -w --no-color');
    onTestFinished(() => screen.press('q'));
    await screen.shows('\\u001b[2Jy');
    expect(screen.written()).not.toContain('\u001b[2J');
    screen.press('q');
    await screen.ended;
  });
});
