// Chooses the share of a long search that one test run does: it changes with the commit, or is everything (`npm run test:long`).
import { execFileSync } from 'node:child_process';

/** True with `npm run test:long`: every search runs completely. */
export const isLong = process.env['TEST_LONG'] === '1';

/** A number derived from the commit (0 without one), or SEED. So each commit searches another part, and any search can be repeated. */
export const commitSeed = process.env['SEED'] === undefined ? seedOfCommit() : Number(process.env['SEED']);

/** Returns the rounds of a search: `all` with `npm run test:long`, else `usual`. */
export function rounds(all: number, usual: number): number {
  return isLong ? all : usual;
}

/** Returns one of `parts` interleaved shares of the list, in its order. The commit chooses the share; `npm run test:long` returns the whole list. */
export function shareOf<Item>(list: readonly Item[], parts: number): readonly Item[] {
  return isLong ? list : list.filter((_, index) => index % parts === commitSeed % parts);
}

function seedOfCommit(): number {
  try {
    const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return Number.parseInt(commit.slice(0, 6), 16);
  } catch {
    return 0;
  }
}
