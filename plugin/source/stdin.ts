// Reads streams to their end within a limit; standard input only once.
import type { Readable } from 'node:stream';
import { nothingPiped, tooLarge } from './failures.ts';
import { maxFileBytes } from './limits.ts';

/** Returns a reader that waits for standard input on its first call and returns the same text on every call. */
export function readStandardInput(stdin: Readable & { readonly isTTY?: boolean }): () => Promise<string> {
  let text: Promise<string> | undefined;
  return () => {
    text ??= stdin.isTTY ? Promise.reject(nothingPiped()) : readLimited(stdin, 'standard input');
    return text;
  };
}

/** Returns the whole stream as UTF-8. */
export async function readLimited(stream: Readable, name: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > maxFileBytes) throw tooLarge(name, bytes, maxFileBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
