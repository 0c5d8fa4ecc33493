import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { playScenario } from './scenarios/play.ts';

const folder = join(import.meta.dirname, 'scenarios');

/** `UPDATE=1 npx vitest run test/scenarios.test.ts` writes what is printed now into the files. */
const isUpdating = process.env['UPDATE'] === '1';

const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.txt'))
  .sort();

describe('scenarios', () => {
  for (const name of files) {
    it(`${name.slice(0, -'.txt'.length).replaceAll('-', ' ')}`, () => {
      const path = join(folder, name);
      const written = readFileSync(path, 'utf8');
      const played = playScenario(written);
      if (isUpdating && played.text !== written) writeFileSync(path, played.text);
      if (!isUpdating) expect(played.text).toBe(written);
      expect(played.violations).toEqual([]);
      expect(written, 'the first line says what the story protects').toMatch(/^# /);
    });
  }
});
