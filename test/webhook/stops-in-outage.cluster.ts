// People stop a rollout while the Service of the webhooks is unreachable and the agent acts. Requests that let something pass stay denied.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { temptationMs, versions } from '../agent/partial-rollout.ts';
import { type InProcessAgent, startInProcess } from '../control-plane/agent-in-process.ts';
import type { ApiClient, KubernetesObject, Method } from '../control-plane/client.ts';
import { agentRules, grant, grantNodes } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually } from '../control-plane/webhook.ts';
import { statefulSet } from '../control-plane/workloads.ts';
import { memberOf, type Person, requesterRules } from '../plugin/live-people.ts';
import { createWorld, groupsOf, merge, setsOf, strategic, type World, write } from './kit.ts';

const namespace = 'incident';
const ours = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}`;
const uncalled = /^500 .*failed calling webhook/;

interface Intent extends KubernetesObject {
  readonly spec: { readonly action: string; readonly reason?: string; readonly requestedBy?: { readonly user: string } };
}

function intentOf(name: string, spec: object): object {
  return { apiVersion: 'rollout-group.dev/v1alpha1', kind: 'RolloutIntent', metadata: { name }, spec: { group: 'server', ...spec } };
}

describeOnControlPlane('while the Service of the webhooks is unreachable', (controlPlane) => {
  let admin: ApiClient;
  let world: World;
  let agent: InProcessAgent;
  let anna: Person;
  let eve: Person;
  /** The pods of the outdated revision, read when the group was paused. */
  let versionsAtPause: readonly string[];

  const ask = (who: Person, method: Method, path: string, body?: unknown, type?: string) =>
    write(controlPlane().clientOf(who.identity), method, `${ours}/${path}`, body, type);
  const intents = () => admin.list<Intent>(`${ours}/rolloutintents`);
  const decision = () => agent.turns().at(-1)?.decision;
  const ok = async (who: Person, line: string): Promise<string> => {
    const { status, stdout, stderr } = await who.run(line.split(' '));
    expect([line, status], stderr).toEqual([line, 0]);
    return stdout;
  };

  beforeAll(async () => {
    const { client, identities, url } = controlPlane();
    admin = client;
    world = await createWorld(controlPlane(), { namespaces: [namespace] });
    for (const one of [namespace, 'rollout-group']) await grant(admin, identities.agent, one, agentRules());
    await grantNodes(admin, identities.agent);
    anna = await memberOf(controlPlane(), namespace, { user: 'anna', groups: ['oncall'] }, requesterRules);
    eve = await memberOf(controlPlane(), namespace, { user: 'eve', groups: ['dev'] }, requesterRules);
    await admin.create(groupsOf(namespace), {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'server', namespace },
      spec: {
        members: { zones: ['a', 'b'].map((zone) => ({ name: zone, statefulSet: `server-zone-${zone}` })) },
        replicas: { leader: true },
        rollout: { strategy: 'onDelete', maxUnavailable: 1 },
      },
    });
    for (const zone of ['a', 'b']) {
      const object = statefulSet({ name: `server-zone-${zone}`, replicas: 4 }) as { readonly spec: object };
      await admin.create(setsOf(namespace), { ...object, spec: { ...object.spec, minReadySeconds: 3 } });
    }
    await world.untilReady(namespace, 'server-zone-', 8);
    await world.untilGuarded(namespace, 'server-zone-a');
    // Requests from before the outage.
    await ok(anna, 'pause server --zone b --reason before --duration 1s');
    for (const [name, spec] of [
      ['approval', { action: 'approve', rule: 'safety/ask' }],
      ['protection', { action: 'protect', zone: 'b', ordinals: [7] }],
    ] as const)
      expect((await ask(anna, 'POST', 'rolloutintents', intentOf(name, spec))).said).toBe('201 ');
    const config = { agentNamespace: 'rollout-group', areIntentsStamped: true };
    agent = await startInProcess({ url, identity: identities.agent, namespace, name: 'agent-0', config, isTelling: true });
    for (const zone of ['a', 'b']) {
      const spec = { template: { spec: { containers: [{ name: 'server', image: 'example.com/server:2' }] } } };
      expect((await write(admin, 'PATCH', `${setsOf(namespace)}/server-zone-${zone}`, { spec }, strategic)).said).toBe('200 ');
    }
    await eventually(
      'an updated pod',
      () => versions(admin, namespace),
      (all) => all.join().includes(' 2'),
    );
    world.front.leadTo();
    world.front.cut();
    const template = { spec: { template: { metadata: { annotations: { changed: 'yes' } } } } };
    await eventually(
      'a denied template',
      () => write(admin, 'PATCH', `${setsOf(namespace)}/server-zone-a?dryRun=All`, template, merge),
      ({ said }) => uncalled.test(said),
    );
  });
  afterAll(async () => {
    await agent?.stop();
    await world.close();
  });

  it('a pause is written, counts as unverified, and stops the agent', async () => {
    expect(await ok(eve, 'pause server --reason errors')).toContain('incident/server paused (errors)');
    const [stored] = (await intents()).filter(({ spec }) => spec.reason === 'errors');
    expect([stored?.metadata.name, stored?.spec.requestedBy]).toEqual(['pause.server', undefined]);
    await expect
      .poll(
        () =>
          decision()
            ?.stops.map(({ fact }) => fact)
            .join(),
        { timeout: 20_000 },
      )
      .toContain('the group is paused by an unverified requester (errors)');
    await expect.poll(() => decision()?.phase, { timeout: 30_000 }).toBe('Paused');
    versionsAtPause = await versions(admin, namespace);
    expect(versionsAtPause.join()).toContain(' 1');
    await delay(3000 + temptationMs);
    expect(await versions(admin, namespace)).toEqual(versionsAtPause);
  });

  it('a second pause with the same target gets another name, also if the stored one has expired', async () => {
    expect(await ok(anna, 'pause server --zone b --reason again')).toContain('incident/server zone b paused (again)');
    expect(await ok(anna, 'pause server --reason mine')).toContain('incident/server paused (mine)');
    const pauses = (await intents())
      .filter(({ spec }) => spec.action === 'pause')
      .map(({ metadata, spec }) => [metadata.name, spec.reason ?? ''] as const)
      .sort(([, a], [, b]) => (a < b ? -1 : 1));
    expect(pauses).toEqual([
      [expect.stringMatching(/^pause-zone\.b\.server\.[0-9a-f]{10}$/), 'again'],
      ['pause-zone.b.server', 'before'],
      ['pause.server', 'errors'],
      [expect.stringMatching(/^pause\.server\.[0-9a-f]{10}$/), 'mine'],
    ]);
  });

  it('a protection is written', async () => {
    await ok(anna, 'protect server --pod server-zone-b-0 --duration 1h');
    await expect.poll(() => decision()?.stops.map(({ rule }) => rule)).toContain('protected');
  });

  it('an undo writes its request, which blocks the revision, and names the remaining steps', async () => {
    const undone = await anna.run(['undo', 'server', '--yes', '--reason', 'memory leak']);
    expect(undone.status).toBe(12);
    expect(undone.stderr).toMatch(/^error: incident\/server was undone only in part: webhook statefulset-update\..* did not answer: /m);
    expect(undone.stderr).toMatch(/no further pod of server-zone-a and server-zone-b; they still have the undone template/);
    expect(undone.stderr).toContain('kubectl rollout-group doctor; then repeat the command');
    await expect.poll(() => decision()?.stops.map(({ rule }) => rule)).toContain('undone');
    // The request of the same undo is stored now. Another reason would change it, so it is added.
    expect((await eve.run(['undo', 'server', '--yes', '--reason', 'other'])).status).toBe(12);
    expect((await intents()).filter(({ spec }) => spec.action === 'undo').map(({ spec }) => spec.reason)).toEqual(['memory leak', 'other']);
  });

  it('an abort is not written, and the message names the pause', async () => {
    const aborted = await anna.run(['abort', 'server']);
    expect([aborted.status, aborted.stderr]).toEqual([12, expect.stringContaining('to stop the group now: kubectl rollout-group pause')]);
  });

  it.each<[string, Method, string, unknown, string?]>([
    ['a new approval', 'POST', 'rolloutintents', intentOf('new', { action: 'approve', wave: 'rest' })],
    ['a new promotion', 'POST', 'rolloutintents', intentOf('new', { action: 'promote' })],
    ['a new retry', 'POST', 'rolloutintents', intentOf('new', { action: 'retry' })],
    ['a new abort', 'POST', 'rolloutintents', intentOf('new', { action: 'abort' })],
    ['an approval that becomes a pause', 'PATCH', 'rolloutintents/approval', { spec: { action: 'pause' } }, merge],
    ['a pause that becomes an approval', 'PATCH', 'rolloutintents/pause.server', { spec: { action: 'approve', wave: 'rest' } }, merge],
    ['a pause that gets an end', 'PATCH', 'rolloutintents/pause.server', { spec: { expires: '2026-01-01T00:00:00Z' } }, merge],
    ['a pause that moves to another group', 'PATCH', 'rolloutintents/pause.server', { spec: { group: 'other' } }, merge],
    ['a protection that covers another pod', 'PATCH', 'rolloutintents/protection', { spec: { ordinals: [9] } }, merge],
    ['an undo that blocks another revision', 'PATCH', 'rolloutintents/UNDO', { spec: { undone: [] } }, merge],
    [
      'an exception',
      'POST',
      'rolloutexceptions',
      {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutException',
        metadata: { name: 'new' },
        spec: { rule: 'zone-gap', target: { group: 'server' }, allow: { anything: true }, reason: 'x', expires: '2099-01-01T00:00:00Z' },
      },
    ],
  ])('%s is denied', async (_what, method, path, body, type) => {
    const undo = (await intents()).find(({ spec }) => spec.action === 'undo')?.metadata.name ?? '';
    expect((await ask(eve, method, path.replace('UNDO', undo), body, type)).said).toMatch(uncalled);
  });

  it('no user writes another requester into a stop', async () => {
    const forged = { user: 'anna', groups: ['oncall'], at: new Date().toISOString() };
    for (const action of ['pause', 'protect', 'undo']) {
      const { said } = await ask(eve, 'POST', 'rolloutintents', intentOf('forged', { action, requestedBy: forged }));
      expect([action, said]).toEqual([action, expect.stringMatching(/^403 .*rollout-group-requested-by.*requestedBy/s)]);
    }
    const claimed = { ...forged, user: 'eve' };
    const { said } = await ask(eve, 'POST', 'rolloutintents', intentOf('forged', { action: 'pause', requestedBy: claimed }));
    expect(said).toMatch(/^403 .*only groups of this user/s);
  });

  it('a resume needs the permission to delete, as before, and the undo completes as soon as the webhooks answer', async () => {
    for (const line of ['resume server --zone b', 'resume server']) await ok(anna, line);
    expect((await intents()).filter(({ spec }) => spec.action === 'pause').map(({ spec }) => spec.reason)).toEqual(['before']);
    await delay(temptationMs);
    expect(await versions(admin, namespace)).toEqual(versionsAtPause);
    world.front.leadTo(world.first.port);
    await world.untilGuarded(namespace, 'server-zone-a');
    await ok(anna, 'undo server --yes');
    await expect
      .poll(async () => new Set((await versions(admin, namespace)).map((one) => one.split(' ')[1])), { timeout: 90_000 })
      .toEqual(new Set(['1']));
  });
});
