import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { survivors } from './catalogue/survivors.ts';
import { defects } from './catalogue.ts';
import { byFile, edited } from './defect.ts';
import { mutants } from './mutants.ts';

const allMutants = Object.values(mutants).flat();

describe('the catalogue of defects', () => {
  it('has at least 36 of them and 60 mutants, each with a unique name', () => {
    expect(defects.length).toBeGreaterThanOrEqual(36);
    expect(allMutants.length).toBeGreaterThanOrEqual(60);
    const ids = [...defects, ...survivors, ...allMutants].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((id) => !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(id))).toEqual([]);
  });

  it('edits the agent, the engine, the installation, the policies, the webhook and the cluster layer, and not their judges', () => {
    const others = [...defects, ...allMutants].flatMap(({ id, edits }) =>
      edits.filter(({ file }) => !/^(?:agent|engine|install|cluster|webhook|policies)\//.test(file)).map(() => id),
    );
    expect(others).toEqual([]);
  });

  it('describes the effect of each defect', () => {
    expect(defects.filter(({ breaks }) => breaks.length === 0)).toEqual([]);
  });

  for (const { id, edits } of [...defects, ...survivors, ...allMutants]) {
    it(`${id} replaces a passage that occurs exactly once`, () => {
      for (const [file, ofFile] of byFile(edits)) {
        const text = readFileSync(file, 'utf8');
        expect(edited(text, ofFile)).not.toBe(text);
      }
    });
  }

  it('rejects an edit with a missing or repeated passage', () => {
    const edit = { file: 'some.ts', find: 'one', replace: 'two' };
    expect(() => edited('nothing', [edit])).toThrow('some.ts has 0 times what a defect replaces once: one');
    expect(() => edited('one one', [edit])).toThrow('some.ts has 2 times what a defect replaces once: one');
    expect(() => edited('one', [edit, { ...edit, find: 'one', replace: 'three' }])).toThrow('two edits of some.ts overlap');
    expect(edited('one $& three', [edit])).toBe('two $& three');
  });
});
