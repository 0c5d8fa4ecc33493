// From a pull request to the rollout: the agent rolls what `review --out` approved, and says what differs if something else changed meanwhile.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import type { GroupPlan } from '../../engine/plan/document.ts';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import type { InProcessAgent } from '../control-plane/agent-in-process.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { statefulSet } from '../control-plane/workloads.ts';
import type { RecordedRequest } from '../kit/watcher-history.ts';
import { runPlugin } from '../plugin/process.ts';
import { type Arena, openArena } from './arena.ts';

const namespace = 'approved';
const apiVersion = 'rollout-group.dev/v1alpha1';
const ours = `/apis/${apiVersion}/namespaces/${namespace}`;
const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
const zones = ['a', 'b'];
const replicas = 2;

/** A secret in each part of a manifest that an output could show. */
const canary = 's3cr3t-canary';
const secretEnv = [
  { name: 'DB_PASSWORD', value: canary },
  { name: 'DB_URL', value: `https://me:${canary}@db.example.com/?token=${canary}` },
];
const secretAnnotations = { 'vault.example.com/token': canary };
const secretManifest = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'db', namespace, annotations: secretAnnotations },
  stringData: { password: canary },
};

const group = {
  apiVersion,
  kind: 'RolloutGroup',
  metadata: { name: 'ingester', namespace },
  spec: {
    members: { zones: zones.map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` })) },
    rollout: { strategy: 'onDelete', rotateBy: 'delete' },
  },
};
const gentle = (maxUnavailable: number) => ({
  apiVersion,
  kind: 'RolloutPolicy',
  metadata: { name: 'gentle', namespace },
  spec: { targets: { all: true }, limits: { maxUnavailable } },
});
const required = {
  apiVersion,
  kind: 'RolloutPolicy',
  metadata: { name: 'reviewed', namespace },
  spec: {
    targets: { all: true },
    rules: [{ name: 'as-approved', actions: ['rollout'], effect: 'requireApprovedPlan', approval: { count: 1, from: ['release'] } }],
  },
};

describeOnControlPlane('an approved plan', (controlPlane) => {
  const repository = mkdtempSync(join(tmpdir(), 'approved-'));
  let recorder: HistoryRecorder;
  let arena: Arena;
  let agent: InProcessAgent;

  const git = (...words: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.com', ...words], { cwd: repository });
  const write = (path: string, ...objects: readonly object[]) => {
    mkdirSync(join(repository, path, '..'), { recursive: true });
    writeFileSync(join(repository, path), objects.map((object) => stringify(object)).join('---\n'));
  };
  const manifest = (zone: string, image: string) => {
    const set = statefulSet({
      name: `ingester-zone-${zone}`,
      replicas,
      nodeZone: `zone-${zone}`,
      image,
      annotations: secretAnnotations,
      setLabels: { 'rollout-group': 'ingester' },
      setAnnotations: secretAnnotations,
    }) as { readonly metadata: object; readonly spec: { readonly template: { readonly spec: { readonly containers: object[] } } } };
    Object.assign(set.spec.template.spec.containers[0] ?? {}, { env: secretEnv });
    return { apiVersion: 'apps/v1', kind: 'StatefulSet', ...set, metadata: { ...set.metadata, namespace } };
  };
  const commit = (image: string, ...policies: readonly object[]) => {
    for (const zone of zones) write(`manifests/${zone}.yaml`, manifest(zone, image));
    write('manifests/secret.yaml', { ...secretManifest, stringData: { password: `${canary}-${image}` } });
    write('policies/all.yaml', group, ...policies);
    git('add', '-A');
    git('commit', '-qm', image);
  };

  /** Merges the image: applies the manifest and the annotation of the approved plan, as a GitOps tool does. */
  async function merge(image: string, file: string): Promise<void> {
    const approved = parseAllDocuments(readFileSync(file, 'utf8')).map(
      (one) => one.toJS() as { metadata: { name: string; annotations: object } },
    );
    expect(approved.map(({ metadata }) => metadata.name)).toEqual(zones.map((zone) => `ingester-zone-${zone}`));
    for (const { metadata } of approved) {
      await controlPlane().client.patch(`${sets}/${metadata.name}`, 'strategic', {
        metadata: { annotations: { ...secretAnnotations, ...metadata.annotations } },
        spec: {
          template: { metadata: { annotations: secretAnnotations }, spec: { containers: [{ name: 'server', image, env: secretEnv }] } },
        },
      });
    }
  }

  /** Every text that `review` wrote. */
  const reviewed: string[] = [];

  /** Returns the file with the approved plan, and the pods that the plan replaces, in its order. */
  function review(): { readonly file: string; readonly pods: readonly string[] } {
    const directory = join(repository, '..', `plans-${Math.random()}`);
    const words = ['review', '--base', 'HEAD~1', '--policies', 'policies', '--manifests', 'manifests', '--out', directory, '-o'];
    const outputs = ['json', 'markdown', 'table'].map((format) => runPlugin([...words, format], { cwd: repository }));
    expect(outputs.map(({ status, stderr }) => ({ status, stderr }))).toEqual(outputs.map(() => ({ status: 0, stderr: '' })));
    const file = join(directory, 'default.yaml');
    reviewed.push(...outputs.map(({ stdout }) => stdout), readFileSync(file, 'utf8'));
    const [plan]: readonly GroupPlan[] = JSON.parse(outputs[0]?.stdout ?? '').environments[0].plan.groups;
    const steps = plan?.waves.flatMap((wave) => wave.steps) ?? [];
    return { file, pods: steps.filter(({ kind }) => kind === 'roll').flatMap(({ pods }) => pods) };
  }

  /** Returns the pods that the agent deleted, in its order. */
  async function deleted(): Promise<readonly string[]> {
    const { requests } = await arena.history();
    const isOwn = ({ verb, objectRef, user }: RecordedRequest): boolean =>
      verb === 'delete' && objectRef?.resource === 'pods' && user.username === controlPlane().identities.agent.user;
    return requests.filter(isOwn).map(({ objectRef }) => `${objectRef?.name}`);
  }

  const images = async (): Promise<string> =>
    (await arena.group.pods()).map((pod) => /server:(\d)/.exec(JSON.stringify(pod))?.[1]).join('');
  const warned = () => [
    ...new Set(
      agent
        .turns()
        .flatMap(({ decision }) => (decision?.warnings ?? []).filter(({ rule }) => rule === 'approved-plan').map(({ fact }) => fact)),
    ),
  ];
  async function until<Value>(read: () => Value | Promise<Value>, isSo: (value: Value) => boolean): Promise<Value> {
    for (const endsAt = Date.now() + 60_000; ; await delay(50)) {
      const value = await read();
      if (isSo(value)) return value;
      if (Date.now() > endsAt) throw new Error(`after a minute: ${JSON.stringify(value)}`);
    }
  }

  beforeAll(async () => {
    for (const kind of ['RolloutGroup', 'RolloutPolicy', 'RolloutIntent', 'RolloutRun'] as const)
      await controlPlane().client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition(kind) ?? {});
    recorder = await recordHistory(controlPlane());
    arena = await openArena(controlPlane(), recorder, { namespace, zones, replicas, image: 'example.com/server:1' });
    await controlPlane().client.create(`${ours}/rolloutgroups`, group);
    await controlPlane().client.create(`${ours}/rolloutpolicies`, gentle(1));
    agent = await arena.startInside({ name: 'agent', config: { areIntentsStamped: true }, isTelling: true });
    git('init', '-q', '-b', 'main');
    commit('example.com/server:1', gentle(1));
  });
  afterAll(async () => {
    await arena.close();
    recorder.stop();
    rmSync(repository, { recursive: true });
  });

  it('is rolled out by the agent, which reports changes after the review or waits for an approval', {
    timeout: 240_000,
  }, async () => {
    commit('example.com/server:2', gentle(1));
    const second = review();
    await merge('example.com/server:2', second.file);
    await until(images, (now) => now === '2222');
    expect(warned()).toEqual([]);
    expect(second.pods).toHaveLength(zones.length * replicas);
    expect(await deleted()).toEqual(second.pods);

    commit('example.com/server:3', gentle(1));
    const third = review();
    await controlPlane().client.patch(`${ours}/rolloutpolicies/gentle`, 'merge', { spec: gentle(2).spec });
    await until(
      () => agent.turns().at(-1)?.snapshot.policies[0]?.limits.maxUnavailable,
      (limit) => limit === 2,
    );
    await merge('example.com/server:3', third.file);
    await until(images, (now) => now === '3333');
    // Between the two writes of the merge, the zones name different plans.
    expect(warned().at(-1)).toMatch(
      /^the rollout differs from its approved plan [0-9a-f]{16}: RolloutPolicy approved\/gentle changed after the review$/,
    );

    commit('example.com/server:4', gentle(2), required);
    const fourth = review();
    await controlPlane().client.create(`${ours}/rolloutpolicies`, required);
    await until(
      () => agent.turns().at(-1)?.snapshot.policies.length,
      (length) => length === 2,
    );
    await merge('example.com/server:4', fourth.file);
    await until(images, (now) => now === '4444');

    commit('example.com/server:5', gentle(2), required);
    const fifth = review();
    await merge('example.com/server:6', fifth.file);
    const asked = await until(
      () =>
        agent
          .turns()
          .at(-1)
          ?.decision?.waits.find(({ rule }) => rule === 'reviewed/as-approved'),
      (wait) => wait?.fact.includes('template of zone b') === true,
    );
    expect([asked?.fact, await images()]).toEqual([
      'the rule always applies; the pod template of zone a is not the approved one; the pod template of zone b is not the approved one; 0 of 1 approvals from release',
      '4444',
    ]);
    const runId = agent.turns().at(-1)?.decision?.run?.id;
    const requestedBy = { user: 'anna', groups: ['release'], at: new Date().toISOString() };
    await controlPlane().client.create(`${ours}/rolloutintents`, {
      apiVersion,
      kind: 'RolloutIntent',
      metadata: { name: 'yes' },
      spec: { group: 'ingester', action: 'approve', rule: 'reviewed/as-approved', runId, digest: asked?.digest, requestedBy },
    });
    await until(images, (now) => now === '6666');
    await arena.expectKept();

    const kinds = ['rolloutgroups', 'rolloutintents', 'rolloutruns'].map((kind) => `${ours}/${kind}`);
    const paths = [...kinds, ...['configmaps', 'events'].map((kind) => `/api/v1/namespaces/${namespace}/${kind}`)];
    const written = await Promise.all(paths.map(async (path) => JSON.stringify(await controlPlane().client.list(path))));
    expect(paths.filter((_, index) => written[index] === '[]')).toEqual([]);
    expect([...reviewed, ...written, agent.log()].filter((text) => text.includes(canary))).toEqual([]);
  });
});
