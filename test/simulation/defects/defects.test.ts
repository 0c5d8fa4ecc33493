import { beforeAll, describe, expect, it } from 'vitest';
import { bundled } from './bundle.ts';
import { defects } from './catalogue.ts';
import { planFile, planOf } from './plans.ts';
import { foundBy, startPlayer } from './player.ts';

/** The machine that this must be quick on has two processors. */
const atATime = 2;

function limited(): <Value>(task: () => Promise<Value>) => Promise<Value> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (task) => {
    if (running >= atATime) await new Promise<void>((resolve) => waiting.push(resolve));
    running += 1;
    try {
      return await task();
    } finally {
      running -= 1;
      waiting.shift()?.();
    }
  };
}

describe.concurrent('each defect is found by its stored plan, and the plan finds nothing without it', () => {
  const inTurn = limited();
  let sources = '';
  beforeAll(async () => {
    sources = await bundled([]);
  });

  for (const { id, edits, breaks } of defects) {
    it(id, async () => {
      const plan = planOf(id);
      if (plan === undefined) throw new Error(`${planFile(id)} is missing`);
      expect(breaks).toContain(plan.finds);
      const { name: _name, finds, why: _why, ...scenario } = plan;
      const play = async (script: string) => {
        const player = startPlayer(script);
        try {
          return foundBy(await player.play(scenario));
        } finally {
          await player.close();
        }
      };
      await inTurn(async () => {
        expect((await play(await bundled(edits)))?.id).toBe(finds);
        expect(await play(sources)).toBeUndefined();
      });
    });
  }
});
