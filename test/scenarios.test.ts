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

/** Rules that no scenario shows, with the reason and the test that shows them. */
const untold: Readonly<Record<string, string>> = {
  'agent-access': 'the agent of a scenario has all permissions; test/engine/rules/agent-access.test.ts',
  'approved-plan': 'it only warns; test/engine/run/approved-plan.test.ts',
  drift: 'the objects of a scenario have no managed fields; test/engine/diff/field-writers.test.ts',
  'granted-before':
    'a denial by another webhook is not in a scenario; test/engine/judge/admission-claims.test.ts and test/webhook/native/enforce-race.test.ts',
  'in-no-wave': 'it only warns, as in waves-leave-pods-out',
  'ledger-full': 'a scenario with a hundred claims would be too long; test/engine/rules has the table',
  'ordinals-kept': 'no scenario changes the start ordinal; test/engine/judge/admission-claims.test.ts',
  'pin-applied': 'the webhook of a scenario always runs; test/engine/strategies/pinned/pins.test.ts',
  'pin-webhook': 'the webhook of a scenario always runs; test/engine/strategies/pinned/pins.test.ts',
  'protection-kept': 'only admission checks it; test/engine/judge/protection.test.ts and test/webhook/native/enforce.test.ts',
  'restart-version': 'it only warns; test/engine/strategies/partition/partition.test.ts',
  'revision-known': 'every revision of a scenario is known; test/engine/strategies/pinned/pins.test.ts',
  'rolled-back': 'it only warns, as in failure-rolls-back',
  'updated-by-restart': 'it only warns; test/engine/strategies/on-delete.test.ts',
  'write-accepted': 'the API server of a scenario rejects no write; test/engine/rules/refused-write.test.ts',
  'zone-images': 'the StatefulSets of a scenario have no images; test/engine/decide/roll.test.ts',
  'zones-returned': 'no scenario returns only some zones; test/engine/decide/roll-wave.test.ts',
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
      expect(written, 'the first line says what the scenario protects').toMatch(/^# Protects: /);
    });
  }

  const scenarios = files.map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');

  it('use every command', () => {
    const unused = Object.keys(commands).filter((name) => !new RegExp(`^${name}\\b`, 'm').test(scenarios));
    expect(unused).toEqual([]);
  });

  it('show every rule that can block', () => {
    const blocking = ruleCatalog.filter(({ outcomes }) => outcomes.some((outcome) => outcome !== 'ok' && outcome !== 'skip'));
    const missing = blocking.filter(({ id }) => !new RegExp(`\\b(?:wait|no|unknown) ${id}:|waits for .*\\b${id}\\b`).test(scenarios));
    expect(missing.map(({ id }) => id)).toEqual(Object.keys(untold));
  });
});
