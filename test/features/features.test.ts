import { describe, expect, it } from 'vitest';
import { faults } from './faults.ts';
import { rowsBeyond } from './rows-beyond.ts';
import { judgingRows } from './rows-judging.ts';
import { movingRows } from './rows-moving.ts';
import { tellingRows } from './rows-telling.ts';
import { problemsOf, type Row } from './table.ts';

const rows: readonly Row[] = [...movingRows, ...judgingRows, ...tellingRows];

/** Rows of which a part is open. Whoever closes one lowers it; it is never raised. */
const openRows = 2;
const openFaults = 0;

const numbers = (from: number, to: number): readonly number[] => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const openOf = (table: readonly Row[]) => table.filter(({ open }) => open !== undefined);
const told = (table: readonly Row[]) => openOf(table).map(({ id, open }) => `\n      OPEN ${id}: ${open}`);

describe('the features of rollouts', () => {
  it('has every row once, and says of the others why they are out of scope', () => {
    expect(rows.map(({ id }) => id)).toEqual([...numbers(1, 35), ...numbers(42, 56)]);
    expect(rowsBeyond.map(({ id }) => id)).toEqual(numbers(36, 41));
    expect(rowsBeyond.filter(({ what, why }) => what.length < 10 || why.length < 20)).toEqual([]);
  });

  it.each(rows.map((row) => [row.id, row.what, row] as const))(
    '%d, %s: is shown by tests that are there, run and expect something',
    (_id, _what, row) => {
      expect(problemsOf(row)).toEqual([]);
    },
  );

  // The title is what every run prints.
  it(`is open in part in ${openOf(rows).length} of ${rows.length} rows${told(rows).join('')}`, () => {
    expect(openOf(rows)).toHaveLength(openRows);
  });
});

describe('the faults of before', () => {
  it('are all there, each once', () => {
    expect(faults.map(({ id }) => id)).toEqual(numbers(1, 10));
  });

  it.each(faults.map((fault) => [fault.id, fault.what, fault] as const))('%d, %s: is not here, as tests show', (_id, _what, fault) => {
    expect(problemsOf(fault)).toEqual([]);
  });

  it(`are open in part in ${openOf(faults).length} of ${faults.length}${told(faults).join('')}`, () => {
    expect(openOf(faults)).toHaveLength(openFaults);
  });
});

describe('a row', () => {
  const row: Row = { id: 1, what: 'somebody can do this', here: 'we do it in our own way', tests: [] };
  const named = (file: string, title: string): Row => ({ ...row, tests: [{ file, title }] });
  const own = 'test/features/features.test.ts';

  it('without a test, without words, open without a reason, or with a test that is not there or empty is found', () => {
    expect(problemsOf(row)).toEqual(['row 1: no test shows it']);
    expect(problemsOf({ ...row, here: '' })).toHaveLength(2);
    expect(problemsOf({ ...row, open: 'later' })).toEqual(['row 1: it is open without a reason']);
    expect(problemsOf({ ...row, open: 'nobody has thought of a way to show it yet' })).toEqual([]);
    expect(problemsOf(named('test/features/nowhere.test.ts', 'x'))[0]).toContain('there is no such file');
    expect(problemsOf(named(own, 'a title of no test'))[0]).toContain('there is no test of this title');
    expect(problemsOf(named(own, 'are all there, each once'))).toEqual([]);
  });
});
