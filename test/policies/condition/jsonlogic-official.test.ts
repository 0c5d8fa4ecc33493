import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { evaluateCondition } from '../../../policies/condition/condition.ts';

const suitePath = '../shared/real/jsonlogic/tests.json';
const isPresent = existsSync(suitePath);

/** Cases that read a variable which the data does not have, by number from 1. The suite expects null or nothing there; we answer unknown. */
const readsAbsent: readonly (readonly [number, path: string])[] = [
  [192, 'b'],
  [193, 'a'],
  [195, 'b'],
  [196, 'a'],
  [200, 'a.q'],
  [208, 'a.b.c'],
  [209, 'a.b.c'],
  [210, 'a.b.c'],
  [247, 'integers'],
  [250, 'integers'],
];

type Case = readonly [rule: unknown, data: unknown, expected: unknown];

function officialCases(): readonly Case[] {
  const entries: readonly (string | Case)[] = JSON.parse(readFileSync(suitePath, 'utf8'));
  return entries.filter((entry) => typeof entry !== 'string');
}

const title = isPresent
  ? 'the official JsonLogic suite'
  : `SKIPPED: the official JsonLogic suite, because ${suitePath} is not there (a copy is at https://jsonlogic.com/tests.json)`;

describe.skipIf(!isPresent)(title, () => {
  const cases = isPresent ? officialCases() : [];
  const absent = new Map(readsAbsent);

  it('gives the expected result in 267 of the 277 cases', () => {
    const failed = cases.flatMap(([rule, data, expected], index) => {
      const result = evaluateCondition(rule, data, 0);
      const isSame = result.kind === 'value' && JSON.stringify(result.value) === JSON.stringify(expected);
      return isSame ? [] : [index + 1];
    });
    expect(cases.length).toBe(277);
    expect(failed).toEqual(readsAbsent.map(([number]) => number));
  });

  it('is unknown in the other ten, which read an absent variable', () => {
    const answers = cases.flatMap(([rule, data], index) => {
      const result = evaluateCondition(rule, data, 0);
      return absent.has(index + 1) ? [[index + 1, result]] : [];
    });
    expect(answers).toEqual(readsAbsent.map(([number, path]) => [number, { kind: 'unknown', paths: [path], reason: 'absent' }]));
  });
});
