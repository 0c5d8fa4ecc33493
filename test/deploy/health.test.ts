// The health that Flux and Argo CD show, computed by the library of Flux and by the Lua interpreter of Argo CD.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { fieldAt } from '../../engine/observe/raw.ts';
import { groupStatus } from '../../engine/publish/status.ts';
import { phases } from '../../policies/rollout/phases.ts';
import { type Kind, kinds } from '../../policies/schema/kinds.ts';
import { listOf } from '../../policies/values/list-of.ts';
import { askHealth, type HealthAnswer, healthProgram, luaOf } from './health-program.ts';
import { decisions, groupObject, states } from './health-states.ts';

const scripts = 'deploy/argo-cd/health';

/** The expression for StatefulSets in the example for Flux. */
function celOfExample(): string {
  const [expression] = parseAllDocuments(readFileSync('deploy/flux/kustomization.yaml', 'utf8')).flatMap((document) =>
    listOf(fieldAt(document.toJS(), ['spec', 'healthCheckExprs'])).map((one) => String(fieldAt(one, ['current']))),
  );
  return expression ?? '';
}

/** The rows of the table in a page whose first column has the names of the states. */
function tableOf(page: string): Readonly<Record<string, string>> {
  const rows = readFileSync(page, 'utf8')
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .flatMap(([, name = '', health = '']) => (name in states ? [[name, health.replaceAll('`', '')] as const] : []));
  return Object.fromEntries(rows);
}

const hasGo = spawnSync('go', ['version']).status === 0;
const isRun = hasGo || process.env['CI'] !== undefined;
if (!isRun) process.stderr.write('SKIPPED test/deploy/health.test.ts: Go is not installed\n');

it('has a state for each phase, and never two answers for one state', () => {
  expect(new Set(Object.values(decisions).map(({ phase }) => phase))).toEqual(new Set(phases));
  for (const [name, published] of Object.entries(decisions)) {
    const types = groupStatus(published).conditions.flatMap(({ type, status }) => (status === 'True' ? [type] : []));
    expect([name, types.filter((type) => ['Ready', 'Reconciling', 'Stalled'].includes(type))]).toEqual([name, [expect.any(String)]]);
  }
});

it('has a script for each kind with a state', () => {
  const stateless = ['MetricSource', 'NotificationChannel', 'RolloutException', 'RolloutIntent', 'RolloutPolicy'];
  const installed = (Object.keys(kinds) as Kind[]).filter((kind) => kinds[kind].plural !== undefined);
  expect([...readdirSync(scripts), ...stateless].map((file) => file.replace('.lua', '')).sort()).toEqual(
    [...installed, 'StatefulSet'].sort(),
  );
});

describe.skipIf(!isRun)('the health of a RolloutGroup', () => {
  let answers: readonly HealthAnswer[];
  let executable: string;
  const healthBy = (tool: 'kstatus' | 'argoCd') =>
    Object.fromEntries(Object.keys(states).map((name, index) => [name, answers[index]?.[tool].status]));

  beforeAll(() => {
    executable = healthProgram();
    answers = askHealth(
      executable,
      Object.values(states).map((object) => ({ object, lua: luaOf('RolloutGroup') })),
    );
  }, 600_000);

  it('in Flux is the one that docs/flux.md shows', () => {
    expect(tableOf('docs/flux.md')).toEqual(healthBy('kstatus'));
  });

  it('in Argo CD is the one that docs/argo-cd.md shows', () => {
    expect(tableOf('docs/argo-cd.md')).toEqual(healthBy('argoCd'));
  });

  it('has the explanation of the agent as its message', () => {
    const said = new Map(Object.keys(states).map((name, index) => [name, answers[index]]));
    expect(said.get('the run failed')).toMatchObject({ kstatus: { message: 'gate errors' }, argoCd: { message: 'gate errors' } });
    expect(said.get('paused during a run')?.argoCd.message).toMatch(/paused.*To end it: kubectl rollout-group resume/);
    expect(said.get('waits for an approval')?.argoCd.message).toContain('approval');
    expect(said.get('paused during a run')?.kstatus.message).toContain('paused');
    expect(said.get('no decision of the agent yet')?.argoCd.message).toContain('not decided');
  });

  it('is also known for the copy that the agent writes of a group from its directory, which has no observed generation', () => {
    const [of] = Object.values(decisions);
    if (of === undefined) throw new Error('no state is described');
    const [answer] = askHealth(executable, [{ object: groupObject(groupStatus(of)), lua: luaOf('RolloutGroup') }]);
    expect([answer?.kstatus.status, answer?.argoCd.status]).toEqual(['Current', 'Healthy']);
  });

  it.each([
    ['running', 'Progressing'],
    ['failed', 'Degraded'],
    ['completed', 'Healthy'],
    ['superseded', 'Healthy'],
    ['cancelled', 'Healthy'],
  ])('of a RolloutRun follows its outcome: %s', (outcome, expected) => {
    const object = {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutRun',
      metadata: { name: 'a', generation: 1 },
      spec: { outcome },
    };
    expect(askHealth(executable, [{ object, lua: luaOf('RolloutRun') }])[0]?.argoCd.status).toBe(expected);
  });

  it.each([
    ['outdated pods under OnDelete', { updatedReplicas: 1 }, 'Progressing', '1 of 3 pods are updated'],
    ['a pod that is not ready', { readyReplicas: 2 }, 'Progressing', '2 of 3 pods are ready'],
    ['no ready pod', { readyReplicas: undefined }, 'Progressing', '0 of 3 pods are ready'],
    ['no updated pod', { updatedReplicas: undefined }, 'Progressing', '0 of 3 pods are updated'],
    [
      'a spec that its controller has not read',
      { observedGeneration: 1 },
      'Progressing',
      'the StatefulSet controller has not read this generation',
    ],
    ['all pods updated and ready', {}, 'Healthy', 'all 3 pods are ready and updated'],
  ])('of a StatefulSet counts outdated pods, in Argo CD and in the example for Flux: %s', (_, change, status, message) => {
    const object = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'a', generation: 2 },
      spec: { replicas: 3, updateStrategy: { type: 'OnDelete' } },
      status: { observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 3, ...change },
    };
    const [answer] = askHealth(executable, [{ object, lua: luaOf('StatefulSet'), cel: celOfExample() }]);
    expect(answer?.argoCd).toEqual({ status, message });
    expect(answer?.cel).toBe(status === 'Healthy');
  });
});
