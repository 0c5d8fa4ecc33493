// Plays one scenario with a defect, and without, and tells both. `node scripts/run.mjs test/simulation/defects/try.ts DEFECT [FILE | FILE#PLAN | SEED]`
import { readFileSync } from 'node:fs';
import { scenarioOf } from '../../../scripts/soak/search/draw.ts';
import { readScenario } from '../../../scripts/soak/search/replay.ts';
import { bundled } from './bundle.ts';
import { survivors } from './catalogue/survivors.ts';
import { defects } from './catalogue.ts';
import { plansFile } from './plans.ts';
import { foundBy, type Played, startPlayer } from './player.ts';

const [id = '', from = `${plansFile}#${id}`, ...rest] = process.argv.slice(2);
const known = [...defects, ...survivors];
const defect = known.find((one) => one.id === id);
if (defect === undefined && id !== 'none') throw new Error(`there is no defect ${id}; ${known.map((one) => one.id).join(', ')}`);
const [file = '', plan] = from.split('#');
const scenario = /^\d+$/.test(from) ? scenarioOf(Number(from)) : readScenario(readFileSync(file, 'utf8'), file, plan);
const keepsTimeline = !rest.includes('--quiet');

async function tell(name: string, script: string): Promise<void> {
  const player = startPlayer(script);
  const startedAt = performance.now();
  const played: Played = await player.play(scenario, { options: { keepsTimeline, stopsAtViolation: !rest.includes('--whole') } });
  await player.close();
  const found = foundBy(played);
  if (played.kind === 'judged' && keepsTimeline) {
    for (const { atMs, who, what } of played.judged.result.timeline)
      process.stdout.write(`${(atMs / 1000).toFixed(3).padStart(9)} ${who.padEnd(8)} ${what}\n`);
  }
  const ended = played.kind === 'judged' ? `, ${played.judged.result.events} events, ended at ${played.judged.result.endMs / 1000} s` : '';
  const took = `${Math.round(performance.now() - startedAt)} ms${ended}`;
  process.stdout.write(`${name}: ${found === undefined ? 'nothing was found' : `${found.id}: ${found.message}`} (${took})\n\n`);
}

if (defect !== undefined) await tell(`with ${id}`, await bundled(defect.edits));
await tell('without', await bundled([]));
