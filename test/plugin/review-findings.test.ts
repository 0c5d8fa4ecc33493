// The findings of the verb review: each has the place of its cause, and the same severity in every format.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { runInProcess } from './in-process.ts';
import { ScratchRepository } from './review-kit.ts';

const repository = new ScratchRepository('quick-start');

beforeAll(() => {
  repository.branch('failing', () => repository.replace('policies/cache.yaml', 'noDelete: true', 'noDelete: false'));
  repository.branch('unreadable', () => repository.replace('tests/cache.yaml', 'files: [', 'files: [../missing.yaml, '));
  repository.branch('broken', () => {
    repository.replace('tests/cache.yaml', 'files: [', 'files: [other.yaml, ');
    repository.write(
      'tests/other.yaml',
      'apiVersion: rollout-group.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: { name: x, namespace: shop }\n',
    );
  });
  repository.branch('misspelled', () => repository.replace('tests/cache.yaml', 'clock:', 'clocks:'));
});

afterAll(() => repository.remove());

async function review(head: string, ...words: readonly string[]): Promise<string> {
  const dirs = ['--policies', 'policies', '--manifests', 'manifests', '--tests', 'tests'];
  return (await runInProcess(['review', '--base', 'main', '--head', head, ...dirs, ...words], { cwd: repository.root })).stdout;
}

it.each<readonly [string, readonly (readonly [place: string, text: string])[]]>([
  ['failing', [['line=16,col=7', 'a StatefulSet may not be deleted: the decision is allow, expected is deny']]],
  ['misspelled', [['line=8,col=3', 'the file has no errors: ']]],
  [
    'unreadable',
    [
      ['line=6,col=10', 'the files can be read: '],
      ['line=31,col=10', 'the files can be read: '],
    ],
  ],
  [
    'broken',
    [
      ['line=6,col=10', 'the files have no errors: '],
      ['line=31,col=10', 'the files have no errors: '],
    ],
  ],
])('has the place of each policy test that is %s', async (head, expected) => {
  const lines = (await review(head, '-o', 'github')).split('\n').filter((line) => line.includes('RG8005'));
  expect(lines).toEqual(
    expected.map(([place, text]) => expect.stringContaining(`::error file=tests/cache.yaml,${place},title=RG8005::${text}`)),
  );
  const { environments } = JSON.parse(await review(head, '-o', 'json'));
  const { failures } = environments[0].tests.head;
  const places = failures.map(({ file, line, column }: Record<string, unknown>) => [file, `line=${line},col=${column}`]);
  expect(places).toEqual(expected.map(([place]) => ['tests/cache.yaml', place]));
});

it('has the same severity in each format, and fails a JUnit report only if it fails the command', async () => {
  expect(await review('failing', '-o', 'github')).toContain('::warning file=policies/cache.yaml,line=33,col=5,title=RG8001::');
  const passing = await review('failing', '-o', 'junit');
  expect(passing).toContain('warning RG8001');
  expect(passing).toContain('failures="1"');
  expect(await review('failing', '-o', 'junit', '--fail-on', 'loosened')).toContain('failures="2"');
});

it('has the place of the label, annotation or budget that changes the decisions of a drop-in group', async () => {
  const adopted = new ScratchRepository();
  onTestFinished(() => adopted.remove());
  const budget = (count: number) => {
    const selector = 'selector: { matchLabels: { rollout-group: ingester } }';
    const head = 'apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: ingester\n  namespace: mimir\n';
    adopted.write('manifests-adopted/budget.yaml', `${head}spec: { maxUnavailable: ${count}, ${selector} }\n`);
  };
  budget(1);
  adopted.commit('a budget');
  adopted.branch('looser', () => {
    budget(2);
    for (const zone of ['a', 'b', 'c'])
      adopted.replace(`manifests-adopted/ingester-zone-${zone}.yaml`, '-downscale: 13h', '-downscale: 1h');
  });
  adopted.branch('unlimited', () => rmSync(join(adopted.root, 'manifests-adopted/budget.yaml')));
  const found = async (head: string) => {
    const words = ['review', '--base', 'main', '--head', head, '--manifests', 'manifests-adopted', '-o', 'github'];
    const { stdout } = await runInProcess(words, { cwd: adopted.root });
    return stdout.split('\n').flatMap((line) => /file=(\S+),title=RG8001::(.*?): /.exec(line)?.slice(1).join(' ') ?? []);
  };
  expect([await found('looser'), await found('unlimited')]).toMatchInlineSnapshot(`
    [
      [
        "manifests-adopted/budget.yaml,line=4,col=9 the PodDisruptionBudget of mimir/ingester no longer requires 8 healthy pods",
        "manifests-adopted/ingester-zone-b.yaml,line=25,col=51 the time between zones of mimir/ingester falls from 13h to 1h",
        "manifests-adopted/ingester-zone-a.yaml,line=34,col=44 the delay of a scale-down of mimir/ingester falls from 13h to 1h",
      ],
      [
        "manifests-adopted/budget.yaml,line=4,col=9 the PodDisruptionBudget of mimir/ingester no longer requires 8 healthy pods",
      ],
    ]
  `);
});
