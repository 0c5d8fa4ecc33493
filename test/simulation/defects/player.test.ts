import { describe, expect, it } from 'vitest';
import { scenarioOf } from '../../../scripts/soak/search/draw.ts';
import { bundled } from './bundle.ts';
import { foundBy, startPlayer } from './player.ts';

const scenario = scenarioOf(1);
const worker = (answer: string): string =>
  `const { parentPort } = require('node:worker_threads'); parentPort.on('message', () => { ${answer} });`;

describe('the simulation with a defect in it', () => {
  it('is the sources with the edit made, and the file on the disk stays as it is', async () => {
    const edit = { file: 'agent/loop.ts', find: 'const parallelTurns = 64;', replace: 'const parallelTurns = 4711;' };
    expect(await bundled([edit])).toContain('4711');
    expect(await bundled([])).not.toContain('4711');
  });

  it('finds nothing if the passage is missing', async () => {
    const edit = { file: 'agent/loop.ts', find: 'nobody ever wrote this', replace: '' };
    await expect(bundled([edit])).rejects.toThrow('agent/loop.ts has 0 times what a defect replaces once');
  });

  it('finds nothing if its file is not part of a run', async () => {
    const edit = { file: 'plugin/context.ts', find: 'import', replace: 'import' };
    await expect(bundled([edit])).rejects.toThrow('these are no part of the simulation: plugin/context.ts');
  });
});

describe('a player', () => {
  it('stops a run that does not end, and plays the next one', async () => {
    const player = startPlayer(worker('for (;;);'), { limitMs: 200 });
    expect(foundBy(await player.play(scenario))).toEqual({ id: 'cut-off', message: 'it was not over after 0.2 s' });
    expect(foundBy(await player.play(scenario))?.id).toBe('cut-off');
    await player.close();
  });

  it('reports a failed worker', async () => {
    const player = startPlayer(worker("throw new Error('it broke');"));
    expect(foundBy(await player.play(scenario))).toEqual({ id: 'cut-off', message: 'it broke' });
    await player.close();
  });

  it('plays one scenario after the other in one worker', async () => {
    const player = startPlayer(
      worker(
        "globalThis.count = (globalThis.count ?? 0) + 1; parentPort.postMessage({ kind: 'threw', message: String(globalThis.count) });",
      ),
    );
    const played = await Promise.all([player.play(scenario), player.play(scenario), player.play(scenario)]);
    expect(played.map((one) => foundBy(one)?.message)).toEqual(['1', '2', '3']);
    await player.close();
  });
});
