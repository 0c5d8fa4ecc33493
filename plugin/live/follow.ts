// Groups as they go on: drawn in place or written line by line, until they are where they should be, time runs out or nobody looks any more.
import type { Cluster, ConnectionFlags } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes } from '../exit-code.ts';
import type { OtherView } from '../output/key-bar.ts';
import type { TableLook } from '../output/plan/table.ts';
import { openDisplay } from './display.ts';
import { onLeaving } from './interrupt.ts';
import { type ReadGroups, type Scope, watchGroups } from './read.ts';
import { createScreenKeys } from './screen-keys.ts';

interface FollowOptions {
  readonly scope: Scope;
  /** As for `readGroups`. */
  readonly forEstimate?: boolean;
  /** Between lines that say that nothing changed; 0 for never. */
  readonly heartbeatMs: number;
  /** Absent for never. */
  readonly timeoutMs?: number;
  /** The screen of a terminal; undefined when lines are wanted there too. */
  readonly screen: Screen | undefined;
  /** Writes what is new since the call before. */
  readonly write: (read: ReadGroups, nowMs: number) => void;
  readonly heartbeat: (read: ReadGroups, nowMs: number) => void;
  /** The exit code when it is over. */
  readonly verdict: (read: ReadGroups) => ExitCode | undefined;
}

/** What is drawn, and what keys may ask for. */
export interface Screen {
  readonly frame: (read: ReadGroups, nowMs: number) => readonly string[];
  /** What the key `d` changes to, when one group is shown. */
  readonly other?: { readonly name: OtherView; readonly frame: Screen['frame'] };
  /** As the terminal is now: people change its width. */
  readonly look: () => TableLook;
  /** Of the verb; a key that asks for something asks the same cluster. */
  readonly flags: ConnectionFlags;
}

export type Ending =
  | { readonly kind: 'verdict'; readonly exitCode: ExitCode; readonly read: ReadGroups }
  | { readonly kind: 'timeout'; readonly read: ReadGroups }
  | { readonly kind: 'interrupted'; readonly read: ReadGroups }
  /** By the key `q`. */
  | { readonly kind: 'quit'; readonly read: ReadGroups };

/** How often a screen shows that time passes. */
const tickMs = 1000;

export async function follow(context: CommandContext, cluster: Cluster, options: FollowOptions): Promise<Ending> {
  const { env } = cluster;
  const display = options.screen === undefined ? undefined : await openDisplay(context);
  const cancels = new Set<() => void>();
  const repeat = (everyMs: number, call: () => void): void => {
    const cancel = env.timers.after(everyMs, () => {
      cancels.delete(cancel);
      repeat(everyMs, call);
      call();
    });
    cancels.add(cancel);
  };
  let latest: ReadGroups | undefined;
  let leave: (kind: 'interrupted' | 'quit') => void = () => undefined;
  const keys =
    options.screen === undefined
      ? undefined
      : createScreenKeys(context, options.screen, { latest: () => latest, show: () => show(), leave: (kind) => leave(kind) });
  const keyboard = display === undefined ? undefined : await keys?.listen();
  const show = (): void => {
    if (latest === undefined) return;
    if (display !== undefined && keys !== undefined) display.draw(...keys.drawn(latest, env.clock.nowMs()));
    else options.write(latest, env.clock.nowMs());
  };
  let stop: (() => void) | undefined;
  let isOver = false;
  try {
    return await new Promise<Ending>((resolve, reject) => {
      const onGroups = (read: ReadGroups): void => {
        latest = read;
        // Called by a watch: what is thrown here would end up with nobody.
        try {
          show();
          const exitCode = options.verdict(read);
          if (exitCode !== undefined) resolve({ kind: 'verdict', exitCode, read });
        } catch (error) {
          reject(error);
        }
      };
      const end = (kind: 'timeout' | 'interrupted' | 'quit') => () => {
        if (latest !== undefined) resolve({ kind, read: latest });
      };
      // While nothing has been read yet there is nothing to leave in order, and the terminal makes no signal of a key.
      leave = (kind) => (latest === undefined ? process.exit(exitCodes.interrupted) : end(kind)());
      cancels.add(onLeaving(context.stdout.raw, end('interrupted')));
      if (options.timeoutMs !== undefined) cancels.add(env.timers.after(options.timeoutMs, end('timeout')));
      if (display !== undefined) repeat(tickMs, show);
      else if (options.heartbeatMs > 0)
        repeat(options.heartbeatMs, () => latest !== undefined && options.heartbeat(latest, env.clock.nowMs()));
      watchGroups(cluster, options.scope, onGroups, { forEstimate: options.forEstimate === true }).then((stopWatching) => {
        stop = stopWatching;
        // The first look may have been enough, and then nobody is left to stop what begins now.
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
