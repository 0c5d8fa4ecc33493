// Handles the keys of one live screen: their state and the commands that they run.
import { messageOf } from '../../policies/error-message.ts';
import type { ConnectionFlags } from '../connection.ts';
import type { CommandContext, OutputStream } from '../context.ts';
import { type ExitCode, exitCodes, Failure } from '../failure.ts';
import { renderLiveExplanation } from '../output/explain-live.ts';
import type { Screen } from './follow.ts';
import type { LiveGroup, ReadGroups } from './groups.ts';
import { type Key, type Keyboard, suspend } from './keyboard.ts';
import { answered, helpLines, type KeyCommand, type KeyState, keyBar, press } from './keys.ts';
import { outdatedLines } from './notes.ts';

/** The parts of the display that the keys use. */
export interface ScreenHost {
  readonly latest: () => ReadGroups | undefined;
  readonly show: () => void;
  readonly leave: (kind: 'interrupted' | 'quit') => void;
}

export function createScreenKeys(context: CommandContext, screen: Screen, host: ScreenHost) {
  const { other = { name: 'details', frame: screen.frame } } = screen;
  let state: KeyState = { view: 'first' };
  let keyboard: Keyboard | undefined;
  let isOver = false;

  const showResult = (message: string): void => {
    state = answered(state, message);
    captureAgain();
    if (!isOver) host.show();
  };
  /** Captures keys again, but not after the screen has ended. */
  const captureAgain = (): void => {
    if (!isOver) keyboard?.capture();
  };

  const onKey = (key: Key): void => {
    const { state: next, effect } = press(state, key, onlyGroup(host.latest(), screen)?.decision);
    state = next;
    if (effect === 'interrupt') host.leave('interrupted');
    else if (effect === 'quit') host.leave('quit');
    else if (effect === 'suspend') {
      if (keyboard !== undefined) suspend({ ...keyboard, capture: captureAgain });
    } else {
      host.show();
      if (effect === undefined) return;
      // A credential plugin may prompt on the terminal.
      keyboard?.release();
      carryOut(context, screen.flags, effect).then(showResult, (error: unknown) => showResult(`error: ${String(error)}`));
    }
  };

  return {
    /** Returns the lines of the frame and of the key bar. */
    drawn: (read: ReadGroups, nowMs: number): [lines: readonly string[], footer: readonly string[]] => {
      const only = onlyGroup(read, screen);
      if (keyboard === undefined) return [screen.frame(read, nowMs), []];
      if (only === undefined) return [screen.frame(read, nowMs), [screen.look().paint('dim', 'q quit')]];
      return [bodyOf(read, only, nowMs), keyBar(state, other.name, screen.look())];
    },
    /** Listens to the keyboard; undefined without a terminal. */
    listen: async (): Promise<Keyboard | undefined> => {
      const opened = await context.keyboard?.(onKey);
      if (opened === undefined) return undefined;
      keyboard = opened;
      return {
        ...opened,
        release: () => {
          isOver = true;
          opened.release();
        },
      };
    },
  };

  function bodyOf(read: ReadGroups, live: LiveGroup, nowMs: number): readonly string[] {
    const { view, zone } = state;
    if (view === 'help') return helpLines(other.name);
    if (view === 'explain') {
      const subject = zone === undefined ? {} : { zone };
      const outdated = outdatedLines(live, read.listing, nowMs);
      return renderLiveExplanation({ live, subject, nowMs, showsAllRules: false, outdated }, screen.look()).trimEnd().split('\n');
    }
    const shown = zone === undefined ? read : { ...read, groups: [onlyZone(live, zone)] };
    return (view === 'second' ? other.frame : screen.frame)(shown, nowMs);
  }
}

/** Returns the group of a screen for one group; undefined for a list of groups, before the first read, or if the group was deleted. */
function onlyGroup(read: ReadGroups | undefined, { other }: Screen): LiveGroup | undefined {
  return other === undefined || read?.groups.length !== 1 ? undefined : read.groups[0];
}

function onlyZone(live: LiveGroup, zone: string): LiveGroup {
  const isOf = (one: { readonly zone: string }): boolean => one.zone === zone;
  return { ...live, decision: { ...live.decision, zones: live.decision.zones.filter(isOf), pods: live.decision.pods.filter(isOf) } };
}

/** Runs a command and returns its output or failure as one line. The verb connects again: the connection of a screen is read-only. */
async function carryOut(context: CommandContext, flags: ConnectionFlags, command: KeyCommand): Promise<string> {
  const written: string[] = [];
  const quiet = {
    ...context,
    stdout: collected(context.stdout, written),
    stderr: collected(context.stderr, written),
    ask: undefined,
    quiet: true,
  };
  try {
    const exitCode = await runVerb(quiet, flags, command);
    const text = oneLine(written.join(''));
    return text === '' && exitCode !== exitCodes.done ? `the command ended with exit code ${exitCode}` : text;
  } catch (error) {
    if (!(error instanceof Failure)) return oneLine(`error: ${messageOf(error)}`);
    const { what, why, todo } = error.details;
    return oneLine([`error: ${what}`, ...(why === undefined ? [] : [why]), ...(todo === undefined ? [] : [todo])].join('; '));
  }
}

/** Runs the verb of a command with the flags of the screen. The verb ignores flags that it does not have, such as --timeout. */
async function runVerb(context: CommandContext, flags: ConnectionFlags, { verb, ...target }: KeyCommand): Promise<ExitCode> {
  const options = { ...flags, ...target };
  if (verb === 'approve') return (await import('../commands/approve.ts')).approve(context, options);
  return (await import('../commands/pause.ts'))[verb](context, options);
}

function collected(stream: OutputStream, written: string[]): OutputStream {
  return { ...stream, write: (text) => void written.push(text), paint: (_style, text) => text, isTerminal: false };
}

function oneLine(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('; ');
}
