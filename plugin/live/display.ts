// A screen that is redrawn in place, where the terminal can do that; everywhere else there is none, and lines are written.
import type { CommandContext } from '../context.ts';
import { withoutControls } from '../output/terminal.ts';

interface Display {
  /** `footer` stays in sight, however long the rest is. */
  readonly draw: (lines: readonly string[], footer?: readonly string[]) => void;
  /** Leaves the last frame where it stands, without its footer. */
  readonly done: () => void;
}

/** undefined in pipes, in CI and on terminals that cannot move the cursor: what is drawn there would fill a log. */
export async function openDisplay({ stdout, env }: CommandContext): Promise<Display | undefined> {
  const canRedraw = stdout.isTerminal && (env['CI'] ?? '') === '' && env['TERM'] !== 'dumb';
  if (!canRedraw || !isTerminalStream(stdout.raw)) return undefined;
  const { createLogUpdate } = await import('log-update');
  const terminal = stdout.raw;
  // The cursor stays visible, so that there is nothing to restore when the process is killed.
  const update = createLogUpdate(terminal, { showCursor: true });
  let last: readonly string[] = [];
  const draw = (lines: readonly string[], footer: readonly string[] = []): void => {
    last = lines;
    const room = Math.max(2, (terminal.rows || 24) - 1 - footer.length);
    const shown = [...fitted(lines, room, stdout.glyphs.ellipsis), ...footer];
    // What was read of a cluster may hold characters that move the cursor; only our own may.
    update(shown.map((line) => withoutControls(line, stdout.hasColour)).join('\n'));
  };
  const done = (): void => {
    if (last.length > 0) draw(last);
    update.done();
  };
  return { draw, done };
}

function isTerminalStream(stream: unknown): stream is NodeJS.WriteStream {
  return typeof stream === 'object' && stream !== null && 'isTTY' in stream && stream.isTTY === true;
}

/** What does not fit would be drawn again and again below one another. */
function fitted(lines: readonly string[], room: number, ellipsis: string): readonly string[] {
  return lines.length <= room ? lines : [...lines.slice(0, room - 1), `${ellipsis} ${lines.length - room + 1} more lines`];
}
