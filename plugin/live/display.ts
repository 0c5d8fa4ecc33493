// A screen that is redrawn in place, where the terminal can do that; everywhere else there is none, and lines are written.
import type { CommandContext } from '../context.ts';

export interface Display {
  readonly draw: (lines: readonly string[]) => void;
  /** Leaves the last frame where it stands. */
  readonly done: () => void;
}

/** undefined in pipes, in CI and on terminals that cannot move the cursor: what is drawn there would fill a log. */
export async function openDisplay({ stdout, env }: CommandContext): Promise<Display | undefined> {
  const canRedraw = stdout.isTerminal && (env['CI'] ?? '') === '' && env['TERM'] !== 'dumb';
  if (!canRedraw || !isTerminalStream(stdout.raw)) return undefined;
  const { createLogUpdate } = await import('log-update');
  const terminal = stdout.raw;
  // The cursor stays visible, so that there is nothing to restore when the process is killed.
  const draw = createLogUpdate(terminal, { showCursor: true });
  return { draw: (lines) => draw(fitted(lines, terminal.rows || 24, stdout.glyphs.ellipsis).join('\n')), done: () => draw.done() };
}

function isTerminalStream(stream: unknown): stream is NodeJS.WriteStream {
  return typeof stream === 'object' && stream !== null && 'isTTY' in stream && stream.isTTY === true;
}

/** What does not fit would be drawn again and again below one another. */
function fitted(lines: readonly string[], rows: number, ellipsis: string): readonly string[] {
  const room = Math.max(2, rows - 1);
  return lines.length <= room ? lines : [...lines.slice(0, room - 1), `${ellipsis} ${lines.length - room + 1} more lines`];
}
