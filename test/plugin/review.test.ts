// The verb review on a real Git repository with three pull requests: an image, shorter times, and a deleted policy file.
import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { readComment } from '../../plugin/forge/comment-text.ts';
import { runInProcess } from './in-process.ts';
import { ScratchRepository } from './review-kit.ts';

const repository = new ScratchRepository();
const nowMs = Date.parse('2026-11-26T10:00:00Z');

async function review(head: string, ...words: readonly string[]) {
  const dirs = ['--policies', 'policies', '--manifests', 'manifests'];
  return runInProcess(['review', '--base', 'main', '--head', head, ...dirs, '--width', '80', ...words], { cwd: repository.root, nowMs });
}

beforeAll(() => {
  repository.branch('image', () => {
    for (const zone of ['a', 'b', 'c'])
      repository.replace(`manifests/ingester-zone-${zone}.yaml`, /image: grafana\/mimir:\S+/g, 'image: grafana/mimir:9.0.0');
  });
  repository.branch('shorter', () => repository.replace('policies/ingester.yaml', '13h', '1h'));
  repository.branch('deleted', () => rmSync(join(repository.root, 'policies/calendar.yaml')));
  repository.branch('ungrouped', () => {
    rmSync(join(repository.root, 'policies/ingester.yaml'));
    repository.replace('manifests/ingester-zone-a.yaml', /image: grafana\/mimir:\S+/g, 'image: grafana/mimir:9.0.0');
  });
  repository.branch('ascending', () => repository.replace('policies/ingester.yaml', 'order: descending', 'order: ascending'));
  repository.branch('formatted', () => {
    repository.replace('policies/calendar.yaml', '[rollout, scaleDown, restart]', '[restart, rollout,   scaleDown]');
    for (const folder of ['policies', 'manifests']) {
      for (const name of readdirSync(join(repository.root, folder))) {
        const [from, to] = [`${folder}/${name}`, `${folder}/moved/x-${name}`];
        const documents = parseAllDocuments(readFileSync(join(repository.root, from), 'utf8')).map((document) => document.toJS());
        rmSync(join(repository.root, from));
        repository.write(
          to,
          documents.map((document) => stringify(reordered(document), { indent: 4, defaultStringType: 'QUOTE_DOUBLE' })).join('---\n'),
        );
      }
    }
  });
});

afterAll(() => repository.remove());

/** Returns the value with the fields of its objects in the opposite order. */
function reordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, part]) => [key, reordered(part)] as const);
  return Object.fromEntries(fields.reverse());
}

describe('review', () => {
  it('names each effect of a pull request in its first ten lines', async () => {
    const first = async (head: string) => (await review(head)).stdout.split('\n').slice(0, 10);
    expect({ image: await first('image'), shorter: await first('shorter'), deleted: await first('deleted') }).toMatchInlineSnapshot(`
      {
        "deleted": [
          "Review  main..deleted   1 loosened",
          "LOOSENED  RolloutPolicy mimir/calendar is removed: pods may be replaced at Thu",
          "          2026-11-26 16:00 UTC and in 6 more cases (was: waits by window), and 2",
          "          more decisions (policies/calendar.yaml:1:1)",
          "",
          "RolloutPolicy mimir/calendar is removed",
          "  • pods may be replaced at Thu 2026-11-26 16:00 UTC and in 6 more cases (was:",
          "    waits by window)",
          "  • zone a may shrink at Fri 2026-12-18 17:00 UTC (was: waits by window)",
          "  • the StatefulSet of zone a may be restarted at Fri 2026-12-18 17:00 UTC (was:",
        ],
        "image": [
          "Review  main..image   18 restarts",
          "ROLLOUT   mimir/ingester: image grafana/mimir:2.17.1 -> grafana/mimir:9.0.0, 18",
          "          restarts, 14m (p90 45m)",
          "",
          "Plan  mimir/ingester   completes   policy 2bd0820",
          "",
          "CHANGE   image  grafana/mimir:2.17.1 -> 9.0.0  18 pods restart",
          "SAFETY   this plan disrupts at most one zone at a time",
          "POLICIES RolloutPolicy mimir/calendar (policies/calendar.yaml:1)",
          "",
        ],
        "shorter": [
          "Review  main..shorter   2 loosened",
          "LOOSENED  the time between zones of mimir/ingester falls from 13h to 1h: zone a",
          "          may shrink 12h earlier after zone b shrank, and 1 more decision",
          "          (policies/ingester.yaml:29:21)",
          "LOOSENED  the delay of a scale-down of mimir/ingester falls from 13h to 1h: zone",
          "          a may shrink 12h earlier after its pods prepared, and 1 more decision",
          "          (policies/ingester.yaml:31:9)",
          "",
          "the time between zones of mimir/ingester falls from 13h to 1h",
          "  • zone a may shrink 12h earlier after zone b shrank",
        ],
      }
    `);
  });

  it('plans no wave, approval or restart of a group that the pull request deletes', async () => {
    const { stdout } = await review('ungrouped', '--fail-on', 'approval');
    expect(stdout).toMatch(/ROLLOUT .*grafana\/mimir:2.17.1 -> grafana\/mimir:9.0.0 in\s+a,\s+no\s+pod restarts/);
    expect(stdout).toMatch(/RG5014 +warning/);
    expect(stdout).not.toMatch(/ roll |approval|SAFETY|\d restarts/);
  });

  it('names the cause of each block, also if the change rolls no pod', async () => {
    const elsewhere = new ScratchRepository('quick-start');
    for (const zone of ['a', 'b', 'c']) elsewhere.replace(`manifests/cache-${zone}.yaml`, /^ +namespace: shop\n/gm, '');
    elsewhere.commit('no namespace');
    elsewhere.branch('image', () => elsewhere.replace('manifests/cache-a.yaml', /image: \S+/g, 'image: cache:9'));
    const words = ['review', '--base', 'main', '--head', 'image', '--policies', 'policies', '--manifests', 'manifests'];
    const ended = async (format: string) => await runInProcess([...words, '-o', format], { cwd: elsewhere.root, nowMs });
    const [table, findings] = await Promise.all([ended('table'), ended('github')]).finally(() => elsewhere.remove());
    const cause =
      'shop/cache: blocked: the group cache has no StatefulSet in its namespace shop: cache-a, cache-b and cache-c are in default';
    const shown = `1 group blocked, 1 other object BLOCKED ${cause}`;
    expect([table.status, table.stdout.replace(/\s+/g, ' ')]).toEqual([5, expect.stringContaining(shown)]);
    expect(findings.stdout).toContain(cause);
  });

  it('names the groups without a StatefulSet in the manifests', async () => {
    const renamed = new ScratchRepository('quick-start');
    const zones = '[{ name: a, statefulSet: store-a }, { name: b, statefulSet: store-b }]';
    const metadata = '{ name: store, namespace: shop }';
    const kind = 'apiVersion: rollout-group.dev/v1alpha1\nkind: RolloutGroup';
    renamed.branch('other', () =>
      renamed.write(
        'policies/store.yaml',
        `${kind}\nmetadata: ${metadata}\nspec: { members: { zones: ${zones} }, rollout: { strategy: onDelete } }\n`,
      ),
    );
    const words = ['review', '--base', 'main', '--head', 'other', '--policies', 'policies', '--manifests', 'manifests', '--width', '200'];
    const { stdout } = await runInProcess(words, { cwd: renamed.root, nowMs }).finally(() => renamed.remove());
    expect(stdout).toContain('NOTE      shop/store has no plan: the manifests contain no StatefulSet store-a or store-b\n');
  });

  it('names the StatefulSets that leave a deleted group, also if no manifest changes', async () => {
    const left = new ScratchRepository('quick-start');
    left.branch('deleted', () => rmSync(join(left.root, 'policies/cache.yaml')));
    const words = ['review', '--base', 'main', '--head', 'deleted', '--policies', 'policies', '--manifests', 'manifests', '--width', '100'];
    const shown = async (...more: readonly string[]) =>
      (await runInProcess([...words, ...more], { cwd: left.root, nowMs })).stdout.replace(/\s+/g, ' ');
    const [table, comment] = await Promise.all([shown(), shown('-o', 'markdown')]).finally(() => left.remove());
    const removed = 'shop/cache: the change removes cache-a, cache-b, cache-c from the group: the rules of the group no longer apply there';
    expect(table).toContain(`ROLLOUT ${removed}`);
    expect(table).toMatch(/a partition that the agent set stays, so a new template reaches no pod \(RG5014\).*RISKS RG5014 warning/);
    expect(comment).toContain(removed);
  });

  it('counts the pods that roll after the release of a deleted group as restarts', async () => {
    const released = new ScratchRepository('quick-start');
    released.replace('policies/cache.yaml', 'onFailure: pause', 'onFailure: pause\n    onPolicyDeleted: release');
    released.commit('release');
    released.branch('ungrouped', () => {
      rmSync(join(released.root, 'policies/cache.yaml'));
      cpSync(join(released.root, 'manifests-next'), join(released.root, 'manifests'), { recursive: true });
    });
    const dirs = ['--policies', 'policies', '--manifests', 'manifests', '--width', '100'];
    const words = ['review', '--base', 'main', '--head', 'ungrouped', ...dirs];
    const { stdout } = await runInProcess(words, { cwd: released.root, nowMs }).finally(() => released.remove());
    expect(stdout).toMatch(/^CHANGE .* 9 pods restart after the release$/m);
    expect(stdout).toMatch(/^9 restarts\.$/m);
    expect(stdout).toMatch(/^ROLLOUT .*,\s+9\s+restarts$/m);
  });

  it('finds no effect in a pull request that only formats and renames files, or reorders fields and lists', async () => {
    expect(await review('formatted', '--fail-on', 'loosened')).toMatchObject({
      status: 0,
      stdout: 'Review  main..formatted   no effect\n',
    });
  });

  it('counts a change that neither loosens nor tightens a rule', async () => {
    expect((await review('ascending')).stdout).toContain('ascending   1 other change\nCHANGED   the setting order of mimir/ingester');
  });

  it('finds the opposite in the reverted pull request', async () => {
    const { stdout } = await runInProcess(
      ['review', '--base', 'shorter', '--head', 'main', '--policies', 'policies', '--manifests', 'manifests', '-o', 'json'],
      { cwd: repository.root, nowMs },
    );
    const [environment] = JSON.parse(stdout).environments;
    expect(
      environment.policies.effects.map(({ direction, cause }: { direction: string; cause: string }) => `${direction}: ${cause}`),
    ).toEqual([
      'tightened: the time between zones of mimir/ingester rises from 1h to 13h',
      'tightened: the delay of a scale-down of mimir/ingester rises from 1h to 13h',
    ]);
  });

  it('writes a comment for each format, and fails on a loosening if configured', async () => {
    const { status, stdout } = await review('shorter', '-o', 'markdown', '--fail-on', 'loosened', '--tests', 'tests');
    expect(status).toBe(4);
    expect(stdout.replace(/sha256:\w+/, 'sha256:...')).toMatchInlineSnapshot(`
      "<!-- rollout-group:review env=default outcome=blocked digest=sha256:... -->
      ### Rollout review: 2 loosened, 2 failed tests

      **Loosened**

      - the time between zones of mimir/ingester falls from 13h to 1h (\`policies/ingester.yaml:29:21\`)
        - zone a may shrink 12h earlier after zone b shrank
        - zones b and c may shrink 12h earlier after zone a shrank
        - the request of the case "zone b does not shrink within 13 hours after zone a" may pass (was: waits by zone-gap)
      - the delay of a scale-down of mimir/ingester falls from 13h to 1h (\`policies/ingester.yaml:31:9\`)
        - zone a may shrink 12h earlier after its pods prepared
        - zones b and c may shrink 12h earlier after their pods prepared
        - the request of the case "the autoscaler requests one pod less, and the surplus pod starts to prepare" may pass 12h earlier
        - the request of the case "zone b shrinks 13 hours after zone a" may pass 12h earlier
        - the request of the case "a pod stays until 13 hours after it prepared" may pass (was: waits by delayed-downscale)

      **Failed tests**

      - tests/scaling.yaml&#58;18&#58;7: a pod stays until 13 hours after it prepared: the decision is act, expected is wait
      - tests/scaling.yaml&#58;31&#58;7: zone b does not shrink within 13 hours after zone a: the decision is act, expected is wait; the message does not contain "zone a shrank 12h59m ago"

      **Tests**

      - 44 passed, 2 failed, 13 of 14 rules both blocked and passed (before: 46 passed, 14 of 14 rules both blocked and passed)

      <sub>main..shorter</sub>
      "
    `);
    expect((await review('image', '-o', 'markdown')).stdout.split('\n').slice(0, 6)).toMatchInlineSnapshot(`
      [
        "<!-- rollout-group:review env=default outcome=complete digest=sha256:b225f4c24ecfb08b9733206efe8176767a16bed0df672c99007b9a2703d08032 -->",
        "### Rollout review: 18 restarts",
        "",
        "**Rollout**",
        "",
        "- mimir/ingester: image grafana/mimir&#58;2.17.1 -&#62; grafana/mimir&#58;9.0.0, 18 restarts, 14m (p90 45m)",
      ]
    `);
  });

  it('annotates the place of each effect, and fails a JUnit report only for effects that fail the command', async () => {
    expect((await review('shorter', '-o', 'github')).stdout).toMatchInlineSnapshot(`
      "::warning file=policies/ingester.yaml,line=29,col=21,title=RG8001::the time between zones of mimir/ingester falls from 13h to 1h: zone a may shrink 12h earlier after zone b shrank, and 1 more decision%0Afix: check that the change is meant, and that a policy test covers the decision
      ::warning file=policies/ingester.yaml,line=31,col=9,title=RG8001::the delay of a scale-down of mimir/ingester falls from 13h to 1h: zone a may shrink 12h earlier after its pods prepared, and 1 more decision%0Afix: check that the change is meant, and that a policy test covers the decision
      2 findings (0 errors, 2 warnings, 0 notices) in 1 file
      "
    `);
    const { runs } = JSON.parse((await review('shorter', '-o', 'sarif')).stdout);
    const [{ ruleId, level, locations }] = runs[0].results;
    expect([ruleId, level, locations[0].physicalLocation.artifactLocation.uri]).toEqual(['RG8001', 'warning', 'policies/ingester.yaml']);
    const failures = async (...words: readonly string[]) =>
      /failures="(\d+)"/.exec((await review('shorter', '-o', 'junit', ...words)).stdout)?.[1];
    expect([await failures(), await failures('--fail-on', 'loosened')]).toEqual(['0', '2']);
  });

  it('names missing revisions, directories and flags', async () => {
    expect(await review('missing')).toMatchObject({ status: 10, stderr: expect.stringContaining('revision missing does not exist') });
    const words = ['review', '--base', 'main', '--head', 'image'];
    expect(await runInProcess([...words, '--policies', 'nowhere'], { cwd: repository.root })).toMatchObject({ status: 10 });
    for (const flag of ['--policies', '--manifests', '--tests']) {
      const misspelled = [...words, '--policies', 'policies', '--manifests', 'manifests', flag, 'nowhere'];
      const { status, stderr } = await runInProcess(misspelled, { cwd: repository.root });
      expect([flag, status, stderr]).toEqual([flag, 10, expect.stringMatching(/^error: neither \S+ nor \S+ has nowhere, /)]);
    }
    expect(await runInProcess(words, { cwd: repository.root })).toMatchObject({
      status: 3,
      stderr: expect.stringContaining('rollout-group.yaml'),
    });
  });
});

describe('review of several environments', () => {
  const scratch = new ScratchRepository();
  const file = `environments:
  - { name: staging, policies: policies, manifests: manifests, tests: tests }
  - { name: production, cluster: eu-prd-1, policies: [policies, production], manifests: manifests }
`;

  async function reviewed(head: string, ...words: readonly string[]) {
    return runInProcess(['review', '--base', 'main', '--head', head, '--width', '80', ...words], { cwd: scratch.root, nowMs });
  }

  beforeAll(() => {
    scratch.write('rollout-group.yaml', file);
    scratch.write('production/freeze.yaml', freeze('@channel closes #1 <script>'));
    scratch.commit('environments');
    scratch.branch('image', () => {
      for (const zone of ['a', 'b', 'c'])
        scratch.replace(`manifests/ingester-zone-${zone}.yaml`, /image: grafana\/mimir:\S+/g, 'image: grafana/mimir:9.0.0');
    });
    scratch.branch('shorter', () => scratch.replace('policies/ingester.yaml', '13h', '1h'));
    scratch.branch('deleted', () => rmSync(join(scratch.root, 'production'), { recursive: true }));
    scratch.branch('one-less', () => scratch.write('rollout-group.yaml', file.replace(/.*production.*\n/, '')));
    scratch.branch('untested', () => rmSync(join(scratch.root, 'tests'), { recursive: true }));
    scratch.branch('no-file', () => rmSync(join(scratch.root, 'rollout-group.yaml')));
    scratch.branch('broken', () => scratch.write('rollout-group.yaml', 'environments: [{ name: a b, place: x }]'));
  });

  afterAll(() => scratch.remove());

  it('names each effect once, with its environment, in the first ten lines', async () => {
    const first = async (head: string) => (await reviewed(head)).stdout.split('\n').slice(0, 10);
    expect({ image: await first('image'), shorter: await first('shorter'), deleted: await first('deleted') }).toMatchInlineSnapshot(`
      {
        "deleted": [
          "Review  main..deleted   1 loosened",
          "ENVIRONMENT            PLAN        LOOSENED  TESTS",
          "staging                no changes  0         passed",
          "production (eu-prd-1)  no changes  1         -",
          "LOOSENED  production: RolloutPolicy mimir/freeze is removed: pods may be",
          "          replaced (was: waits by window), and 8 more decisions",
          "          (production/freeze.yaml:1:1)",
          "TESTS     staging: 46 passed, 14 of 14 rules both blocked and passed",
          "",
          "production: RolloutPolicy mimir/freeze is removed",
        ],
        "image": [
          "Review  main..image   36 restarts",
          "ENVIRONMENT            PLAN       RESTARTS  TESTS",
          "staging                completes  18        passed",
          "production (eu-prd-1)  completes  18        -",
          "ROLLOUT   staging: mimir/ingester: image grafana/mimir:2.17.1 ->",
          "          grafana/mimir:9.0.0, 18 restarts, 14m (p90 45m)",
          "ROLLOUT   production: mimir/ingester: image grafana/mimir:2.17.1 ->",
          "          grafana/mimir:9.0.0, 18 restarts, 38d22h (p90 38d23h), stopped: a deny",
          "          window blocks rollout: @channel closes #1 <script> (limit: freeze);",
          "          windows allow the action from 2027-01-04 08:00 UTC",
        ],
        "shorter": [
          "Review  main..shorter   2 loosened, 2 failed tests",
          "ENVIRONMENT            PLAN        LOOSENED  TESTS",
          "staging                no changes  2         2 failed",
          "production (eu-prd-1)  no changes  2         -",
          "LOOSENED  the time between zones of mimir/ingester falls from 13h to 1h: zone a",
          "          may shrink 12h earlier after zone b shrank, and 2 more decisions",
          "          (policies/ingester.yaml:29:21)",
          "LOOSENED  the delay of a scale-down of mimir/ingester falls from 13h to 1h: zone",
          "          a may shrink 12h earlier after its pods prepared, and 4 more decisions",
          "          (policies/ingester.yaml:31:9)",
        ],
      }
    `);
  });

  it('writes one comment with a summary table, in which text of a file has no effect', async () => {
    const { stdout } = await reviewed('deleted', '-o', 'markdown');
    expect(stdout).toMatch(
      /^<!-- rollout-group:review env=staging,production outcome=unchanged,unchanged digest=sha256:[0-9a-f]{64} -->\n/,
    );
    expect(stdout).not.toMatch(/@channel|#1\b(?!;)|<script/);
    expect(readComment('review.md', stdout, 65_536).environments.map(({ name }) => name)).toEqual(['staging', 'production']);
    expect(stdout.split('\n').slice(1, 7)).toMatchInlineSnapshot(`
      [
        "### Rollout review of 2 environments: 1 loosened",
        "",
        "| environment | plan | loosened | tests |",
        "| --- | --- | --- | --- |",
        "| staging | no changes | 0 | passed |",
        "| production (eu-prd-1) | no changes | 1 | - |",
      ]
    `);
  });

  it('counts the policy tests that the change removes', async () => {
    const { stdout } = await reviewed('untested');
    expect(stdout.split('\n').slice(0, 3)).toEqual([
      'Review  main..untested   46 removed tests',
      'ENVIRONMENT            PLAN        TESTS',
      'staging                no changes  46 removed',
    ]);
  });

  it('names the environments that the change removes from later reviews', async () => {
    const removed = (name: string): string => `NOTE      ${name}: the change removes the environment ${name}, so later`;
    const oneLess = await reviewed('one-less');
    expect(oneLess.stdout.split('\n')[0]).toBe('Review  main..one-less   1 removed environment');
    expect(oneLess.stdout).toContain(removed('production'));
    expect(oneLess.stdout).not.toContain(removed('staging'));
    expect([oneLess.status, (await reviewed('one-less', '--fail-on', 'loosened')).status]).toEqual([0, 4]);
    const noFile = await reviewed('no-file', '-o', 'markdown');
    expect(noFile.stdout).toContain('### Rollout review of 2 environments: 2 removed environments');
    expect(noFile.stdout).toContain('- staging: the change removes the environment staging, so later reviews leave it out');
    const json = await reviewed('one-less', '-o', 'json');
    expect(JSON.parse(json.stdout).environments.map((one: object) => 'isRemoved' in one)).toEqual([false, true]);
  });

  it('reviews one environment, and names the errors in the file', async () => {
    const { stdout } = await reviewed('deleted', '-o', 'json', '--environment', 'staging');
    expect(JSON.parse(stdout).environments.map(({ name, policies }: { name: string; policies: unknown }) => [name, policies])).toEqual([
      ['staging', { effects: [], asked: 0 }],
    ]);
    expect(await reviewed('image', '--environment', 'other')).toMatchObject({
      status: 10,
      stderr: expect.stringContaining('staging, production'),
    });
    const broken = await reviewed('broken');
    expect(broken).toMatchObject({ status: 4, stderr: expect.stringContaining('environments[0].place is unknown') });
  });
});

describe('review of environments with their own files', () => {
  const scratch = new ScratchRepository();

  beforeAll(() => {
    const entry = (name: string): string => `  - { name: ${name}, policies: ${name}, manifests: manifests }\n`;
    scratch.write('rollout-group.yaml', `environments:\n${['staging', 'production'].map(entry).join('')}`);
    for (const name of ['staging', 'production']) cpSync(join(scratch.root, 'policies'), join(scratch.root, name), { recursive: true });
    scratch.commit('environments');
    const shorten = (name: string): void => scratch.replace(`${name}/ingester.yaml`, '13h', '1h');
    scratch.branch('both', () => ['staging', 'production'].forEach(shorten));
  });

  afterAll(() => scratch.remove());

  it('joins the same effect of both, with the number of places', async () => {
    const { stdout } = await runInProcess(['review', '--base', 'main', '--head', 'both', '--width', '80'], { cwd: scratch.root, nowMs });
    expect(stdout.split('\n').slice(0, 10)).toEqual([
      'Review  main..both   2 loosened',
      'ENVIRONMENT  PLAN        LOOSENED',
      'staging      no changes  2',
      'production   no changes  2',
      'LOOSENED  the time between zones of mimir/ingester falls from 13h to 1h: zone a',
      '          may shrink 12h earlier after zone b shrank, and 1 more decision',
      '          (staging/ingester.yaml:29:21 and 1 more place)',
      'LOOSENED  the delay of a scale-down of mimir/ingester falls from 13h to 1h: zone',
      '          a may shrink 12h earlier after its pods prepared, and 1 more decision',
      '          (staging/ingester.yaml:31:9 and 1 more place)',
    ]);
  });
});

describe('review of a change of the namespace of the agent', () => {
  const scratch = new ScratchRepository();
  const file = (agentNamespace: string): string =>
    `environments: [{ name: production, agentNamespace: ${agentNamespace}, policies: [policies, shared], manifests: manifests, tests: t }]\n`;

  beforeAll(() => {
    const shared = freeze('Black Friday')
      .replace('namespace: mimir', 'namespace: agents')
      .replace('{ all: true }', '{ all: true, namespaces: [mimir] }');
    scratch.write('shared/freeze.yaml', shared);
    const request = '{ action: evict, zone: a, ordinal: 0 }';
    const cases = `[{ name: no eviction, request: ${request}, expect: { decision: deny, rules: [freeze/no-eviction] } }]`;
    const spec = `{ files: [../policies, ../manifests, ../shared], clock: "2026-11-26T10:00:00Z", cases: ${cases} }`;
    const test = `apiVersion: rollout-group.dev/v1alpha1\nkind: PolicyTest\nmetadata: { name: freeze }\nspec: ${spec}\n`;
    scratch.write('t/freeze.yaml', test);
    scratch.write('rollout-group.yaml', file('agents'));
    scratch.commit('a policy in the namespace of the agent');
    scratch.branch('moved', () => {
      scratch.write('rollout-group.yaml', file('other'));
      rmSync(join(scratch.root, 'shared'), { recursive: true });
    });
  });

  afterAll(() => scratch.remove());

  it('evaluates each side with its own namespace, so the change does not hide a removed policy', async () => {
    const words = ['review', '--base', 'main', '--head', 'moved', '-o', 'json'];
    const { stdout } = await runInProcess(words, { cwd: scratch.root, nowMs });
    const [{ policies, tests }] = JSON.parse(stdout).environments;
    expect(policies.effects.map(({ direction, cause }: { direction: string; cause: string }) => `${direction}: ${cause}`)).toEqual([
      'loosened: RolloutPolicy agents/freeze is removed',
    ]);
    expect([tests.base.failures, tests.head.failed]).toEqual([[], 1]);
  });
});

describe('review of a rollout with an approval', () => {
  const scratch = new ScratchRepository('statefulset-rollout');

  beforeAll(() => scratch.branch('image', () => scratch.replace('manifests/queue.yaml', /image: \S+/g, 'image: queue:9.0.0')));
  afterAll(() => scratch.remove());

  it('ends with 8 only if configured', async () => {
    const words = ['review', '--base', 'main', '--head', 'image', '--policies', 'policies', '--manifests', 'manifests'];
    expect(await runInProcess(words, { cwd: scratch.root, nowMs })).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('1 approval'),
    });
    expect(await runInProcess([...words, '--fail-on', 'approval'], { cwd: scratch.root, nowMs })).toMatchObject({ status: 8 });
  });
});

function freeze(reason: string): string {
  return `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutPolicy
metadata: { name: freeze, namespace: mimir }
spec:
  targets: { all: true }
  windows:
    - name: freeze
      kind: deny
      actions: [rollout, restart]
      ranges: [{ from: "2026-11-20T00:00:00Z", to: "2026-12-24T00:00:00Z", reason: "${reason}" }]
      inFlight: finishPod
  rules:
    - name: no-eviction
      actions: [evict]
      effect: deny
      message: "${reason}"
`;
}
