// Follows groups on a screen or line by line until a condition is met, the timeout expires or the user leaves.
import type { Cluster, ConnectionFlags } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../failure.ts';
import type { TableLook } from '../output/plan/table.ts';
import { statusKey } from '../output/status.ts';
import { withoutControls } from '../output/terminal.ts';
import { type LiveGroup, type ReadGroups, type Scope, watchGroups } from './groups.ts';
import { onLeaving } from './keyboard.ts';
import type { OtherView } from './keys.ts';
import { allWithAgentState, type Notes, notesOn } from './notes.ts';
import { createScreenKeys, type ScreenHost } from './screen-keys.ts';
import { nameOf } from './target.ts';

interface FollowOptions {
  readonly scope: Scope;
  /** True to read also the objects that an estimate needs. */
  readonly forEstimate?: boolean;
  readonly notes: Notes;
  /** The interval of heartbeat lines; 0 for no such lines. */
  readonly heartbeatMs: number;
  /** Absent for no timeout. */
  readonly timeoutMs?: number;
  /** The screen for a terminal; undefined to write lines. */
  readonly screen: Screen | undefined;
  /** Writes the changes since the previous call. */
  readonly write: (read: ReadGroups, nowMs: number) => void;
  readonly heartbeat: (read: ReadGroups, nowMs: number) => void;
  /** Returns the exit code if the command must end; undefined if it continues to follow. */
  readonly verdict: (read: ReadGroups, notes: Notes) => ExitCode | undefined;
}

/** The frames of a screen, and the connection flags for the commands of its keys. */
export interface Screen {
  readonly frame: (read: ReadGroups, nowMs: number) => readonly string[];
  readonly other?: { readonly name: OtherView; readonly frame: Screen['frame'] };
  /** Returns the current properties of the terminal, whose width may change. */
  readonly look: () => TableLook;
  /** The connection flags of the verb; keys use the same cluster. */
  readonly flags: ConnectionFlags;
}

export type Ending =
  | { readonly kind: 'verdict'; readonly exitCode: ExitCode; readonly read: ReadGroups }
  /** `quit`: the user pressed `q`. */
  | { readonly kind: EarlyEnd; readonly read: ReadGroups };

type EarlyEnd = 'timeout' | 'interrupted' | 'quit';

/** The interval at which Leases are read, because no watch shows that an agent stopped. */
const agentEveryMs = 5_000;

/** The interval at which the shown ages are redrawn. */
const tickMs = 1000;

export async function follow(context: CommandContext, cluster: Cluster, options: FollowOptions): Promise<Ending> {
  const { env } = cluster;
  const display = options.screen === undefined ? undefined : await openDisplay(context);
  const cancels = new Set<() => void>();
  const repeat = repeater(env.timers, cancels);
  let read: ReadGroups | undefined;
  let latest: ReadGroups | undefined;
  let { notes } = options;
  let isOver = false;
  const readNotes = async (): Promise<void> => {
    if (read === undefined) return;
    notes = await notesOn(cluster, read);
    if (!isOver) onGroups(read);
  };
  let onGroups: (read: ReadGroups) => void = () => undefined;
  let leave: (kind: 'interrupted' | 'quit') => void = () => undefined;
  const host: ScreenHost = { latest: () => latest, show: () => show(), leave: (kind) => leave(kind) };
  const keys = display && options.screen && createScreenKeys(context, options.screen, host);
  const keyboard = await keys?.listen();
  const show = (): void => {
    if (latest === undefined) return;
    if (display !== undefined && keys !== undefined) display.draw(...keys.drawn(latest, env.clock.nowMs()));
    else options.write(latest, env.clock.nowMs());
  };
  let stop: (() => void) | undefined;
  // The first reason to end that occurred before the first read.
  let due: EarlyEnd | undefined;
  try {
    return await new Promise<Ending>((resolve, reject) => {
      onGroups = (next) => {
        read = next;
        latest = allWithAgentState(next, notes);
        // A watch calls this function; an error thrown here would be lost.
        try {
          show();
          const exitCode = options.verdict(latest, notes);
          if (exitCode !== undefined) resolve({ kind: 'verdict', exitCode, read: latest });
          else if (due !== undefined) resolve({ kind: due, read: latest });
        } catch (error) {
          reject(error);
        }
      };
      const end = (kind: EarlyEnd) => () => {
        due ??= kind;
        if (latest !== undefined) resolve({ kind, read: latest });
      };
      // Before the first read no cleanup is needed. The process ends itself, because Ctrl-C sends no signal in raw mode.
      leave = (kind) => (latest === undefined ? process.exit(exitCodes.interrupted) : end(kind)());
      cancels.add(onLeaving(context.stdout.raw, end('interrupted')));
      if (options.timeoutMs !== undefined) cancels.add(env.timers.after(options.timeoutMs, end('timeout')));
      // After a failed read, the previous notes stay.
      repeat(agentEveryMs, () => void readNotes().catch(() => undefined));
      if (display !== undefined) repeat(tickMs, show);
      else if (options.heartbeatMs > 0)
        repeat(options.heartbeatMs, () => latest !== undefined && options.heartbeat(latest, env.clock.nowMs()));
      watchGroups(cluster, options.scope, onGroups, { forEstimate: options.forEstimate === true }).then((stopWatching) => {
        stop = stopWatching;
        // The first read may have ended the loop: then stop the watch that starts now.
        if (isOver) stopWatching();
      }, reject);
    });
  } finally {
    isOver = true;
    stop?.();
    for (const cancel of cancels) cancel();
    keyboard?.release();
    display?.done();
  }
}

/** Returns a function that selects the groups that changed since its last call. Text shows only transitions, other formats every change. */
export function changeFilter(isText: boolean): (groups: readonly LiveGroup[]) => readonly LiveGroup[] {
  const seen = new Map<string, string>();
  return (groups) =>
    groups.filter((live) => {
      const name = nameOf(live.decision);
      const before = seen.get(name);
      const key = isText ? statusKey(live) : JSON.stringify([live.decision, live.unattended !== undefined]);
      seen.set(name, key);
      return key !== before;
    });
}

/** Returns a function that repeats a call at an interval. `cancels` contains the function that cancels the next call. */
function repeater(timers: Cluster['env']['timers'], cancels: Set<() => void>): (everyMs: number, call: () => void) => void {
  const repeat = (everyMs: number, call: () => void): void => {
    const cancel = timers.after(everyMs, () => {
      cancels.delete(cancel);
      repeat(everyMs, call);
      call();
    });
    cancels.add(cancel);
  };
  return repeat;
}

interface Display {
  /** `footer` always stays visible. */
  readonly draw: (lines: readonly string[], footer?: readonly string[]) => void;
  /** Keeps the last frame on the terminal, without its footer. */
  readonly done: () => void;
}

/** Opens a display. Returns undefined in pipes, in CI and on terminals that cannot move the cursor: redrawn frames would fill a log. */
async function openDisplay({ stdout, env }: CommandContext): Promise<Display | undefined> {
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
    // Text from a cluster may contain control characters, which are escaped here.
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
