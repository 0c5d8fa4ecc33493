// Serves a certificate from files, for example a mounted Secret, and reloads them when they change.
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { watchDirectory } from '../../cluster/connection/process-env.ts';
import { messageOf } from '../../policies/error-message.ts';
import type { WebhookEnv } from '../env.ts';
import { authorityOf, isSameBundle, type Pair, readAuthorities, readPair } from './pair.ts';
import { type CertificateSource, Listeners, type TlsMaterial } from './source.ts';

/** Poll interval in addition to file watches: network file systems send no events. controller-runtime has the same interval. */
const pollMs = 10_000;
/** Delay after a file event, because other tools write certificate and key one after the other. */
const settleMs = 200;

export interface CertificateFiles {
  /** Rejects when the file cannot be read. */
  readonly read: (path: string) => Promise<string>;
  /** Calls `onEvent` when the file may have changed. Returns a function that stops the watch. Never throws: polling finds changes too. */
  readonly watch: (path: string, onEvent: () => void) => () => void;
}

interface FileSourceOptions {
  readonly env: Pick<WebhookEnv, 'clock' | 'timers' | 'log'>;
  readonly files: CertificateFiles;
  readonly certFile: string;
  readonly keyFile: string;
  /** The file with the CA certificate, if configured. */
  readonly caFile?: string | undefined;
}

export interface FileSource extends CertificateSource {
  /** Reads the files now. Never rejects. */
  readonly refresh: () => Promise<void>;
  readonly stop: () => void;
}

interface Loaded {
  readonly pair: Pair;
  readonly ca: string | undefined;
}

/** Starts at once. Never throws; retries failures without limit. */
export function openFileSource({ env, files, certFile, keyFile, caFile }: FileSourceOptions): FileSource {
  const listeners = new Listeners();
  let loaded: Loaded | undefined;
  let problem: string | undefined;
  let isStopped = false;
  let cancelTimer = (): void => undefined;

  const load = async (): Promise<void> => {
    try {
      const [cert, key, ca] = await Promise.all([
        files.read(certFile),
        files.read(keyFile),
        caFile === undefined ? undefined : files.read(caFile),
      ]);
      const next = checked({ cert, key, ca }, loaded, env.clock.nowMs());
      if (isStopped) return;
      if (problem !== undefined) env.log.info('the certificate files are valid again', { certFile, keyFile });
      problem = undefined;
      take(next);
    } catch (error) {
      if (!isStopped) failed(error);
    }
  };
  const take = (next: Loaded): void => {
    const isSame =
      loaded !== undefined && loaded.pair.cert === next.pair.cert && loaded.pair.key === next.pair.key && loaded.ca === next.ca;
    if (isSame) return;
    const notAfter = new Date(next.pair.notAfterMs).toISOString();
    env.log.info('loaded the certificate from its files', { certFile, notAfter, isFirst: loaded === undefined });
    loaded = next;
    const failure = listeners.call();
    if (failure !== undefined) env.log.error('a listener of the certificate failed', { error: String(failure) });
  };
  const failed = (error: unknown): void => {
    const reason = messageOf(error);
    const message = `the certificate in ${certFile} and ${keyFile} cannot be served: ${reason}`;
    if (problem === message) return;
    problem = message;
    const isOldServed = loaded !== undefined;
    env.log.error('the certificate files cannot be served', { certFile, keyFile, problem: reason, isOldServed });
  };

  const poll = async (): Promise<void> => {
    await load();
    plan(pollMs);
  };
  const plan = (delayMs: number): void => {
    cancelTimer();
    if (!isStopped) cancelTimer = env.timers.after(delayMs, () => void poll());
  };
  const paths = [...new Set([certFile, keyFile, ...(caFile === undefined ? [] : [caFile])])];
  const watches = paths.map((path) => files.watch(path, () => plan(settleMs)));
  void poll();
  return {
    current: () => (loaded === undefined ? undefined : servedOf(loaded)),
    caBundle: () => loaded?.ca,
    onChange: listeners.add,
    problem: () => problem,
    refresh: load,
    stop: () => {
      isStopped = true;
      cancelTimer();
      for (const stop of watches) stop();
    },
  };
}

function servedOf({ pair, ca }: Loaded): TlsMaterial {
  return { cert: pair.cert, key: pair.key, ...(ca === undefined ? {} : { ca }) };
}

/** Returns the content of the files. Throws Error if it is unusable, or if its certificate expired and the certificate in use did not. */
function checked(
  { cert, key, ca }: { readonly cert: string; readonly key: string; readonly ca: string | undefined },
  before: Loaded | undefined,
  nowMs: number,
): Loaded {
  const pair = readPair({ cert, key });
  if (ca !== undefined && authorityOf(pair, readAuthorities(ca)) === undefined) {
    throw new Error('the certificate was not issued by the given CA');
  }
  const isSame = before !== undefined && isSameBundle(before.pair.cert, cert);
  // An expired certificate does not replace a valid one.
  if (!isSame && pair.notAfterMs <= nowMs && before !== undefined && before.pair.notAfterMs > nowMs) {
    throw new Error(`the certificate expired at ${new Date(pair.notAfterMs).toISOString()}`);
  }
  return { pair, ca };
}

/** The file system. `watch` watches the directory, because the kubelet updates a mounted Secret through a link next to the file. */
export const certificateFiles: CertificateFiles = {
  read: (path) => readFile(path, 'utf8'),
  watch: (path, onEvent) => watchDirectory(dirname(path), onEvent),
};
