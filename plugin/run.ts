// Runs an invocation that needs the parser, or completes a command line. Reports errors as an exit code.

export async function run(words: readonly string[]): Promise<number> {
  try {
    return await answer(words);
  } catch (error) {
    const { reportEnding } = await import('./process-exit.ts');
    return reportEnding(error, { words, stderr: process.stderr, env: process.env });
  }
}

async function answer(words: readonly string[]): Promise<number> {
  if (words[0] === '__complete') {
    await (await import('./candidates.ts')).printCompletion(words.slice(1));
    return 0;
  }
  const [{ runProgram }, { readStandardInput }] = await Promise.all([import('./program.ts'), import('./source/input.ts')]);
  return runProgram(words, {
    stdout: process.stdout,
    stderr: process.stderr,
    readStdin: readStandardInput(process.stdin),
    ...(process.stdin.isTTY === true
      ? {
          ask,
          keyboard: async (onKey: (key: string) => void) => (await import('./live/keyboard.ts')).openKeyboard(process.stdin, onKey),
        }
      : {}),
    env: process.env,
    cwd: process.cwd(),
    nowMs: Date.now,
  });
}

/** Asks on standard error, because standard output is for the result. Returns the typed line; empty at the end of input. */
async function ask(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const lines = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
  try {
    return await Promise.race([lines.question(question), ended]);
  } finally {
    lines.close();
  }
}
