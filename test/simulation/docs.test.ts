import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { faultClasses } from '../../simulation/faults/fault.ts';
import { highestRate } from '../../simulation/search/draw.ts';

const text = readFileSync('docs/simulation.md', 'utf8');

/** The cells of each line of a table that begins with such an id. */
function rows(id: RegExp): readonly (readonly string[])[] {
  return text
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter(([, first = '']) => id.test(first))
    .map((cells) => cells.slice(1, -1));
}

it('names every class of faults, once and in order', () => {
  expect(rows(/^F\d+$/).map(([name]) => name)).toEqual([...faultClasses]);
});

it('gives each class the range from which its rate is drawn', () => {
  const wrong = rows(/^F\d+$/).filter(([name = '', , , range = '']) => {
    const rate = highestRate[name as keyof typeof highestRate];
    const written = /0 to ([\d.]+) %/.exec(range)?.[1];
    return rate === undefined ? written !== undefined : Number(written) !== rate * 100;
  });
  expect(wrong).toEqual([]);
});

it('names every invariant that is judged, and no other', () => {
  const folder = 'simulation/oracles';
  const sources = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'));
  const judged = new Set(sources.flatMap((source) => source.match(/(?<=['"`])[SL]\d+p?(?=['"`])/g) ?? []));
  expect([...judged].sort()).toEqual(
    rows(/^[SL]\d+p?$/)
      .map(([id = '']) => id)
      .sort(),
  );
});
