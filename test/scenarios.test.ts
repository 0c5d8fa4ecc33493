import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ruleCatalog } from '../engine/rules/catalog.ts';
import { commands, playScenario } from './scenarios/play.ts';

const folder = join(import.meta.dirname, 'scenarios');

/** `UPDATE=1 npx vitest run test/scenarios.test.ts` writes what is printed now into the files. */
const isUpdating = process.env['UPDATE'] === '1';

const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.txt'))
  .sort();

/** Rules that no story tells, with where they are told. */
const untold: Readonly<Record<string, string>> = {
  'agent-access': 'a story gives the agent every right; test/engine/rules/agent-access.test.ts',
  'approved-plan': 'it only warns; test/engine/run/approved-plan.test.ts',
  drift: 'a story has no managed fields; test/engine/diff/field-writers.test.ts',
  'granted-before':
    'what others refuse after admission; test/engine/judge/admission-claims.test.ts and test/webhook/native/enforce-race.test.ts',
  'in-no-wave': 'it only warns, as in waves-leave-pods-out',
  'ledger-full': 'a hundred claims are no story; test/engine/rules has the table',
  'ordinals-kept': 'a write that the stories do not have; test/engine/judge/admission-claims.test.ts',
  'pin-applied': 'the webhook of a story is always there; test/engine/strategies/pinned/pins.test.ts',
  'pin-webhook': 'the webhook of a story is always there; test/engine/strategies/pinned/pins.test.ts',
  'protection-kept': 'what admission alone remembers; test/engine/judge/protection.test.ts and test/webhook/native/enforce.test.ts',
  'restart-version': 'it only warns; test/engine/strategies/partition/partition.test.ts',
  'revision-known': 'a story knows every revision; test/engine/strategies/pinned/pins.test.ts',
  'rolled-back': 'it only warns, as in failure-rolls-back',
  'updated-by-restart': 'it only warns; test/engine/strategies/on-delete.test.ts',
  'write-accepted': 'the API server of a story rejects nothing; test/engine/rules/refused-write.test.ts',
  'zone-images': 'the StatefulSets of a story have no images; test/engine/decide/roll.test.ts',
  'zones-returned': 'no story returns only some zones; test/engine/decide/roll-wave.test.ts',
};

describe('scenarios', () => {
  for (const name of files) {
    it(name.slice(0, -'.txt'.length).replaceAll('-', ' '), () => {
      const path = join(folder, name);
      const written = readFileSync(path, 'utf8');
      const played = playScenario(written);
      if (isUpdating && played.text !== written) writeFileSync(path, played.text);
      if (!isUpdating) expect(played.text).toBe(written);
      expect(played.violations).toEqual([]);
      expect(written, 'the first line says what the story protects').toMatch(/^# Protects: /);
    });
  }

  const stories = files.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');

  it('use every command', () => {
    const unused = Object.keys(commands).filter((name) => !new RegExp(`^${name}\\b`, 'm').test(stories));
    expect(unused).toEqual([]);
  });

  it('show every rule that can block', () => {
    const holding = ruleCatalog.filter(({ outcomes }) => outcomes.some((outcome) => outcome !== 'ok' && outcome !== 'skip'));
    const missing = holding.filter(({ id }) => !new RegExp(`\\b(?:wait|no|unknown) ${id}:|waits for .*\\b${id}\\b`).test(stories));
    expect(missing.map(({ id }) => id)).toEqual(Object.keys(untold));
  });
});
