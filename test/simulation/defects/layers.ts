// What each layer of protection is worth: the same seeds with the engine as it is and with one layer taken away. `node scripts/run.mjs test/simulation/defects/layers.ts --seeds 500`
import { parseArgs } from 'node:util';
import { scenarioOf } from '../../../scripts/soak/search/draw.ts';
import type { RunResult } from '../../../simulation/run.ts';
import { bundled } from './bundle.ts';
import { foreignClaimsDropped, noClaims, noCompareAndSwap, noTouch, noWriteAhead } from './catalogue/ledger.ts';
import { deleteByName, evictByName, patchByName } from './catalogue/requests.ts';
import type { Edit } from './defect.ts';
import { startPlayer } from './player.ts';

interface Engine {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** Invariants that say no more than that the layer is missing. */
  readonly byTheBook: readonly string[];
}

const withoutLedger: readonly Edit[] = [noClaims, noWriteAhead, ...noCompareAndSwap];
const withoutPreconditions: readonly Edit[] = [deleteByName, evictByName, patchByName('every')];
const withoutRevocation: readonly Edit[] = [foreignClaimsDropped, noTouch];

const engines: readonly Engine[] = [
  { name: 'as it is', edits: [], byTheBook: [] },
  { name: 'without-ledger', edits: withoutLedger, byTheBook: ['S19', 'S20'] },
  { name: 'without-preconditions', edits: withoutPreconditions, byTheBook: ['S20'] },
  { name: 'without-revocation', edits: withoutRevocation, byTheBook: ['S19'] },
  { name: 'revocation-by-waiting-alone', edits: [noTouch], byTheBook: [] },
  {
    name: 'without all three',
    edits: [noClaims, noWriteAhead, ...noCompareAndSwap, ...withoutPreconditions, noTouch],
    byTheBook: ['S19', 'S20'],
  },
];

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '300' },
    from: { type: 'string', default: '1' },
    /** Only engines whose name has this in it. */
    engine: { type: 'string', default: '' },
  },
});
const seeds = Number(values.seeds);
const from = Number(values.from);

interface Row {
  readonly engine: Engine;
  readonly bad: number;
  readonly byTheBook: number;
  readonly unfinished: number;
  readonly cutOff: number;
  readonly broken: ReadonlyMap<string, number>;
}

async function rowOf(engine: Engine): Promise<Row> {
  const script = await bundled(engine.edits);
  const counts = { bad: 0, byTheBook: 0, unfinished: 0, cutOff: 0 };
  const broken = new Map<string, number>();
  const note = ({ violations, unfinished }: RunResult): void => {
    const ids = [...new Set(violations.map(({ invariant }) => invariant))];
    const harm = ids.filter((id) => !engine.byTheBook.includes(id));
    if (harm.length > 0) counts.bad += 1;
    if (ids.length > harm.length) counts.byTheBook += 1;
    if (unfinished !== undefined) counts.unfinished += 1;
    for (const id of ids) broken.set(id, (broken.get(id) ?? 0) + 1);
  };
  let next = from;
  const lane = async (): Promise<void> => {
    const player = startPlayer(script);
    for (let seed = next++; seed < from + seeds; seed = next++) {
      // Whole, so that every kind of violation is counted and not the first one alone.
      const played = await player.play(scenarioOf(seed), { options: {} });
      if (played.kind === 'judged') note(played.judged.result);
      else counts.cutOff += 1;
    }
    await player.close();
  };
  await Promise.all([lane(), lane()]);
  return { engine, ...counts, broken };
}

function share(count: number): string {
  return `${count}/${seeds} = ${((100 * count) / seeds).toFixed(2)} %`;
}

process.stdout.write('| engine | bad seeds | missing by the book | not converged | what broke |\n|---|---|---|---|---|\n');
for (const engine of engines.filter(({ name }) => name.includes(values.engine))) {
  const row = await rowOf(engine);
  const what = [...row.broken].sort(([, one], [, other]) => other - one).map(([id, count]) => `${id} ${count}`);
  const cut = row.cutOff === 0 ? '' : ` (${row.cutOff} cut off)`;
  process.stdout.write(
    `| ${engine.name} | ${share(row.bad)} | ${row.byTheBook} | ${row.unfinished}${cut} | ${what.length === 0 ? 'nothing' : what.join(', ')} |\n`,
  );
}
