// Looks for a defect with the scenarios of random seeds, and makes the first that finds it small.

import { scenarioOf } from '../../../scripts/soak/search/draw.ts';
import type { StoredPlan } from '../../../scripts/soak/search/replay.ts';
import type { Scenario } from '../../../simulation/scenario.ts';
import { shrink } from '../../../simulation/shrink.ts';
import { bundled } from './bundle.ts';
import type { Defect } from './defect.ts';
import { foundBy, type Played, type Player, startPlayer } from './player.ts';

interface SearchOptions {
  /** The first seed. */
  readonly from: number;
  /** How many are tried. */
  readonly seeds: number;
  /** How many runs making it small may take; 0 leaves it as it is. */
  readonly shrinkRuns: number;
  /** By the clock on the wall, for the seeds of one defect. */
  readonly limitMs: number;
}

export interface Search {
  readonly defect: Defect;
  /** How many seeds were played, the one that found it included. */
  readonly tried: number;
  readonly found?: { readonly seed: number; readonly id: string; readonly message: string; readonly scenario: Scenario };
  /** Seeds that fail without the defect as well, and therefore say nothing of it. */
  readonly useless: readonly number[];
  /** Seeds that failed in another way than the defect is to be found by: what they failed by. */
  readonly otherwise: readonly string[];
}

/** Whether the sources as they are pass a scenario; remembered, since every defect is looked for with the same seeds. */
interface Reference {
  readonly isFine: (scenario: Scenario) => Promise<boolean>;
  readonly close: () => Promise<void>;
}

export async function startReference(): Promise<Reference> {
  const player = startPlayer(await bundled([]));
  const known = new Map<string, Promise<boolean>>();
  return {
    isFine: (scenario) => {
      const key = JSON.stringify(scenario);
      const answer = known.get(key) ?? player.play(scenario).then((played) => foundBy(played) === undefined);
      known.set(key, answer);
      return answer;
    },
    close: () => player.close(),
  };
}

/** Never rejects for what the defect does. */
export async function search(defect: Defect, reference: Reference, options: SearchOptions): Promise<Search> {
  const player = startPlayer(await bundled(defect.edits));
  const useless: number[] = [];
  const otherwise: string[] = [];
  const startedAt = performance.now();
  let tried = 0;
  try {
    for (let seed = options.from; tried < options.seeds && performance.now() - startedAt < options.limitMs; seed += 1) {
      const scenario = scenarioOf(seed);
      const failed = foundBy(await player.play(scenario));
      if (failed !== undefined && !(await reference.isFine(scenario))) {
        useless.push(seed);
        continue;
      }
      tried += 1;
      if (failed === undefined) continue;
      if (!defect.breaks.includes(failed.id)) {
        otherwise.push(`seed ${seed}: ${failed.id}: ${failed.message.slice(0, 200)}`);
        continue;
      }
      const small = await smaller(scenario, failed.id, { player, reference, shrinkRuns: options.shrinkRuns });
      return { defect, tried, found: { seed, ...failed, scenario: small }, useless, otherwise };
    }
    return { defect, tried, useless, otherwise };
  } finally {
    await player.close();
  }
}

/** The small one, if the sources as they are pass it as they pass the whole one. */
async function smaller(
  scenario: Scenario,
  failure: string,
  { player, reference, shrinkRuns }: { readonly player: Player; readonly reference: Reference; readonly shrinkRuns: number },
): Promise<Scenario> {
  if (shrinkRuns === 0) return scenario;
  try {
    const attempt = async (candidate: Scenario) => {
      const played = await player.play(candidate);
      const failed = foundBy(played);
      // A scenario that breaks the sources as they are would be small for another reason.
      const counts = failed?.id === failure && (await reference.isFine(candidate));
      return { ...(counts ? { failure, ...failedAt(played) } : {}), placed: played.kind === 'judged' ? played.judged.result.placed : [] };
    };
    return (await shrink(scenario, failure, attempt, shrinkRuns)).scenario;
  } catch {
    return scenario;
  }
}

function failedAt(played: Played): { readonly failedAtMs?: number } {
  const atMs = played.kind === 'judged' ? played.judged.failure?.atMs : undefined;
  return atMs === undefined ? {} : { failedAtMs: atMs };
}

/** What is stored of a search that found its defect. */
export function planFrom({ id, title }: Defect, { seed, id: finds, message, scenario }: NonNullable<Search['found']>): StoredPlan {
  return { name: id, finds, why: `With this defect ${title}. Made from seed ${seed}: ${message.slice(0, 300)}`, ...scenario };
}
