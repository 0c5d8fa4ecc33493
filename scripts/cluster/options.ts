// The command line of `npm run cluster`.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

export const usage = `Starts a control plane on this machine with an example group, the agent and its webhooks.

Usage
  npm run cluster [-- [EXAMPLE] [flags]]

Arguments
  EXAMPLE  A directory with manifests/ and policies/. Default: examples/quick-start.

Flags
  --ready <seconds>  Time from the start of a pod until it is Ready. Default: 5.
  --break            Pods with an image of EXAMPLE/manifests-next never become Ready.
                     Without this flag, the same is true for each image whose name contains "broken".
  -h, --help         Show help.
`;

export interface ClusterOptions {
  readonly example: string;
  readonly readySeconds: number;
  readonly isBroken: boolean;
}

/** Returns undefined if the command line requests help. Throws an Error for an invalid command line. */
export function readOptions(args: readonly string[]): ClusterOptions | undefined {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      ready: { type: 'string', default: '5' },
      break: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const [example = 'examples/quick-start', ...others] = positionals;
  if (others.length > 0) throw new Error(`one example at a time, not ${positionals.join(' and ')}`);
  for (const folder of ['manifests', 'policies', ...(values.break ? ['manifests-next'] : [])]) {
    if (!existsSync(join(example, folder))) throw new Error(`${example} has no directory ${folder}`);
  }
  const readySeconds = Number(values.ready.replace(/s$/, ''));
  if (!(readySeconds > 0 && readySeconds <= 3600)) throw new Error(`--ready ${values.ready} is not a number of seconds from 1 to 3600`);
  return { example, readySeconds, isBroken: values.break };
}
