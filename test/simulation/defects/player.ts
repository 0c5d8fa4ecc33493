// Plays scenarios with bundled sources in a worker, which is cut off when it does not come to an end.
import { Worker } from 'node:worker_threads';
import type { Checks, Judged } from '../../../scripts/soak/search/judge.ts';
import type { RunOptions } from '../../../simulation/run.ts';
import type { Scenario } from '../../../simulation/scenario.ts';

/** What the worker is sent. */
export interface Asked {
  readonly scenario: Scenario;
  readonly checks: Checks;
  readonly options: RunOptions;
}

/** What it sends back. */
export type Told = { readonly kind: 'judged'; readonly judged: Judged } | { readonly kind: 'threw'; readonly message: string };

export type Played =
  | Told
  /** It took longer than it may by the clock on the wall, or more memory than it may have. */
  | { readonly kind: 'cutOff'; readonly message: string };

export interface Player {
  /** Plays one scenario at a time; another one waits. Never rejects for what the sources do. */
  readonly play: (scenario: Scenario, asked?: Partial<Omit<Asked, 'scenario'>>) => Promise<Played>;
  readonly close: () => Promise<void>;
}

interface PlayerOptions {
  /** By the clock on the wall, for one scenario. */
  readonly limitMs?: number;
}

const nothingElse: Checks = { isRepeated: false, compared: [] };
/** A run takes less than a second; this is for machines that are busy with other things as well. */
const usualLimitMs = 60_000;
const memoryMb = 512;

/** A player for what `bundled` has made. Its worker starts with the first scenario, and anew after it was cut off. */
export function startPlayer(script: string, { limitMs = usualLimitMs }: PlayerOptions = {}): Player {
  let worker: Worker | undefined;
  let last: Promise<unknown> = Promise.resolve();
  /** Of the scenario that is being played. */
  let told: (answer: Told) => void = () => undefined;
  let failed: (message: string) => void = () => undefined;

  const end = async (): Promise<void> => {
    const ending = worker;
    worker = undefined;
    await ending?.terminate();
  };
  const begin = (): Worker => {
    const begun = new Worker(script, { eval: true, resourceLimits: { maxOldGenerationSizeMb: memoryMb } });
    begun.on('message', (answer: Told) => told(answer));
    begun.on('error', (error: Error) => failed(error.message));
    begun.on('exit', (code) => {
      if (begun === worker) failed(`its worker ended with ${code}`);
    });
    return begun;
  };
  const ask = async (asked: Asked): Promise<Played> => {
    worker ??= begin();
    const current = worker;
    let limit: NodeJS.Timeout | undefined;
    const played = await new Promise<Played>((resolve) => {
      const cutOff = (message: string): void => resolve({ kind: 'cutOff', message });
      limit = setTimeout(() => cutOff(`it was not over after ${limitMs / 1000} s`), limitMs);
      told = resolve;
      failed = cutOff;
      current.postMessage(asked);
    });
    clearTimeout(limit);
    if (played.kind === 'cutOff') await end();
    return played;
  };
  return {
    play: (scenario, { checks = nothingElse, options = { stopsAtViolation: true } } = {}) => {
      const playing = last.then(() => ask({ scenario, checks, options }));
      last = playing;
      return playing;
    },
    close: async () => {
      await last;
      await end();
    },
  };
}

/** What was found: the invariant that was broken first, another name for how a run failed, or `cut-off`; undefined when all was well. */
export function foundBy(played: Played): { readonly id: string; readonly message: string } | undefined {
  if (played.kind === 'cutOff') return { id: 'cut-off', message: played.message };
  if (played.kind === 'threw') return { id: 'threw', message: played.message };
  const { failure } = played.judged;
  return failure === undefined ? undefined : { id: failure.id, message: failure.message };
}
