// Parses the command line of a soak.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { messageOf } from '../../policies/error-message.ts';

export interface SoakArguments {
  readonly seeds: number;
  readonly from: number;
  readonly workers: number;
  /** No new seed starts after this time. */
  readonly minutes?: number;
  /** Plays one seed and prints its whole timeline. */
  readonly seed?: number;
  /** The file of a scenario, or FILE#NAME for a stored plan. Prints its whole timeline. */
  readonly plan?: string;
  readonly isShrinking: boolean;
  /** Fails with fewer faults over all seeds: a soak without faults proves nothing. */
  readonly leastFaults: number;
  /** Writes the report to this file as JSON. */
  readonly json?: string;
}

const soakUsage = `usage: npm run soak -- [--seeds N] [--from S] [--workers N] [--minutes M] [--no-shrink] [--json FILE] [--faults-at-least N]
       npm run soak -- --seed S [--no-shrink]
       npm run soak -- --plan FILE[#NAME] [--no-shrink]`;

const options = {
  seeds: { type: 'string' },
  from: { type: 'string' },
  workers: { type: 'string' },
  minutes: { type: 'string' },
  seed: { type: 'string' },
  plan: { type: 'string' },
  json: { type: 'string' },
  'faults-at-least': { type: 'string' },
  'no-shrink': { type: 'boolean' },
} as const;

/** The required form of each value. */
const forms = {
  seeds: [/^[1-9]\d{0,8}$/, 'a whole number above 0'],
  from: [/^\d{1,9}$/, 'a whole number'],
  workers: [/^[1-9]\d?$/, 'a whole number from 1 to 99'],
  minutes: [/^(?!0+(?:\.0*)?$)\d+(?:\.\d+)?$/, 'a number above 0'],
  seed: [/^\d{1,9}$/, 'a whole number'],
  'faults-at-least': [/^\d{1,9}$/, 'a whole number'],
} as const;

/** Returns the arguments, or the problem with the usage. */
export function soakArguments(words: readonly string[]): SoakArguments | string {
  let given: ReturnType<typeof parsed>;
  try {
    given = parsed(words);
  } catch (error) {
    return `${messageOf(error)}\n${soakUsage}`;
  }
  const problem = problemOf(given);
  if (problem !== undefined) return `${problem}\n${soakUsage}`;
  const { seed, plan, minutes, json } = given;
  const defaultSeeds = minutes === undefined ? 200 : endless;
  return {
    // With a time and without a number of seeds, the soak continues until the time is over.
    seeds: Number(given.seeds ?? defaultSeeds),
    from: Number(given.from ?? 1),
    workers: Number(given.workers ?? Math.min(2, availableParallelism())),
    isShrinking: given['no-shrink'] !== true,
    leastFaults: Number(given['faults-at-least'] ?? 0),
    ...(minutes !== undefined && { minutes: Number(minutes) }),
    ...(seed !== undefined && { seed: Number(seed) }),
    ...(plan !== undefined && { plan }),
    ...(json !== undefined && { json }),
  };
}

/** Larger seeds would not fit into 32 bits. */
const endless = 4_000_000_000;

function parsed(words: readonly string[]) {
  return parseArgs({ args: [...words], options, strict: true, allowPositionals: false }).values;
}

function problemOf(given: ReturnType<typeof parsed>): string | undefined {
  for (const [name, [form, words]] of Object.entries(forms)) {
    const value = given[name as keyof typeof forms];
    if (value !== undefined && !form.test(value)) return `--${name} needs ${words}, not ${value}`;
  }
  return given.seed !== undefined && given.plan !== undefined ? '--seed and --plan exclude each other' : undefined;
}
