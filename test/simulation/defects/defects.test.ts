import { afterAll, describe, expect, it } from 'vitest';
import { shareOf } from '../../kit/share.ts';
import { bundled } from './bundle.ts';
import { defects } from './catalogue.ts';
import type { Defect } from './defect.ts';
import { defectPlans, plansFile } from './plans.ts';
import { foundBy, type Player, startPlayer } from './player.ts';

const played = shareOf(defects, 10);
const plans = defectPlans();

/** How many are played at a time; the machine on which this must be quick has two processors. */
const lanes = 2;

interface Shown {
  /** What the plan is to find, and finds with the defect. */
  readonly finds: string;
  readonly found: string | undefined;
  /** What it finds in the sources as they are. */
  readonly foundWithout: { readonly id: string; readonly message: string } | undefined;
}

async function show({ id, edits }: Defect, sources: Player): Promise<Shown> {
  const plan = plans.get(id);
  if (plan === undefined) throw new Error(`${plansFile} has no plan ${id}`);
  const { name: _name, finds, why: _why, ...scenario } = plan;
  const player = startPlayer(await bundled(edits));
  try {
    return { finds, found: foundBy(await player.play(scenario))?.id, foundWithout: foundBy(await sources.play(scenario)) };
  } finally {
    await player.close();
  }
}

/** What becomes of each, begun at once and some at a time, so that no test waits for more than its own. */
function showAll(): { readonly of: (id: string) => Promise<Shown>; readonly ended: Promise<unknown> } {
  const tell = new Map<string, (shown: Promise<Shown>) => void>();
  const outcomes = new Map(
    played.map(({ id }) => [id, new Promise<() => Promise<Shown>>((resolve) => tell.set(id, (shown) => resolve(() => shown)))]),
  );
  const queue = [...played];
  const lane = async (sources: Player): Promise<void> => {
    for (let defect = queue.shift(); defect !== undefined; defect = queue.shift()) {
      const shown = show(defect, sources);
      // Who asks for it is told why it failed; until then nobody need hear of that.
      await shown.catch(() => undefined);
      tell.get(defect.id)?.(shown);
    }
    await sources.close();
  };
  const ended = bundled([]).then((script) => Promise.all(Array.from({ length: lanes }, () => lane(startPlayer(script)))));
  return {
    of: async (id) => {
      const shown = await outcomes.get(id);
      if (shown === undefined) throw new Error(`there is no defect ${id}`);
      return await shown();
    },
    ended,
  };
}

describe('each defect is found by its stored plan, and the plan finds nothing without it', () => {
  const shown = showAll();
  afterAll(() => shown.ended);

  for (const { id, breaks } of played) {
    it(id, async () => {
      const { finds, found, foundWithout } = await shown.of(id);
      expect(breaks).toContain(finds);
      expect(breaks).toContain(found);
      expect(foundWithout).toBeUndefined();
    });
  }
});
