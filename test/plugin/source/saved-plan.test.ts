import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { planGroups } from '../../../engine/plan/plan.ts';
import { Failure } from '../../../plugin/failure.ts';
import { readSavedPlan, savedPlan, shortDigest, writePlanFile } from '../../../plugin/source/saved-plan.ts';
import { planInput } from '../../kit/manifests.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { filesOf } from '../live-people.ts';

const content = {
  scope: { server: 'https://x', namespaces: ['mimir'], groups: ['mimir/ingester'], files: { manifests: [], policies: [] } },
  basis: [{ object: 'StatefulSet mimir/a', uid: 'u', parts: { replicas: '3' } }],
  objects: [{ kind: 'StatefulSet', metadata: { name: 'a' } }],
  plan: planGroups(planInput()),
};

function failureOf(path: string, cwd: string): readonly [number, string] {
  try {
    readSavedPlan(path, cwd);
  } catch (error) {
    if (error instanceof Failure) return [error.exitCode, error.details.why ?? error.details.what];
    throw error;
  }
  throw new Error('it was read');
}

describe('a saved plan', () => {
  it('is the same after saving and reading, readable only by its owner', () => {
    const cwd = filesOf({});
    const saved = savedPlan(content, kitNowMs);
    writeFileSync(join(cwd, 'the.plan'), 'an older file', { mode: 0o644 });
    writePlanFile(saved, 'the.plan', cwd);
    expect(readSavedPlan('the.plan', cwd)).toEqual(JSON.parse(JSON.stringify(saved)));
    expect(statSync(join(cwd, 'the.plan')).mode & 0o777).toBe(0o600);
  });

  it('has the same digest for the same content at any time', () => {
    const digest = savedPlan(content, kitNowMs).metadata.digest;
    expect(savedPlan(content, kitNowMs + 1).metadata.digest).toBe(digest);
    expect(savedPlan({ ...content, objects: [] }, kitNowMs).metadata.digest).not.toBe(digest);
    expect(shortDigest(digest)).toMatch(/^[0-9a-f]{16}$/);
  });

  it('is rejected after any change', () => {
    const cwd = filesOf({});
    writePlanFile(savedPlan(content, kitNowMs), 'the.plan', cwd);
    const text = readFileSync(join(cwd, 'the.plan'), 'utf8');
    for (const [what, instead] of [
      ['"replicas": "3"', '"replicas": "4"'],
      ['"name": "a"', '"name": "b"'],
      ['https://x', 'https://y'],
      ['"mimir"', '"loki"'],
    ] as const) {
      expect(text).toContain(what);
      writeFileSync(join(cwd, 'changed.plan'), text.replace(what, instead));
      expect(failureOf('changed.plan', cwd)).toEqual([3, 'its content does not match its digest: it was changed or truncated']);
    }
  });

  it('is rejected if the file has another kind or version', () => {
    const cwd = filesOf({ 'files.plan': content.plan, 'text.plan': 'plan', 'list.plan': [], 'old.plan': { kind: 'SavedPlan' } });
    expect(failureOf('files.plan', cwd)).toEqual([3, 'it was made from manifests, so the running state is unknown']);
    expect(failureOf('text.plan', cwd)).toEqual([3, 'it is not a saved plan']);
    expect(failureOf('list.plan', cwd)).toEqual([3, 'it is not a saved plan of this version']);
    expect(failureOf('old.plan', cwd)).toEqual([3, 'it is not a saved plan of this version']);
    expect(failureOf('no.plan', cwd)[0]).toBe(10);
    expect(() => writePlanFile({}, 'no/such/folder/x', cwd)).toThrow(Failure);
  });

  it('is no manifest and no directory of manifests: the message names -f', () => {
    const cwd = filesOf({ 'group.yaml': 'kind: RolloutGroup', 'group.json': { apiVersion: 'apps/v1', kind: 'StatefulSet' } });
    for (const path of ['group.yaml', '.', 'group.json']) {
      const read = (): unknown => readSavedPlan(path, cwd);
      expect(read).toThrow(`${path} cannot be applied`);
      expect(read, path).toThrow(
        expect.objectContaining({ details: expect.objectContaining({ todo: expect.stringContaining(`apply -f ${path}`) }) }),
      );
    }
  });
});
