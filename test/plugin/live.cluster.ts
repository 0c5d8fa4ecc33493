// The live verbs on a real control plane, with the real agent, used by people with small Roles.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { type AgentProcess, startAgentProcess } from '../control-plane/agent-process.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { TestGroup } from '../control-plane/group.ts';
import { agentRules, grant, grantNodes, type Rule } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { isReady, revisionOf, type StatefulSet } from '../control-plane/workloads.ts';
import { timeless } from './in-process.ts';
import { filesOf, type Person, person } from './live-people.ts';
import { runPlugin } from './process.ts';

const namespace = 'mimir';
const ours = 'rollout-group.dev';

const viewerRules: readonly Rule[] = [
  { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['configmaps', 'pods'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['list', 'watch'] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['list', 'watch'] },
  { apiGroups: ['rollout-operator.grafana.com'], resources: ['zoneawarepoddisruptionbudgets'], verbs: ['list', 'watch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['list'] },
  {
    apiGroups: [ours],
    resources: ['rolloutgroups', 'rolloutpolicies', 'rolloutexceptions', 'rolloutintents', 'rolloutruns'],
    verbs: ['get', 'list', 'watch'],
  },
];

const operatorRules: readonly Rule[] = [
  ...viewerRules,
  { apiGroups: [ours], resources: ['rolloutintents'], verbs: ['create', 'patch', 'delete'] },
  { apiGroups: ['apps'], resources: ['statefulsets'], verbs: ['patch'] },
  { apiGroups: ['apps'], resources: ['statefulsets/scale'], verbs: ['get', 'patch'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
];

async function installKinds({ client }: ControlPlane): Promise<void> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  for (const kind of ['RolloutGroup', 'RolloutPolicy', 'RolloutException', 'RolloutIntent', 'RolloutRun'] as const) {
    await client.create(path, customResourceDefinition(kind));
  }
  await client.until(path, 'the kinds established', (items) => items.every(isEstablished));
}

function isEstablished(item: object): boolean {
  const { status } = item as { readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] } };
  return status?.conditions?.some((condition) => condition.type === 'Established' && condition.status === 'True') === true;
}

describeOnControlPlane('the verbs of a running cluster', (controlPlane) => {
  let group: TestGroup;
  let viewer: Person;
  let operator: Person;
  let agent: AgentProcess | undefined;

  beforeAll(async () => {
    const { client } = controlPlane();
    group = new TestGroup(client, { namespace });
    await group.create();
    viewer = await person(controlPlane(), namespace, 'viewer', viewerRules);
    operator = await person(controlPlane(), namespace, 'operator', operatorRules);
  });
  afterAll(() => agent?.stop());

  /** Every pod at the revision that its StatefulSet asks for. */
  const isRolled = async (): Promise<boolean> => {
    const sets = await controlPlane().client.list<StatefulSet>(group.setsPath);
    const wanted = new Set(sets.map(({ status }) => status.updateRevision));
    return (await group.pods()).every((pod) => wanted.has(revisionOf(pod)));
  };

  const untilComplete = async (): Promise<void> => {
    const { status, stdout, stderr } = await viewer.run(['status', 'ingester', '--timeout', '60s']);
    expect(status, stdout + stderr).toBe(0);
  };

  it('without our kinds and without an agent, reads work and name their basis, and actions name what to install', async () => {
    const { status, stdout, stderr } = await viewer.run(['get', 'ingester']);
    expect(status, stderr).toBe(0);
    expect(stderr).toContain('note: no agent has published mimir/ingester (the access of the agent is unknown); decided by this command');
    expect(stdout).toContain('mimir/ingester   DONE');
    const paused = await operator.run(['pause', 'ingester']);
    expect(paused.status).toBe(10);
    expect(paused.stderr).toContain('kubectl rollout-group schema RolloutIntent -o crd | kubectl apply -f -');
  });

  it('with an agent it shows the published decision', async () => {
    await installKinds(controlPlane());
    await grant(controlPlane().client, controlPlane().identities.agent, namespace, agentRules());
    await grantNodes(controlPlane().client, controlPlane().identities.agent);
    agent = await startAgentProcess({ url: controlPlane().url, identity: controlPlane().identities.agent, namespace });
    await agent.untilReady();
    await controlPlane().client.until(`/api/v1/namespaces/${namespace}/configmaps`, 'a published decision', (maps) =>
      maps.some(({ metadata }) => metadata.name === 'rollout-status-ingester'),
    );
    const { status, stdout, stderr } = await viewer.run(['get', 'ingester', '-o', 'json']);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ group: { namespace, name: 'ingester' }, phase: 'Done' });
  });

  it('status waits for the requested rollout, and not for the previous one', async () => {
    await group.setImage('example.com/server:2');
    const { status, stdout, stderr } = await viewer.run(['status', 'ingester', '--timeout', '60s']);
    expect(status, stdout + stderr).toBe(0);
    expect({ status, stderr, isRolled: await isRolled() }).toEqual({ status: 0, stderr: '', isRolled: true });
    expect(stdout).toMatch(/ mimir\/ingester rolling /);
    expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/ mimir\/ingester done updated=6\/6 available=6\/6$/);
  });

  it('a pause blocks the next rollout until it is resumed', async () => {
    expect((await operator.run(['pause', 'ingester', '--reason', 'INC-441', '--duration', '1h'])).status).toBe(0);
    const before = (await group.pods()).map(({ metadata }) => metadata.uid).sort();
    await group.setImage('example.com/server:3');
    const held = await viewer.run(['status', 'ingester', '--fail-on-pause', '--timeout', '60s']);
    expect(held.status, held.stdout).toBe(8);
    expect((await viewer.run(['explain', 'ingester'])).stdout).toMatch(
      /\[WAIT\] paused +the group is paused by an unverified requester \(INC-441\)/,
    );
    expect((await group.pods()).map(({ metadata }) => metadata.uid).sort()).toEqual(before);
    expect((await operator.run(['pause', 'ingester', '--zone', 'b'])).status).toBe(0);
    const zone = 'kubectl rollout-group resume mimir/ingester --zone b';
    const resumed = await operator.run(['resume', 'ingester']);
    expect(resumed.stdout).toContain('mimir/ingester resumed\n  deleted RolloutIntent pause.ingester: the pause by ');
    expect(resumed.stdout.endsWith(`\n  zone b is still paused. Run: ${zone}\n`)).toBe(true);
    expect((await operator.run(zone.split(' ').slice(2))).stdout).toContain('mimir/ingester zone b resumed\n');
    await untilComplete();
    expect(await isRolled()).toBe(true);
  });

  it('a restart replaces every pod, zone by zone, and is recorded with its reason', async () => {
    const before = new Set((await group.pods()).map(({ metadata }) => metadata.uid));
    const dry = await operator.run(['restart', 'ingester', '--dry-run', 'server']);
    expect([dry.status, dry.stdout.match(/restartedAt/g)?.length]).toEqual([0, 3]);
    expect((await operator.run(['restart', 'ingester', '--reason', 'new certificates'])).status).toBe(0);
    await untilComplete();
    expect((await group.pods()).filter(({ metadata }) => before.has(metadata.uid))).toEqual([]);
    const events = await viewer.run(['events', 'ingester', '-o', 'jsonl']);
    expect(events.stdout).toContain('"note":"new certificates"');
  });

  it('scale writes the leader', async () => {
    const { status, stdout } = await operator.run(['scale', 'ingester', '--zone', 'ingester-zone-a', '--replicas', '3']);
    expect([status, stdout]).toEqual([0, 'scaled statefulset/ingester-zone-a of mimir/ingester from 2 to 3\n  zone a: from 2 to 3\n']);
    await group.untilReady(7);
    expect(await group.replicas()).toEqual([3, 2, 2]);
  });

  it('history lists the rollouts', async () => {
    const { status, stdout } = await viewer.run(['history', 'ingester', '-o', 'json']);
    const { runs } = JSON.parse(stdout);
    expect(status).toBe(0);
    expect(
      runs.filter((run: { readonly kind: string; readonly outcome: string }) => run.kind === 'rollout' && run.outcome === 'completed'),
    ).toHaveLength(3);
    expect((await viewer.run(['history', 'ingester', runs[0].id])).stdout).toContain('ingester ');
  });

  it('names the only zone with another image, during its rollout and afterwards', async () => {
    const bundle = (line: string) =>
      runPlugin([...line.split(' '), '-n', namespace], { env: { KUBECONFIG: controlPlane().identities.admin.kubeconfig } }).stdout;
    expect((await operator.run(['pause', 'ingester'])).status).toBe(0);
    await controlPlane().client.patch(`${group.setsPath}/ingester-zone-b`, 'strategic', {
      spec: { template: { spec: { containers: [{ name: 'server', image: 'example.com/server:4' }] } } },
    });
    expect((await viewer.run(['status', 'ingester', '--fail-on-pause', '--timeout', '60s'])).status).toBe(8);
    const change = /server:3 (?:->|→) 4 in b\b/;
    expect(bundle('status ingester --watch=false')).toMatch(change);
    expect(bundle('get ingester')).toMatch(change);
    expect((await operator.run(['resume', 'ingester'])).status).toBe(0);
    await untilComplete();
    expect(bundle('history ingester')).toMatch(/ server:4 in b +2\/2 /);
    const different = /the zones request different images: container server has server:3 in a and c; server:4 in b/;
    for (const line of ['status ingester --watch=false', 'get ingester', 'doctor'])
      expect(bundle(line).replaceAll(/\s+/g, ' '), line).toMatch(different);
    await group.setImage('example.com/server:4');
    await untilComplete();
    expect(bundle('get ingester')).not.toContain('different images');
  });

  it('a user without permission to act sees the missing rule, and nothing changes', async () => {
    const { status, stderr } = await viewer.run(['pause', 'ingester']);
    expect(status).toBe(11);
    expect(stderr).toContain('with the rule {apiGroups: ["rollout-group.dev"], resources: ["rolloutintents"], verbs: ["patch"]}');
  });

  it('a user without permission to read sees the missing rule', async () => {
    const nobody = await person(controlPlane(), namespace, 'nobody', []);
    const { status, stderr } = await nobody.run(['get']);
    expect(status).toBe(11);
    expect(stderr).toContain('may not list');
  });

  it('detects the end of a healthy rollout with a short progress deadline, blocks no plan of it, and counts a crashing pod once', async () => {
    const { client } = controlPlane();
    const path = `/apis/${ours}/v1alpha1/namespaces/${namespace}/rolloutgroups`;
    await client.create(path, {
      apiVersion: `${ours}/v1alpha1`,
      kind: 'RolloutGroup',
      metadata: { name: 'ingester' },
      spec: {
        members: { zones: group.sets.map((name) => ({ name, statefulSet: name })) },
        rollout: { strategy: 'onDelete', rotateBy: 'delete', deadlines: { progress: '60s' } },
      },
    });
    await client.patch(`${group.setsPath}/ingester-zone-a`, 'strategic', {
      spec: { template: { metadata: { annotations: { 'test.rollout-group.dev/ready-after': '25s' } } } },
    });
    const starts = (state: string) => (items: readonly object[]) => JSON.stringify(items).includes(`"state":"${state}"`);
    await client.until(path, 'a pod that starts', starts('starting'));
    const bundle = (line: string) =>
      runPlugin([...line.split(' '), '-n', namespace], { env: { KUBECONFIG: controlPlane().identities.admin.kubeconfig } });
    expect(bundle('get ingester').stdout).toMatch(/^end in about \d+m/m);
    const plan = bundle('plan --live -o json');
    expect([plan.status, JSON.parse(plan.stdout).outcome]).toEqual([0, 'complete']);
    const flying = (await group.pods()).find((pod) => !isReady(pod));
    await client.patch(`${group.podsPath}/${flying?.metadata.name}`, 'merge', {
      metadata: { annotations: { 'test.rollout-group.dev/unready': 'CrashLoopBackOff' } },
    });
    await client.until(path, 'a pod that crashes', starts('crashing'));
    expect(bundle('get ingester').stdout).toMatch(/^ingester-zone-a +failing .* 2\/3 +\d+s +1 failing, 2 to go/m);
    const folder = filesOf({});
    const reported = (line: string) => runPlugin([...line.split(' '), '--from-report', 'r.tar.gz'], { cwd: folder });
    const report = ['report', 'ingester', '-n', namespace, '-o', 'r.tar.gz'];
    const lines = ['explain ingester', 'explain ingester -o json', 'plan', 'plan -o json', 'get ingester', 'status ingester --watch=false'];
    // The agent can publish between two commands, so they are repeated until no decision is between them.
    await expect
      .poll(
        () => {
          const written = runPlugin(report, { cwd: folder, env: { KUBECONFIG: controlPlane().identities.admin.kubeconfig } });
          return [written.status, ...lines.filter((line) => !isSameValue(timeless(reported(line)), timeless(bundle(line))))];
        },
        { timeout: 60_000 },
      )
      .toEqual([0]);
    expect(reported('get ingester').stdout).toMatch(/^ingester-zone-a +failing/m);
    // The agent of this suite is bundled from its source, without a version.
    expect(reported('version').stdout).toMatch(/^warn +version +\S+ has version 0\.0\.0-source, and this program has version \d/m);
    expect(reported('simulate --runs 1 --faults none').stdout).toMatch(/^ {2}finished +1 of 1$/m);
  });

  it('every verb reports that the agent does not run as soon as its Lease has expired, also with a recent decision', async () => {
    await agent?.kill();
    const killedMs = Date.now();
    const [set] = await controlPlane().client.list<StatefulSet>(group.setsPath);
    const { name, labels } = set?.metadata ?? { name: '', labels: {} };
    const manifest = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace, labels }, spec: set?.spec };
    const folder = filesOf({ 'set.json': manifest });
    // The Lease of this agent lasts 3 s, and the header Date has whole seconds.
    await delay(killedMs + 4_500 - Date.now());
    const bundle = (line: string) =>
      runPlugin([...line.split(' '), '-n', namespace], { cwd: folder, env: { KUBECONFIG: operator.identity.kubeconfig } });
    const stopped = /agent not running: Lease expired \d+s ago/;
    const ended = bundle('status ingester --timeout 1m');
    expect([ended.status, ended.stderr]).toEqual([12, expect.stringMatching(/^ended before complete; agent not running: Lease expired/m)]);
    expect(bundle('get ingester').stdout).toMatch(/^agent not running: Lease expired \d+s ago; nothing is carried out$/m);
    expect(bundle('get').stdout).toMatch(stopped);
    expect(bundle('get -o json').stdout).toMatch(/"unattended": "agent not running: Lease expired/);
    expect(bundle('status ingester --watch=false').stdout).toMatch(stopped);
    expect(bundle('explain ingester').stdout).toMatch(/Nothing is carried out: agent not running: Lease expired/);
    for (const line of ['resume ingester', 'plan --live', 'apply -f set.json --dry-run=client', 'pause ingester']) {
      expect(bundle(line).stderr, line).toMatch(/^note: agent not running: Lease expired \d+s ago/m);
    }
    expect(bundle('doctor').stdout).toMatch(/agent not running: Lease expired/);
    const next = 'plan --set image=example.com/server:9';
    const [planned] = JSON.parse(bundle(`${next} -o json`).stdout).groups;
    expect(planned).toMatchObject({ outcome: 'waits', totals: { restarts: (await group.pods()).length } });
    expect(bundle(next).stdout).not.toContain('completes');
  });
});
