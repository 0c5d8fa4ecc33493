// Tests that doctor and plans agree on what holds a group. doctor.cluster.ts runs them on its control plane.
import { expect, it } from 'vitest';
import { encodeLedger, ledgerKey, ledgerLabel, ledgerName } from '../../engine/ledger/ledger-document.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { TestGroup } from '../control-plane/group.ts';
import { agentRules, type Rule, without } from '../control-plane/roles.ts';
import { filesOf, type Person, person, readerRules } from './live-people.ts';

const namespace = 'mimir';
const account = 'rollout-group/rollout-group-agent';

interface World {
  readonly controlPlane: ControlPlane;
  readonly group: TestGroup;
  /** May ask for the rights of the agent, and read webhook configurations. */
  readonly doctor: Person;
  readonly problems: () => Promise<readonly string[]>;
  readonly grantAgent: (rules: readonly Rule[]) => Promise<void>;
}

interface Status {
  readonly observedGeneration: number;
  readonly updateRevision: string;
}

/** Registered and trusted, but called for no request. */
const pinConfiguration = {
  metadata: { name: '0-rollout-group-pinned' },
  webhooks: [
    {
      name: 'pinned.rollout-group.dev',
      clientConfig: { url: 'https://127.0.0.1:1/admission/pin-pod', caBundle: Buffer.from('ca').toString('base64') },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
      namespaceSelector: { matchLabels: { is: 'nowhere' } },
      failurePolicy: 'Ignore',
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
    },
  ],
};

const zones = ['a', 'b'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` }));
const groupOf = (rollout: object) => ({
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutGroup',
  metadata: { name: 'ingester', namespace },
  spec: { members: { zones }, rollout: { strategy: 'onDelete', rotateBy: 'delete', ...rollout } },
});

/** Returns the plan of a new image with the group of a file. */
async function plannedBy(who: Person, file: string, cwd: string, ...more: readonly string[]) {
  const { stdout, stderr } = await who.run(['plan', '-f', file, '--set', 'image=example.com/server:2', ...more, '-o', 'json'], { cwd });
  if (stdout === '') throw new Error(stderr);
  const [{ outcome, waits, totals }] = JSON.parse(stdout).groups;
  const facts = waits.map((wait: { rule: string; fact: string }) => `${wait.rule}: ${wait.fact}`);
  return { outcome, restarts: totals.restarts, waits: facts };
}

export function itAgreesWithPlans(world: () => World): void {
  it('agrees with the plan that no pod is replaced without the permissions of the agent', async () => {
    const { controlPlane, doctor, grantAgent, problems } = world();
    const cwd = filesOf({ 'evict.json': groupOf({ rotateBy: 'evict' }), 'delete.json': groupOf({}) });
    const reader = await person(controlPlane, namespace, 'reader', readerRules);
    const complete = { outcome: 'complete', restarts: 2, waits: [] };
    expect(await plannedBy(doctor, 'evict.json', cwd)).toEqual(complete);
    await grantAgent(without(without(agentRules(), 'create pods/eviction'), 'list poddisruptionbudgets.policy'));
    try {
      const facts = [
        `${account} may not create pods/eviction in mimir: no pod is replaced by eviction`,
        `${account} may not list poddisruptionbudgets (policy) in mimir: budgets are unknown, and no pod is evicted`,
      ];
      await expect
        .poll(() => plannedBy(doctor, 'evict.json', cwd), { timeout: 10_000 })
        .toEqual({ outcome: 'blocked', restarts: 2, waits: [`agent-access: ${facts.join('; ')}`] });
      for (const fact of facts) expect(await problems()).toContain(`warn RBAC RG6007 ${fact}`);
      // Other rights, and users who may not ask, change nothing.
      expect(await plannedBy(doctor, 'delete.json', cwd)).toEqual(complete);
      expect(await plannedBy(reader, 'evict.json', cwd)).toEqual(complete);
    } finally {
      await grantAgent(agentRules());
    }
  });

  it('agrees with the plan that an agent without its permission does not see a group that is an object', async () => {
    const { controlPlane, doctor, grantAgent, problems } = world();
    const { client } = controlPlane;
    const objects = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutgroups`;
    const cwd = filesOf({ 'group.json': groupOf({}) });
    const complete = { outcome: 'complete', restarts: 2, waits: [] };
    await grantAgent(without(agentRules(), 'list rolloutgroups.rollout-group.dev'));
    try {
      const fact = `${account} may not list rolloutgroups (rollout-group.dev) in mimir: RolloutGroup objects are not seen`;
      await expect.poll(problems, { timeout: 10_000 }).toContain(`warn RBAC RG6007 ${fact}`);
      expect(await plannedBy(doctor, 'group.json', cwd)).toEqual(complete);
      await client.create(objects, groupOf({}));
      const blocked = { outcome: 'blocked', restarts: 2, waits: [`agent-access: ${fact}`] };
      expect(await plannedBy(doctor, 'group.json', cwd)).toEqual(blocked);
    } finally {
      await client.ask('DELETE', `${objects}/ingester`);
      await grantAgent(agentRules());
    }
  });

  it('agrees with the plan that no pod is replaced without its webhook', async () => {
    const { controlPlane, group, doctor } = world();
    const { client } = controlPlane;
    const approval = { count: 1, from: ['oncall'] };
    const waves = [{ name: 'first', zones: ['a', 'b'], percent: 100, before: { approval } }];
    const container = { name: 'server', image: 'example.com/server:2' };
    const next = {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'ingester-zone-a', namespace },
      spec: { template: { spec: { containers: [container] } } },
    };
    const cwd = filesOf({ 'approved.json': groupOf({ waves }), 'pinned.json': groupOf({ strategy: 'pinned' }), 'next.json': next });
    const planned = (file: string) => plannedBy(doctor, file, cwd);
    expect(await planned('approved.json')).toEqual({
      outcome: 'blocked',
      restarts: 2,
      waits: [
        'approval: 0 of 1 approvals from oncall; no webhook records requesters, so no approval counts: MutatingWebhookConfiguration rollout-group does not exist',
      ],
    });
    const shown = await doctor.run(['plan', '-f', 'approved.json', '-f', 'next.json'], { cwd });
    expect(shown.status).toBe(5);
    expect(shown.stdout).toMatch(/wait +approval +blocked +- +-$/m);
    expect(shown.stdout).toContain('passes when a webhook records requesters');
    expect(shown.stdout.match(/^DO .*$/gm)).toEqual(['DO       find out why: kubectl rollout-group doctor -n mimir']);
    for (const name of ['ingester-zone-a', 'ingester-zone-b']) {
      await client.patch(`${group.setsPath}/${name}`, 'merge', {
        spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1_000_000 } } },
      });
    }
    try {
      expect(await planned('pinned.json')).toEqual({
        outcome: 'blocked',
        restarts: 2,
        waits: [
          'pin-webhook: no pod is replaced without the webhook on pod creation: MutatingWebhookConfiguration 0-rollout-group-pinned does not exist',
        ],
      });
      const refused = await doctor.run(['apply', '-f', 'pinned.json', '-f', 'next.json', '--yes'], { cwd });
      expect(refused).toMatchObject({ status: 5, stderr: expect.stringContaining('pin-webhook blocks the plan of mimir/ingester') });
      expect(refused.stderr).toMatch(
        /do: {2}(?:find out why: kubectl rollout-group doctor -n mimir|start the agent, then repeat the command)/,
      );
      expect(refused.stdout).toMatch(/pin-webhook .* blocked +- +-$/m);
      const configurations = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
      await client.create(configurations, pinConfiguration);
      expect(await planned('pinned.json')).toEqual({ outcome: 'complete', restarts: 2, waits: [] });
      const saved = await doctor.run(['plan', '-f', 'pinned.json', '--out', 'plan.json'], { cwd });
      expect([saved.status, saved.stderr]).toEqual([0, expect.anything()]);
      await client.delete(`${configurations}/${pinConfiguration.metadata.name}`);
      const { status, stderr } = await doctor.run(['apply', 'plan.json', '--yes'], { cwd });
      expect([status, stderr]).toEqual([9, expect.stringContaining('problem of the webhook that pins pods appeared')]);
    } finally {
      for (const name of ['ingester-zone-a', 'ingester-zone-b']) {
        await client.patch(`${group.setsPath}/${name}`, 'merge', {
          spec: { updateStrategy: { type: 'OnDelete', rollingUpdate: null } },
        });
      }
    }
  });

  it('agrees with the plan that a completed downscale blocks no later change', async () => {
    const { controlPlane, group, doctor } = world();
    const { client } = controlPlane;
    const [set] = (await client.list<KubernetesObject>(group.setsPath)).filter(({ metadata }) => metadata.name === 'ingester-zone-b');
    const { uid = '', resourceVersion = '' } = set?.metadata ?? {};
    const claim = { verb: 'scaleDown', zone: 'b', uid, from: 2, to: 1, resourceVersion, atMs: Date.now() } as const;
    const text = encodeLedger({ namespace, group: 'ingester', claims: [claim], downscales: [], preparations: [] });
    const ledgers = `/api/v1/namespaces/${namespace}/configmaps`;
    const metadata = { name: ledgerName('ingester'), labels: { [ledgerLabel.key]: ledgerLabel.value } };
    await client.create(ledgers, { metadata, data: { [ledgerKey]: text } });
    try {
      const cwd = filesOf({ 'group.json': groupOf({}) });
      expect(await plannedBy(doctor, 'group.json', cwd)).toEqual({ outcome: 'complete', restarts: 2, waits: [] });
      expect(await plannedBy(doctor, 'group.json', cwd, '--set', 'replicas=2')).toEqual({ outcome: 'complete', restarts: 2, waits: [] });
    } finally {
      await client.delete(`${ledgers}/${metadata.name}`);
    }
  });

  it('agrees with the plan that an undone revision is blocked, and that pods at the requested revision stay', async () => {
    const { controlPlane, group, doctor } = world();
    const { client } = controlPlane;
    const path = `${group.setsPath}/ingester-zone-b`;
    const setImage = async (image: string): Promise<string> => {
      await client.patch(path, 'json', [{ op: 'replace', path: '/spec/template/spec/containers/0/image', value: image }]);
      const isSeen = async () => {
        const { metadata, status } = await client.get<{ metadata: { generation: number }; status: Status }>(path);
        return status.observedGeneration === metadata.generation ? status.updateRevision : undefined;
      };
      await expect.poll(isSeen, { timeout: 10_000 }).toBeDefined();
      return (await isSeen()) ?? '';
    };
    const planned = async (image: string) => {
      const { stdout, stderr } = await doctor.run(['plan', '--set', `b.image=${image}`, '-o', 'json']);
      if (stdout === '') throw new Error(stderr);
      const [{ outcome, waits, totals }] = JSON.parse(stdout).groups;
      return { outcome, restarts: totals.restarts, waits: waits.map(({ rule }: { rule: string }) => rule) };
    };
    const undone = await setImage('example.com/server:2');
    expect(await planned('example.com/server:1')).toEqual({ outcome: 'complete', restarts: 0, waits: [] });
    const to = await setImage('example.com/server:1');
    const intents = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutintents`;
    await client.create(intents, {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutIntent',
      metadata: { name: 'undo' },
      spec: { group: 'ingester', action: 'undo', undone: [{ zone: 'b', revision: undone, to }] },
    });
    expect(await planned('example.com/server:2')).toEqual({ outcome: 'blocked', restarts: 1, waits: ['undone'] });
    // Without anything to apply, apply ends as the plan does.
    await setImage('example.com/server:2');
    const metadata = { name: 'ingester-zone-b', namespace };
    const cwd = filesOf({ 'same.json': { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata } });
    const [command] = /kubectl rollout-group cancel \S+ undo/.exec((await doctor.run(['plan', '-f', 'same.json'], { cwd })).stdout) ?? [];
    for (const words of [['plan'], ['apply', '--yes'], ['apply', '--dry-run=server', '--detailed-exitcode']])
      expect((await doctor.run([...words, '-f', 'same.json'], { cwd })).status, words.join(' ')).toBe(5);
    const { stderr } = await doctor.run(['apply', '--yes', '-f', 'same.json'], { cwd });
    expect([stderr, command]).toEqual([expect.stringContaining(command ?? 'no command'), expect.any(String)]);
    await setImage('example.com/server:1');
    await client.delete(`${intents}/undo`);
  });

  it('agrees with the plan that a rolled-back revision is blocked', async () => {
    const { controlPlane, group, doctor } = world();
    const { client } = controlPlane;
    const names = ['ingester-zone-a', 'ingester-zone-b'];
    const spec = (updateStrategy: object) => ({ spec: { updateStrategy } });
    const revisionOf = async (name: string): Promise<string> => {
      const isSeen = async () => {
        const { metadata, status } = await client.get<{ metadata: { generation: number }; status: Status }>(`${group.setsPath}/${name}`);
        return status.observedGeneration === metadata.generation ? status.updateRevision : undefined;
      };
      await expect.poll(isSeen, { timeout: 10_000 }).toBeDefined();
      return (await isSeen()) ?? '';
    };
    const setImage = (image: string) =>
      client.patch(`${group.setsPath}/${names[1]}`, 'json', [
        { op: 'replace', path: '/spec/template/spec/containers/0/image', value: image },
      ]);
    const ledgers = `/api/v1/namespaces/${namespace}/configmaps`;
    const before = { a: await revisionOf('ingester-zone-a'), b: await revisionOf('ingester-zone-b') };
    const hold = { type: 'RollingUpdate', rollingUpdate: { partition: 1_000_000 } };
    for (const name of names) await client.patch(`${group.setsPath}/${name}`, 'merge', spec(hold));
    await setImage('example.com/server:3');
    const failed = await revisionOf('ingester-zone-b');
    const atMs = Date.now() - 60_000;
    const run = {
      id: 'r1',
      kind: 'rollback',
      outcome: 'completed',
      target: before,
      previous: { ...before, b: failed },
      startedMs: atMs,
      completedMs: atMs,
      wave: 1,
      waveStartedMs: atMs,
      movableMs: 0,
      movableAsOfMs: atMs,
      isMovable: false,
      rolledBack: { revisions: { b: failed }, because: 'aborted by anna' },
    } as const;
    const text = encodeLedger({ namespace, group: 'ingester', claims: [], downscales: [], preparations: [], run });
    const metadata = { name: ledgerName('ingester'), labels: { [ledgerLabel.key]: ledgerLabel.value } };
    await client.create(ledgers, { metadata, data: { [ledgerKey]: text } });
    try {
      const cwd = filesOf({ 'pinned.json': groupOf({ strategy: 'pinned' }) });
      const { status, stdout } = await doctor.run(['plan', '-f', 'pinned.json'], { cwd });
      expect({ status, text: stdout.replace(/\s+/g, ' ') }).toMatchObject({
        status: 5,
        text: expect.stringMatching(
          /ingester blocked .*STOPPED the update revision is blocked, because it was rolled back: aborted by anna\. To end it: kubectl rollout-group retry mimir\/ingester, .*THEN roll b/,
        ),
      });
    } finally {
      await client.delete(`${ledgers}/${metadata.name}`);
      await setImage('example.com/server:1');
      await revisionOf('ingester-zone-b');
      for (const name of names) await client.patch(`${group.setsPath}/${name}`, 'merge', spec({ type: 'OnDelete', rollingUpdate: null }));
    }
  });
}
