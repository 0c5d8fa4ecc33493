// Serves a certificate from files, such as those of a mounted Secret, and follows them when they are replaced.
import { type FSWatcher, watch as watchFiles } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf } from '../../policies/error-message.ts';
import type { WebhookEnv } from '../env.ts';
import { authorityOf, isSameBundle, type Pair, readAuthorities, readPair } from './pair.ts';
import { type CertificateSource, Listeners, type ServedCertificate, type SourceProblem } from './source.ts';

/** As often as controller-runtime: a watch of files may be silent, as on network file systems. */
const pollMs = 10_000;
/** Certificate and key are written one after the other. */
const settleMs = 200;

/** Files as the source reaches them. */
export interface CertificateFiles {
  /** Rejects when the file cannot be read. */
  readonly read: (path: string) => Promise<string>;
  /** Calls back when the file may have changed. The answer stops it. Never throws: without a watch there is still the poll. */
  readonly watch: (path: string, onEvent: () => void) => () => void;
}

interface FileSourceOptions {
  readonly env: Pick<WebhookEnv, 'clock' | 'timers' | 'log'>;
  readonly files: CertificateFiles;
  readonly certFile: string;
  readonly keyFile: string;
  /** The authority, when it is known. */
  readonly caFile?: string | undefined;
}

export interface FileSource extends CertificateSource {
  /** Why the files cannot be served; then what they held before is. Absent while all is well. */
  readonly problem: () => SourceProblem | undefined;
  /** Reads the files now. Never rejects. */
  readonly refresh: () => Promise<void>;
  readonly stop: () => void;
}

interface Loaded {
  readonly pair: Pair;
  readonly ca: string | undefined;
}

/** Starts at once, never throws, and never gives up. */
export function openFileSource({ env, files, certFile, keyFile, caFile }: FileSourceOptions): FileSource {
  const listeners = new Listeners();
  let loaded: Loaded | undefined;
  let problem: SourceProblem | undefined;
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
      if (problem !== undefined) env.log.info('the files of the certificate are in order again', { certFile, keyFile });
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
    env.log.info('the certificate was read from its files', { certFile, notAfter, isFirst: loaded === undefined });
    loaded = next;
    const failure = listeners.call();
    if (failure !== undefined) env.log.error('a listener of the certificate failed', { error: String(failure) });
  };
  const failed = (error: unknown): void => {
    const reason = messageOf(error);
    const message = `the certificate in ${certFile} and ${keyFile} cannot be served: ${reason}`;
    if (problem?.message === message) return;
    problem = { message, sinceMs: problem?.sinceMs ?? env.clock.nowMs() };
    env.log.error('the files of the certificate cannot be served', {
      certFile,
      keyFile,
      problem: reason,
      isOldServed: loaded !== undefined,
    });
  };

  const look = async (): Promise<void> => {
    await load();
    plan(pollMs);
  };
  const plan = (delayMs: number): void => {
    cancelTimer();
    if (!isStopped) cancelTimer = env.timers.after(delayMs, () => void look());
  };
  const paths = [...new Set([certFile, keyFile, ...(caFile === undefined ? [] : [caFile])])];
  const watches = paths.map((path) => files.watch(path, () => plan(settleMs)));
  void look();
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

function servedOf({ pair, ca }: Loaded): ServedCertificate {
  return { cert: pair.cert, key: pair.key, ...(ca === undefined ? {} : { ca }) };
}

/** Throws Error that says what is wrong with the files, when what was loaded before is better. */
function checked(
  { cert, key, ca }: { readonly cert: string; readonly key: string; readonly ca: string | undefined },
  before: Loaded | undefined,
  nowMs: number,
): Loaded {
  const pair = readPair({ cert, key });
  if (ca !== undefined && authorityOf(pair, readAuthorities(ca)) === undefined) {
    throw new Error('the certificate was not issued by the given authority');
  }
  const isSame = before !== undefined && isSameBundle(before.pair.cert, cert);
  // One that has expired is no worse than none, and than another that has expired too.
  if (!isSame && pair.notAfterMs <= nowMs && before !== undefined && before.pair.notAfterMs > nowMs) {
    throw new Error(`the certificate expired at ${new Date(pair.notAfterMs).toISOString()}`);
  }
  return { pair, ca };
}

/** The file system. Watches the folder of a file: in a mounted Secret a file is a link, and what changes is a link beside it. */
export const certificateFiles: CertificateFiles = {
  read: (path) => readFile(path, 'utf8'),
  watch: (path, onEvent) => {
    let watcher: FSWatcher | undefined;
    try {
      watcher = watchFiles(dirname(path), { persistent: false }, () => onEvent());
      watcher.on('error', () => watcher?.close());
    } catch {
      // Too many watches, or no such folder yet: the poll finds it.
    }
    return () => watcher?.close();
  },
};
