// A screen that is redrawn in place, on terminals that can move the cursor.
import type { CommandContext } from '../context.ts';
import { withoutControls } from '../output/terminal.ts';

interface Display {
  /** `footer` always stays visible. */
  readonly draw: (lines: readonly string[], footer?: readonly string[]) => void;
  /** Keeps the last frame on the terminal, without its footer. */
  readonly done: () => void;
}

/** Opens a display. Undefined in pipes, in CI and on terminals that cannot move the cursor: redrawn frames would fill a log. */
export async function openDisplay({ stdout, env }: CommandContext): Promise<Display | undefined> {
  const canRedraw = stdout.isTerminal && (env['CI'] ?? '') === '' && env['TERM'] !== 'dumb';
  if (!canRedraw || !isTerminalStream(stdout.raw)) return undefined;
  const { createLogUpdate } = await import('log-update');
  const terminal = stdout.raw;
  // The cursor stays visible, so that a killed process leaves it visible.
  const update = createLogUpdate(terminal, { showCursor: true });
  let last: readonly string[] = [];
  const draw = (lines: readonly string[], footer: readonly string[] = []): void => {
    last = lines;
    const room = Math.max(2, (terminal.rows || 24) - 1 - footer.length);
    const shown = [...fitted(lines, room, stdout.glyphs.ellipsis), ...footer];
    // Text from a cluster may contain control characters; remove them.
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

/** Shortens a frame to the screen: a longer frame would scroll at each redraw. */
function fitted(lines: readonly string[], room: number, ellipsis: string): readonly string[] {
  return lines.length <= room ? lines : [...lines.slice(0, room - 1), `${ellipsis} ${lines.length - room + 1} more lines`];
}
