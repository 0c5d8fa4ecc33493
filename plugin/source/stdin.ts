// Standard input: read once, to its end, within a limit.
import { exitCodes } from '../exit-code.ts';
import { Failure } from '../failure.ts';
import { maxFileBytes } from './limits.ts';

/** A reader that waits for standard input on its first call and gives the same text on every further one. */
export function readStandardInput(stdin: NodeJS.ReadStream): () => Promise<string> {
  let text: Promise<string> | undefined;
  return () => {
    text ??= readAll(stdin);
    return text;
  };
}

async function readAll(stdin: NodeJS.ReadStream): Promise<string> {
  if (stdin.isTTY) {
    throw new Failure({
      exitCode: exitCodes.usage,
      what: 'standard input is a terminal, and - was given as a source',
      todo: 'pipe a file into the command, or name a file or directory',
    });
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    bytes += chunk.length;
    if (bytes > maxFileBytes) throw tooLarge('standard input', bytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** A source that is larger than any policy or manifest should be. */
export function tooLarge(name: string, bytes: number): Failure {
  const mebibytes = (value: number) => Math.ceil(value / 1_048_576);
  return new Failure({
    exitCode: exitCodes.usage,
    what: `${name} has more than ${mebibytes(maxFileBytes)} MiB`,
    why: `at least ${mebibytes(bytes)} MiB were found, and one source is read into memory as a whole`,
    todo: 'name only the directories that hold policies and manifests',
  });
}
