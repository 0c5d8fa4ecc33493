import { describe, expect, it } from 'vitest';
import { isScalar, parseAllDocuments, visit } from 'yaml';
import { planGroups } from '../../engine/plan/plan.ts';
import { loadPolicies, type PolicyFile } from '../../policies/load.ts';
import { planInput } from '../kit/manifests.ts';
import { shareOf } from '../kit/share.ts';
import { bundleOf, exampleNames, filesBelow } from './examples.ts';

const extremes = ['0', '-1', '0.5', '5001', '2147483647', '2147483648', '-2147483649', '9007199254740991', '1e300', '.inf', '.nan'];
/** The longest text of a plan that stays readable by a machine. */
const mostCharacters = 5_000_000;

interface NumberInFile {
  readonly file: PolicyFile;
  /** The kind of the object and the path of the field. */
  readonly field: string;
  readonly start: number;
  readonly end: number;
}

/** Returns the first occurrence of each number field in the files. */
function numbersIn(files: readonly PolicyFile[]): readonly NumberInFile[] {
  const found = new Map<string, NumberInFile>();
  for (const file of files) {
    for (const document of parseAllDocuments(file.text)) {
      if (!('contents' in document)) continue;
      visit(document, {
        Scalar: (_key, node, path) => {
          if (typeof node.value !== 'number' || node.range == null) return;
          const keys = path.flatMap((one) => ('key' in one && isScalar(one.key) ? [String(one.key.value)] : []));
          const field = [String(document.get('kind')), ...keys].join('.');
          const [start, end] = node.range;
          if (!found.has(field)) found.set(field, { file, field, start, end });
        },
      });
    }
  }
  return [...found.values()];
}

function withText({ file, start, end }: NumberInFile, number: string): PolicyFile {
  return { name: file.name, text: file.text.slice(0, start) + number + file.text.slice(end) };
}

describe.each(exampleNames)('a number of examples/%s at its extremes', (name) => {
  const files = filesBelow(`examples/${name}`).filter(({ name: file }) => !file.includes('/tests/'));

  it('is a finding, or the plan with it is bounded', () => {
    const numbers = numbersIn(files);
    expect(numbers.length).toBeGreaterThan(5);
    for (const one of shareOf(numbers, 5)) {
      for (const number of extremes) {
        const load = loadPolicies(files.map((file) => (file === one.file ? withText(one, number) : file)));
        const { groups, policies, exceptions } = bundleOf(load.documents, load);
        const current = load.manifests.map(({ value }) => value);
        const desired = load.manifests.map(({ value }) => JSON.parse(JSON.stringify(value).replace(/("image":"[^"]+)"/g, '$1-next"')));
        const plan = planGroups(planInput({ groups, policies, exceptions, current, desired }));
        expect(JSON.stringify(plan).length, `${one.field}: ${number}`).toBeLessThan(mostCharacters);
      }
    }
  });
});
