import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bookJudges, sceneJudges } from '../../../simulation/oracles/all.ts';
import { catalogue } from './catalogue.ts';

const folder = join(import.meta.dirname, '../../../simulation/oracles');
const safety = Array.from({ length: 41 }, (_, index) => `S${index + 1}`);
const liveness = Array.from({ length: 13 }, (_, index) => `L${index + 1}`);

describe('the catalogue of invariants', () => {
  it('has each one once, in their order', () => {
    const ids = catalogue.map(({ id }) => id).filter((id) => id !== 'S1p');
    expect(ids).toEqual([...safety, ...liveness]);
  });

  it('names the judge of each one, which mentions it, or why it has no judge', () => {
    const judges = [...Object.keys(bookJudges), ...Object.keys(sceneJudges)];
    const silent = catalogue.flatMap((entry) => {
      if ('leftOut' in entry) return entry.leftOut.length > 10 ? [] : [entry.id];
      const wrong = entry.judgedBy.filter((name) => {
        if (!judges.includes(name)) return true;
        return !readFileSync(join(folder, `${name}.ts`), 'utf8').includes(`'${entry.id}'`);
      });
      return entry.judgedBy.length === 0 || wrong.length > 0 ? [`${entry.id} ${wrong.join(' ')}`] : [];
    });
    expect(silent).toEqual([]);
  });

  it('has every invariant of which a judge speaks', () => {
    const named = catalogue.flatMap((entry) => ('judgedBy' in entry ? entry.judgedBy.map((name) => `${name} ${entry.id}`) : []));
    const said = [...Object.keys(bookJudges), ...Object.keys(sceneJudges)].flatMap((name) => {
      const text = readFileSync(join(folder, `${name}.ts`), 'utf8');
      return [...new Set([...text.matchAll(/'([SL]\d+)'/g)].map(([, id]) => `${name} ${id}`))];
    });
    expect(said.filter((one) => !named.includes(one))).toEqual([]);
  });

  it('has a test that finds each one that is judged', () => {
    const tests = [...Object.keys(bookJudges), ...Object.keys(sceneJudges)];
    const text = tests.map((name) => readFileSync(join(import.meta.dirname, `${name}.test.ts`), 'utf8')).join('\n');
    const untested = catalogue.filter((entry) => 'judgedBy' in entry && !text.includes(`'${entry.id}'`)).map(({ id }) => id);
    expect(untested).toEqual([]);
  });
});
