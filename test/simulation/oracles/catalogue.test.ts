import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { generatedJudges } from '../../../scripts/soak/generated.ts';
import { sceneJudges } from '../../../simulation/oracles/all.ts';
import { catalogue } from './catalogue.ts';

const root = join(import.meta.dirname, '../../..');
const judges = [...Object.keys(generatedJudges), ...Object.keys(sceneJudges)];
const safety = Array.from({ length: 41 }, (_, index) => `S${index + 1}`);
const liveness = Array.from({ length: 13 }, (_, index) => `L${index + 1}`);

/** Returns the source of a judge: of `simulate`, or of generated groups. */
function textOf(judge: string): string {
  const path = join(root, `simulation/oracles/${judge}.ts`);
  return readFileSync(existsSync(path) ? path : join(root, `scripts/soak/judges/${judge}.ts`), 'utf8');
}

describe('the catalogue of invariants', () => {
  it('has each one once, in their order', () => {
    const ids = catalogue.map(({ id }) => id).filter((id) => id !== 'S1p');
    expect(ids).toEqual([...safety, ...liveness]);
  });

  it('names the judge of each one, which mentions it, or why it has no judge', () => {
    const silent = catalogue.flatMap((entry) => {
      if ('leftOut' in entry) return entry.leftOut.length > 10 ? [] : [entry.id];
      const wrong = entry.judgedBy.filter((name) => {
        if (!judges.includes(name)) return true;
        return !textOf(name).includes(`'${entry.id}'`);
      });
      return entry.judgedBy.length === 0 || wrong.length > 0 ? [`${entry.id} ${wrong.join(' ')}`] : [];
    });
    expect(silent).toEqual([]);
  });

  it('has every invariant that a judge names', () => {
    const named = catalogue.flatMap((entry) => ('judgedBy' in entry ? entry.judgedBy.map((name) => `${name} ${entry.id}`) : []));
    const said = judges.flatMap((name) => {
      const text = textOf(name);
      return [...new Set([...text.matchAll(/'([SL]\d+)'/g)].map(([, id]) => `${name} ${id}`))];
    });
    expect(said.filter((one) => !named.includes(one))).toEqual([]);
  });

  it('has a test that finds each one that is judged', () => {
    const text = judges.map((name) => readFileSync(join(import.meta.dirname, `${name}.test.ts`), 'utf8')).join('\n');
    const untested = catalogue.filter((entry) => 'judgedBy' in entry && !text.includes(`'${entry.id}'`)).map(({ id }) => id);
    expect(untested).toEqual([]);
  });
});
