// The verb review on several groups in two environments: one row for equal effects, and the same counts in every part of the output.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runInProcess } from './in-process.ts';
import { ScratchRepository } from './review-kit.ts';

const repository = new ScratchRepository('quick-start');
const environments = ['staging', 'production'];
const groups = ['cache', 'queue', 'store'];

const reviewed = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: reviewed, namespace: shop }
spec:
  targets: { all: true }
  rules:
    - { name: no-restart, actions: [restart], effect: deny }
`;

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

it('has the outcome of the groups that it shows, and not of a group that waits without the change', async () => {
  const { environments } = JSON.parse(await review('other', ['-o', 'json'], 'mirror'));
  expect(environments.map(({ plan }: { readonly plan: { readonly outcome: string } }) => plan.outcome)).toEqual(['waits', 'unchanged']);
  const text = await review('other', ['-o', 'markdown'], 'mirror');
  expect(text).toMatch(/^<!-- rollout-group:review env=staging,production outcome=unchanged,unchanged .*\n### .*: no effect\n/);
});

it('says that no pod restarts if the change of a group moves none', async () => {
  const lines = (await review('budget')).split('\n');
  expect(lines.filter((line) => line.startsWith('ROLLOUT'))).toEqual(['ROLLOUT   staging: shop/queue: no pod restarts']);
});
