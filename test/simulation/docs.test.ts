import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { newTally, reportLines, tally } from '../../scripts/soak/report.ts';
import { scenarioOf } from '../../scripts/soak/search/draw.ts';
import { featuresOf } from '../../scripts/soak/search/features.ts';
import { failureIds } from '../../scripts/soak/search/judge.ts';
import { highestRate } from '../../simulation/faults/drawn.ts';
import { faultClasses } from '../../simulation/faults/fault.ts';
import { catalogue } from './oracles/catalogue.ts';

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

it('shows for every invariant of the catalogue its judge and scope, or why it has no judge', () => {
  const expected = catalogue.map((entry) => {
    if ('leftOut' in entry) return [entry.id, entry.title, '', `not judged: ${entry.leftOut}`];
    const { id, title, judgedBy, how, scope } = entry;
    const notes = [how, scope === 'native' ? 'native groups only' : undefined].filter((note) => note !== undefined);
    return [id, title, judgedBy.join(', '), notes.join('; ')];
  });
  expect(rows(/^[SL]\d+p?$/)).toEqual(expected);
});

it('names every other way in which a run can fail', () => {
  for (const id of [...Object.values(failureIds), 'error']) expect(text).toContain(`\`${id}\``);
});

it('quotes the features and requests of the seeds that a soak plays by default', () => {
  const counts = newTally(0n);
  const nothing = { faults: {}, crashes: {}, writes: {}, runs: 0, events: 0, virtualMs: 0, thread: 1, heapBytes: 0 };
  for (let seed = 1; seed <= 200; seed += 1) tally(counts, { ...nothing, seed, features: featuresOf(scenarioOf(seed)) });
  const lines = reportLines(counts);
  const from = lines.findIndex((line) => line.startsWith('feature'));
  expect(text).toContain(lines.slice(from, lines.indexOf('', from)).join('\n'));
});
