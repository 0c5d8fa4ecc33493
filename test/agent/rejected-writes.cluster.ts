// A scale-down that the API server rejects for the whole test: the other zones shrink and the group rolls to the end.
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, expect, it, type TestContext } from 'vitest';
import { startDenyingHook } from '../control-plane/denying-hook.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { createTemplate, installReplicaTemplates, mirrors, templatesPath } from '../control-plane/replica-template.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually } from '../control-plane/webhook.ts';
import type { StatefulSet } from '../control-plane/workloads.ts';
import { runInProcess } from '../plugin/in-process.ts';
import { type Arena, openArena } from './arena.ts';

const image = 'example.com/server:2';

describeOnControlPlane('a group with a rejected scale-down', (controlPlane) => {
  let recorder: HistoryRecorder;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
    await installReplicaTemplates(controlPlane().client);
  });
  afterAll(() => recorder.stop());

  /** Opens a group whose zones mirror a template of two replicas, with an agent. */
  async function open({ onTestFinished }: Pick<TestContext, 'onTestFinished'>, namespace: string): Promise<Arena> {
    const arena = await openArena(controlPlane(), recorder, {
      namespace,
      replicas: 2,
      zoneMeta: () => ({ annotations: mirrors('ingester') }),
    });
    onTestFinished(() => arena.close());
    await createTemplate(controlPlane().client, namespace, 'ingester', 2);
    const agent = await arena.start();
    await agent.untilReady();
    return arena;
  }

  /** Requests one replica in every zone and another image, and waits until every zone but b shrank and every pod runs the image. */
  async function shrinkAndRoll(arena: Arena): Promise<void> {
    const { client } = controlPlane();
    await client.patch(`${templatesPath(arena.group.namespace)}/ingester`, 'merge', { spec: { replicas: 1 } });
    await client.until<StatefulSet>(arena.group.setsPath, 'replicas 1, 2, 1', (sets) =>
      arena.group.sets.every((name, index) => sets.find(({ metadata }) => metadata.name === name)?.spec.replicas === [1, 2, 1][index]),
    );
    await arena.group.setImage(image);
    await arena.group.untilRolled(60_000);
  }

  /** Requires that the API server answered scale-downs of zone b by the agent with this status, and with no other except a conflict. */
  async function expectAnswers(arena: Arena, status: number): Promise<void> {
    const { requests } = await arena.history();
    const answers = requests
      .filter(({ verb, objectRef, requestObject, user }) => {
        const spec = (requestObject as { readonly spec?: { readonly replicas?: number } } | undefined)?.spec;
        const isOfAgent = user.username === controlPlane().identities.agent.user;
        return isOfAgent && verb === 'patch' && objectRef?.name === 'ingester-zone-b' && spec?.replicas === 1;
      })
      .map(({ responseStatus }) => responseStatus?.code);
    expect(answers).toContain(status);
    expect(answers.filter((answer) => answer !== status && answer !== 409)).toEqual([]);
  }

  function plugin(line: string, namespace: string) {
    const env = { KUBECONFIG: controlPlane().identities.admin.kubeconfig, HOME: tmpdir() };
    return runInProcess([...line.split(' '), '-n', namespace], { env });
  }

  it.for([400, 409, 500, 'failed'] as const)('continues while a webhook denies the scale-down: %s', async (code, context) => {
    const namespace = `hook-${code}`;
    const arena = await open(context, namespace);
    const hook = await startDenyingHook(controlPlane(), { namespace, statefulSet: 'ingester-zone-b', code });
    context.onTestFinished(() => hook.stop());
    await shrinkAndRoll(arena);
    await expectAnswers(arena, code === 'failed' ? 500 : code);
    expect(hook.denials()).toBeGreaterThan(0);
    await arena.expectKept();
  });

  it('continues while a ValidatingAdmissionPolicy denies the scale-down, and all views show the denial', async (context) => {
    const namespace = 'policy';
    const arena = await open(context, namespace);
    const { client } = controlPlane();
    const policies = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
    const bindings = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
    await client.create(policies, {
      metadata: { name: 'no-decrease' },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [{ apiGroups: ['apps'], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['statefulsets'] }],
        },
        matchConditions: [{ name: 'is-zone-b', expression: "request.name == 'ingester-zone-b'" }],
        validations: [{ expression: 'object.spec.replicas >= oldObject.spec.replicas', message: 'zone b keeps its pods' }],
      },
    });
    await client.create(bindings, {
      metadata: { name: 'no-decrease' },
      spec: {
        policyName: 'no-decrease',
        validationActions: ['Deny'],
        matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } },
      },
    });
    const decrease = `${arena.group.setsPath}/ingester-zone-b?dryRun=All`;
    await eventually(
      'the policy in force',
      () => client.ask('PATCH', decrease, { spec: { replicas: 1 } }, 'application/merge-patch+json'),
      ({ status }) => status === 422,
    );
    await shrinkAndRoll(arena);
    await expectAnswers(arena, 422);
    const explained = await eventually(
      'an explanation that names the rule',
      () => plugin('explain ingester', namespace),
      ({ stdout }) => stdout.includes('write-accepted'),
    );
    const fact = 'the change of ingester-zone-b to 1 replica did not succeed';
    expect(explained.stdout.replaceAll(/\s+/g, ' ')).toContain(fact);
    expect(explained.stdout.replaceAll(/\s+/g, ' ')).toContain('zone b keeps its pods');
    expect((await plugin('get ingester -o json', namespace)).stdout).toContain(fact);
    expect((await plugin('status ingester --watch=false', namespace)).stdout.replaceAll(/\s+/g, ' ')).toContain('write-accepted');
    await eventually(
      'the Events',
      () => plugin('events ingester', namespace),
      ({ stdout }) => stdout.includes('WriteRejected') && stdout.includes('ScalingFailed'),
    );
    await client.delete(`${bindings}/no-decrease`);
    await client.until<StatefulSet>(
      arena.group.setsPath,
      'replicas 1 in zone b',
      (sets) => sets.every(({ spec }) => spec.replicas === 1),
      90_000,
    );
    await arena.expectKept();
  });
});
