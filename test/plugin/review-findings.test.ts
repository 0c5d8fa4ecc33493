// The verb review: the approved plan of a change, the places of findings, and equal effects in several groups and environments.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { runInProcess } from './in-process.ts';
import { ScratchRepository } from './review-kit.ts';

/** Returns a policy for all groups with these rules in YAML. */
function policyWith(rules: string): string {
  return `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: reviewed, namespace: shop }
spec:
  targets: { all: true }
  rules:${rules}
`;
}

describe('a review of an approved plan', () => {
  const repository = new ScratchRepository('quick-start');
  const plans = mkdtempSync(join(tmpdir(), 'plans-'));

  const reviewed = policyWith(`
    - name: as-approved
      actions: [rollout]
      effect: requireApprovedPlan
      message: a release manager reads each plan
      approval: { count: 1, from: [release-managers] }`);

  async function review(head: string, ...words: readonly string[]): Promise<string> {
    const dirs = ['--policies', 'policies', '--manifests', 'manifests'];
    return (await runInProcess(['review', '--base', 'main', '--head', head, ...dirs, ...words], { cwd: repository.root })).stdout;
  }

  /** Commits a branch from another one. */
  function commit(name: string, from: string, change: () => void): void {
    repository.git('checkout', '--quiet', '-b', name, from);
    change();
    repository.commit(name);
  }

  function setImage(version: string): void {
    for (const zone of ['a', 'b', 'c']) repository.replace(`manifests/cache-${zone}.yaml`, /image: (\S+):\S+/g, `image: $1:${version}`);
  }

  /** Writes the annotations of the file that `review --out` wrote into the manifests. */
  function annotate(): void {
    for (const document of parseAllDocuments(readFileSync(join(plans, 'default.yaml'), 'utf8'))) {
      const { metadata } = document.toJS();
      repository.replace(
        `manifests/${metadata.name}.yaml`,
        /^metadata:\n/gm,
        `metadata:\n  ${stringify({ annotations: metadata.annotations }, { lineWidth: 0 }).trim().replace('\n', '\n  ')}\n`,
      );
    }
  }

  beforeAll(async () => {
    repository.write('policies/reviewed.yaml', reviewed);
    repository.commit('reviewed');
    commit('unplanned', 'main', () => setImage('9.0.0'));
    await review('unplanned', '--out', plans);
    commit('planned', 'unplanned', annotate);
    commit('stale', 'planned', () => setImage('9.1.0'));
    commit('unruled', 'stale', () => rmSync(join(repository.root, 'policies/reviewed.yaml')));
  });

  afterAll(() => {
    repository.remove();
    rmSync(plans, { recursive: true });
  });

  it('names the required approval of a rule, and the differences of the rollout from its approved plan', async () => {
    const shown = async (head: string) => {
      const text = (await review(head)).replaceAll(/plan [0-9a-f]{16}/g, 'plan ID');
      return text.split('\n').filter((line) => /^(?:APPROVAL|RISKS)/.test(line));
    };
    expect({
      unplanned: await shown('unplanned'),
      planned: await shown('planned'),
      stale: await shown('stale'),
      unruled: await shown('unruled'),
    }).toMatchInlineSnapshot(`
    {
      "planned": [],
      "stale": [
        "APPROVAL reviewed/as-approved: a release manager reads each plan; the pod template of zone a is not the approved one; the pod template of zone b is not the approved one; the pod template of zone c is not the approved one; 0 of 1 approvals from release-managers (policies/reviewed.yaml:7:7)",
        "RISKS    RG5020 warning  the rollout differs from its approved plan ID: the pod template of zone a is not the approved one; the pod template of zone b is not the approved one; the pod template of zone c is not the approved one",
      ],
      "unplanned": [
        "APPROVAL reviewed/as-approved: a release manager reads each plan; no StatefulSet names an approved plan; 0 of 1 approvals from release-managers (policies/reviewed.yaml:7:7)",
      ],
      "unruled": [
        "RISKS    RG5020 warning  the rollout differs from its approved plan ID: the pod template of zone a is not the approved one; the pod template of zone b is not the approved one; the pod template of zone c is not the approved one; RolloutPolicy shop/reviewed was removed after the review",
      ],
    }
  `);
  });
});

describe('a review of a finding', () => {
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
});

describe('a review of several groups in two environments', () => {
  const repository = new ScratchRepository('quick-start');
  const environments = ['staging', 'production'];
  const groups = ['cache', 'queue', 'store'];

  const reviewed = policyWith(`
    - { name: no-restart, actions: [restart], effect: deny }`);

  beforeAll(() => {
    const files = ['policies/cache.yaml', ...['a', 'b', 'c'].map((zone) => `manifests/cache-${zone}.yaml`)];
    for (const environment of environments) {
      for (const group of groups) {
        for (const file of files) {
          const text = readFileSync(join(repository.root, file), 'utf8')
            .replaceAll(/image: \S+:/g, 'image: app:')
            .replaceAll('cache', group);
          repository.write(`${environment}/${file.replace('cache', group)}`, text);
        }
      }
      repository.write(`${environment}/policies/reviewed.yaml`, reviewed);
      repository.write(
        `${environment}/manifests/config.yaml`,
        'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: config, namespace: shop }\n',
      );
    }
    const entries = environments.map((name) => `{ name: ${name}, policies: ${name}/policies, manifests: ${name}/manifests }`);
    repository.write('rollout-group.yaml', `environments: [${entries.join(', ')}]\n`);
    repository.commit('two environments');
    repository.branch('policy', () => {
      for (const name of environments) rmSync(join(repository.root, name, 'policies/reviewed.yaml'));
      repository.write('staging/manifests/config.yaml', 'apiVersion: v1\nkind: Secret\nmetadata: { name: config, namespace: shop }\n');
      repository.write(
        'production/manifests/config.yaml',
        'kind: ConfigMap\napiVersion: v1\nmetadata: { name: config, namespace: shop }\ndata: { a: b }\n',
      );
    });
    repository.branch('image', () => {
      for (const name of environments)
        for (const group of groups)
          for (const zone of ['a', 'b', 'c'])
            repository.replace(`${name}/manifests/${group}-${zone}.yaml`, /image: (\S+):\S+/g, 'image: $1:9.0.0');
    });
    repository.branch('budget', () => {
      const spec = '{ maxUnavailable: 1, selector: { matchLabels: { app: queue } } }';
      const head = 'apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: { name: queue, namespace: shop }';
      repository.write('staging/manifests/budget.yaml', `${head}\nspec: ${spec}\n`);
    });
    const from = '{ apiVersion: example.com/v1, kind: ReplicaTemplate, name: cache, read: scale }';
    repository.branch('mirror', () => repository.replace('staging/policies/cache.yaml', 'leader: true', `mirror: { from: ${from} }`));
    repository.git('checkout', '--quiet', '-b', 'other', 'mirror');
    repository.write('README.md', 'Nothing rolls.\n');
    repository.commit('other');
    repository.git('checkout', '--quiet', 'main');
  });

  afterAll(() => repository.remove());

  async function review(head: string, words: readonly string[] = [], base = 'main'): Promise<string> {
    const { stdout } = await runInProcess(['review', '--base', base, '--head', head, '--width', '100', ...words], { cwd: repository.root });
    return stdout;
  }

  it('names the decisions of a policy for several groups once, and counts its effect once', async () => {
    expect(await review('policy')).toMatchInlineSnapshot(`
    "Review  main..policy   1 loosened, 3 other objects
    ENVIRONMENT  PLAN        LOOSENED  OBJECTS
    staging      no changes  1         2
    production   no changes  1         1
    LOOSENED  RolloutPolicy shop/reviewed is removed: the StatefulSets of zones a, b and c may be
              restarted (was: denied by reviewed/no-restart) (staging/policies/reviewed.yaml:1:1 and 1
              more place)
    OBJECT    staging: ConfigMap shop/config deleted, in no group
    OBJECT    staging: Secret shop/config created, in no group
    OBJECT    production: ConfigMap shop/config changed: data.a, in no group

    RolloutPolicy shop/reviewed is removed
      • the StatefulSets of zones a, b and c may be restarted (was: denied by reviewed/no-restart)
      • in shop/cache, shop/queue and shop/store
    "
  `);
    expect((await review('policy', ['-o', 'markdown'])).split('\n').slice(1, 12)).toMatchInlineSnapshot(`
    [
      "### Rollout review of 2 environments: 1 loosened, 3 other objects",
      "",
      "| environment | plan | loosened | objects |",
      "| --- | --- | --- | --- |",
      "| staging | no changes | 1 | 2 |",
      "| production | no changes | 1 | 1 |",
      "",
      "**Loosened**",
      "",
      "- RolloutPolicy shop/reviewed is removed: the StatefulSets of zones a, b and c may be restarted (was: denied by reviewed/no-restart) (\`staging/policies/reviewed.yaml:1:1 and 1 more place\`)",
      "  - in shop/cache, shop/queue and shop/store",
    ]
  `);
  });

  it('shows the same rollout of several groups as one row', async () => {
    expect((await review('image')).split('\n').slice(0, 12)).toMatchInlineSnapshot(`
    [
      "Review  main..image   54 restarts",
      "ENVIRONMENT  PLAN       RESTARTS",
      "staging      completes  27",
      "production   completes  27",
      "ROLLOUT   shop/cache and 2 more groups, each: image app:1.0.0 -> app:9.0.0, 9 restarts, 1 approval,",
      "          2m3s (p90 6m15s)",
      "",
      "shop/cache and 2 more groups, each: image app:1.0.0 -> app:9.0.0, 9 restarts, 1 approval, 2m3s (p90",
      "6m15s)",
      "  • in shop/cache, shop/queue and shop/store",
      "",
      "staging",
    ]
  `);
  });

  it('has the outcome of the shown groups, and not of a group that waits without the change', async () => {
    const { environments } = JSON.parse(await review('other', ['-o', 'json'], 'mirror'));
    expect(environments.map(({ plan }: { readonly plan: { readonly outcome: string } }) => plan.outcome)).toEqual(['waits', 'unchanged']);
    const text = await review('other', ['-o', 'markdown'], 'mirror');
    expect(text).toMatch(/^<!-- rollout-group:review env=staging,production outcome=unchanged,unchanged .*\n### .*: no effect\n/);
  });

  it('reports that no pod restarts if the change of a group replaces no pod', async () => {
    const lines = (await review('budget')).split('\n');
    expect(lines.filter((line) => line.startsWith('ROLLOUT'))).toEqual(['ROLLOUT   staging: shop/queue: no pod restarts']);
  });
});
