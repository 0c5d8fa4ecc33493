// Asks the user a question on standard error: standard output stays free for the result.
import { createInterface } from 'node:readline/promises';

/** Returns the typed line without the line break; empty at the end of input. */
export async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
  }
}
