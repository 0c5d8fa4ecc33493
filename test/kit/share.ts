// How much of a long search one run of the tests does: a share that changes with the commit, or all of it (`npm run test:long`).
import { execFileSync } from 'node:child_process';

/** True under `npm run test:long`: every search runs whole. */
const isLong = process.env['TEST_LONG'] === '1';

/** A number that follows from the commit, 0 where there is none, or SEED: each commit searches elsewhere, and any search can be repeated. */
export const commitSeed = process.env['SEED'] === undefined ? seedOfCommit() : Number(process.env['SEED']);

/** Returns how many rounds a search makes: `all` under `npm run test:long`, else `usual`. */
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
