// Runs the server and the client of a load in separate processes. Both run this script; an argument chooses the part.
import { type ChildProcess, fork } from 'node:child_process';
import { driveLoad, type LoadOptions, type LoadReport, loadCount, restCount } from './webhook-client.ts';
import { type ServerOptions, type ServerReport, startLoadServer } from './webhook-server.ts';

/** First argument of a process that is one part of a load. */
export const partWord = '--webhook-part';

export type Load = Omit<LoadOptions, 'port' | 'ca' | 'areJudged'> & Pick<ServerOptions, 'kind'>;

export interface Measured {
  readonly server: ServerReport;
  readonly client: LoadReport;
}

type Part = { readonly part: 'server'; readonly options: ServerOptions } | { readonly part: 'client'; readonly options: LoadOptions };

type Told =
  | { readonly kind: 'listening'; readonly port: number; readonly ca: readonly string[] }
  | { readonly kind: 'rotate' }
  | { readonly kind: 'resting' }
  | { readonly kind: 'looked' }
  | { readonly kind: 'server'; readonly report: ServerReport }
  | { readonly kind: 'client'; readonly report: LoadReport };

/** Added to the duration of the load: time to start, to stop and to answer late. */
const marginMs = 90_000;

/** Runs one load in two processes and changes the certificate in the middle. Rejects if a process fails or does not end. */
export async function measureLoad({ kind, ...load }: Load): Promise<Measured> {
  const { scenario, seconds } = load;
  const limitMs = seconds * 2000 + marginMs;
  const server = startPart({ part: 'server', options: { kind, scenario, count: loadCount(load) } }, limitMs);
  try {
    const { port, ca } = await server.told('listening');
    const client = startPart({ part: 'client', options: { ...load, port, ca, areJudged: kind === 'webhook' } }, limitMs);
    try {
      // The certificates that the client has seen show whether the change worked.
      client.told('rotate').then(
        () => server.tell('rotate'),
        () => undefined,
      );
      for (let rest = 0; rest < restCount; rest += 1) {
        await client.told('resting');
        server.tell('look');
        await server.told('looked');
        client.tell('goOn');
      }
      const { report } = await client.told('client');
      server.tell('finish');
      return { client: report, server: (await server.told('server')).report };
    } finally {
      client.kill();
    }
  } finally {
    server.kill();
  }
}

interface Running {
  /** Removes and returns the next message of the kind. Rejects if the process ends before, or takes too long. */
  readonly told: <Kind extends Told['kind']>(kind: Kind) => Promise<Extract<Told, { kind: Kind }>>;
  readonly tell: (what: 'rotate' | 'look' | 'goOn' | 'finish') => void;
  readonly kill: () => void;
}

function startPart(part: Part, limitMs: number): Running {
  const script = process.argv[1];
  if (script === undefined) throw new Error('there is no script to start again');
  const child: ChildProcess = fork(script, [partWord, JSON.stringify(part)], { execArgv: ['--expose-gc'] });
  const seen: Told[] = [];
  const waiting = new Set<() => void>();
  let ended: string | undefined;
  const wake = (): void => {
    for (const look of [...waiting]) look();
  };
  const end = (why: string): void => {
    ended ??= `the ${part.part} of the load ${why}`;
    wake();
  };
  child.on('message', (message) => {
    // Only this script writes to the channel.
    seen.push(message as Told);
    wake();
  });
  child.on('error', ({ message }) => end(`failed: ${message}`));
  child.once('exit', (code, signal) => end(`ended with ${code ?? signal}`));
  const limit = setTimeout(() => end(`did not come to an end in ${limitMs / 1000} s`), limitMs);
  return {
    told: (kind) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = seen.find((message): message is Extract<Told, { kind: typeof kind }> => message.kind === kind);
          if (found !== undefined) {
            seen.splice(seen.indexOf(found), 1);
            resolve(found);
          } else if (ended !== undefined) reject(new Error(ended));
          else return;
          waiting.delete(look);
        };
        waiting.add(look);
        look();
      }),
    tell: (what) => void child.send(what),
    kill: () => {
      clearTimeout(limit);
      child.kill('SIGKILL');
    },
  };
}

/** Runs the part that the second argument names, until the parent process ends it or is gone. */
export async function runPart(text: string): Promise<void> {
  process.once('disconnect', () => process.exit(1));
  const tell = (message: Told): void => void process.send?.(message);
  // Written by `startPart`.
  const told = JSON.parse(text) as Part;
  if (told.part === 'client') {
    let goOn = (): void => undefined;
    process.on('message', (message) => {
      if (message === 'goOn') goOn();
    });
    const rest = (): Promise<void> =>
      new Promise((resolve) => {
        goOn = resolve;
        tell({ kind: 'resting' });
      });
    const report = await driveLoad(told.options, { rotate: () => tell({ kind: 'rotate' }), rest });
    tell({ kind: 'client', report });
    return;
  }
  const server = await startLoadServer(told.options);
  process.on('message', (message) => {
    if (message === 'rotate') server.rotate();
    if (message === 'look') void server.look().then(() => tell({ kind: 'looked' }));
    if (message === 'finish') void server.finish().then((report) => tell({ kind: 'server', report }));
  });
  const { port, ca } = server;
  tell({ kind: 'listening', port, ca });
}
