// A question to the person at the terminal, on standard error, so that a result in a pipe stays a result.
import { createInterface } from 'node:readline/promises';

/** The line that was typed, without the line break; empty when the input ended instead. */
export async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
  }
}
