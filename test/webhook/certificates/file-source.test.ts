import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LogFields } from '../../../cluster/env.ts';
import { type CertificateFiles, certificateFiles, type FileSource, openFileSource } from '../../../webhook/certificates/file-source.ts';
import { virtualEnv } from '../../kit/virtual-env.ts';
import { pairOf } from './given.ts';

const hourMs = 3_600_000;

function given({ caFile }: { readonly caFile?: string } = {}) {
  const env = virtualEnv({});
  const files = new Map<string, string>();
  const watchers = new Map<string, () => void>();
  const log: string[] = [];
  const note = (message: string, fields?: LogFields) => void log.push(`${message} ${fields?.['problem'] ?? ''}`.trim());
  const port: CertificateFiles = {
    read: async (path) => {
      const text = files.get(path);
      if (text === undefined) throw new Error(`ENOENT: ${path}`);
      return text;
    },
    watch: (path, onEvent) => {
      watchers.set(path, onEvent);
      return () => watchers.delete(path);
    },
  };
  const put = (pair: { readonly cert?: string; readonly key?: string; readonly ca?: string }): void => {
    for (const [name, text] of Object.entries(pair)) files.set(name, text);
  };
  const open = (): FileSource =>
    openFileSource({
      env: { clock: env.clock, timers: env.timers, log: { debug: note, info: note, warn: note, error: note } },
      files: port,
      certFile: 'cert',
      keyFile: 'key',
      caFile,
    });
  return { env, files, watchers, log, put, open, nowMs: env.clock.nowMs() };
}

describe('a certificate from files', () => {
  it('is served unchanged, with its authority if there is a file', async () => {
    const { env, put, open, nowMs } = given({ caFile: 'ca' });
    const pair = pairOf({ nowMs });
    put(pair);
    const source = open();
    await env.settle();
    expect([source.current(), source.caBundle(), source.problem()]).toEqual([pair, pair.ca, undefined]);
    source.stop();
  });

  it('is read again soon after a file changes, and within ten seconds without a change event', async () => {
    const { env, put, open, watchers, nowMs } = given();
    put(pairOf({ nowMs }));
    const source = open();
    await env.settle();
    const changes: (string | undefined)[] = [];
    source.onChange(() => changes.push(source.current()?.cert));
    const [second, third] = [pairOf({ nowMs }), pairOf({ nowMs })];
    put(second);
    watchers.get('key')?.();
    await env.advance(200);
    expect(changes).toEqual([second.cert]);
    put(third);
    await env.advance(10_000);
    expect(changes).toEqual([second.cert, third.cert]);
    source.stop();
  });

  it('waits for the key if only the certificate exists', async () => {
    const { env, put, open, watchers, nowMs, log } = given();
    const [first, second] = [pairOf({ nowMs }), pairOf({ nowMs })];
    put(first);
    const source = open();
    await env.settle();
    put({ cert: second.cert });
    watchers.get('cert')?.();
    await env.advance(200);
    expect(source.current()?.cert).toBe(first.cert);
    expect(source.problem()).toBe('the certificate in cert and key cannot be served: the key does not match the certificate');
    put({ key: second.key });
    await env.advance(10_000);
    expect(source.current()).toEqual({ cert: second.cert, key: second.key });
    expect(source.problem()).toBeUndefined();
    expect(log.filter((line) => line.includes('cannot be served'))).toHaveLength(1);
    source.stop();
  });

  it.each([
    ['no PEM', { cert: 'x' }, 'the certificate is not PEM'],
    ['an empty key', { key: '' }, 'the key is not PEM, or is encrypted'],
    ['a certificate that has ended', pairOf({ nowMs: Date.UTC(2025, 0, 1) }), 'the certificate expired at 2025-01-02T00:00:00.000Z'],
    ['an authority of somebody else', { ca: pairOf({ nowMs: 0 }).ca }, 'the certificate was not issued by the given CA'],
  ])('keeps the previous one and reports the error if the files contain %s', async (_, broken, said) => {
    const { env, put, open, nowMs } = given({ caFile: 'ca' });
    const pair = pairOf({ nowMs });
    put(pair);
    const source = open();
    await env.settle();
    put(broken);
    await env.advance(60_000);
    expect(source.current()).toEqual(pair);
    expect(source.problem()).toContain(said);
    source.stop();
  });

  it('keeps the previous one while a file is missing', async () => {
    const { env, put, open, files, nowMs } = given();
    put(pairOf({ nowMs }));
    const source = open();
    await env.settle();
    files.delete('cert');
    await env.advance(hourMs);
    expect(source.current()).toBeDefined();
    expect(source.problem()).toContain('ENOENT: cert');
    source.stop();
  });

  it('is found if the files are created after the start', async () => {
    const { env, put, open, nowMs } = given();
    const source = open();
    await env.advance(60_000);
    expect(source.current()).toBeUndefined();
    put(pairOf({ nowMs }));
    await env.advance(10_000);
    expect(source.current()).toBeDefined();
    source.stop();
  });

  it('is not read after a stop', async () => {
    const { env, put, open, watchers, nowMs } = given();
    put(pairOf({ nowMs }));
    const source = open();
    await env.settle();
    source.stop();
    expect([env.timerCount(), watchers.size]).toEqual([0, 0]);
  });
});

it('the certificate follows a mounted Secret, whose links are swapped', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'files-'));
  const nowMs = Date.now();
  const write = (name: string): string => {
    const pair = pairOf({ nowMs });
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'tls.crt'), pair.cert);
    writeFileSync(join(folder, name, 'tls.key'), pair.key);
    symlinkSync(name, join(folder, '..next'));
    renameSync(join(folder, '..next'), join(folder, '..data'));
    return pair.cert;
  };
  const first = write('..1');
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(folder, name));
  const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const source = openFileSource({
    env: {
      clock: { nowMs: Date.now, monotonicMs: () => performance.now() },
      timers: {
        after: (delayMs, callback) => {
          const timer = setTimeout(callback, delayMs);
          return () => clearTimeout(timer);
        },
      },
      log: silent,
    },
    files: certificateFiles,
    certFile: join(folder, 'tls.crt'),
    keyFile: join(folder, 'tls.key'),
  });
  const changed = (): Promise<void> => new Promise((resolve) => void source.onChange(resolve));
  try {
    await changed();
    expect(source.current()?.cert).toBe(first);
    const next = changed();
    const second = write('..2');
    await next;
    expect(source.current()?.cert).toBe(second);
  } finally {
    source.stop();
    rmSync(folder, { recursive: true });
  }
});
