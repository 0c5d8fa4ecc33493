// A run in waves over many pods, with a PodDisruptionBudget and Slack beside it: what the suite plays with 90 pods and the bench with 1,000.
import { setTimeout as delay } from 'node:timers/promises';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import { type AgentProcess, startAgentProcess } from '../control-plane/agent-process.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { TestGroup } from '../control-plane/group.ts';
import { agentRules, grant, grantNodes } from '../control-plane/roles.ts';
import { createWorld, type World } from '../webhook/kit.ts';
import { untilPinning } from './large-run-webhook.ts';
import { onLoopback } from './notify/loopback.ts';
import { fakeSlack, slackChannel, slackToken } from './notify/services.ts';

/** Shares of a zone, in percent, that are at the new version when each wave is done. */
export const wavePercents = [1, 50, 100] as const;

/** Of the pods after the run. */
export const newImage = 'example.com/server:2';

/** Under which the agent itself takes pods away; under the third one Kubernetes does, and asks no budget. */
export const largeRunStrategies = ['onDelete', 'pinned'] as const;

export interface LargeRunOptions {
  /** A namespace of its own is made for it. */
  readonly namespace: string;
  /** Of all zones together. */
  readonly pods: number;
  /** Pods that may be down at once, by the policy and by the PodDisruptionBudget. */
  readonly atOnce: number;
  readonly strategy: (typeof largeRunStrategies)[number];
  /** The built executable; bundled from its source when absent. */
  readonly executable?: string;
  readonly flags?: readonly string[];
  /** Of the pods, from scheduled to Ready, as the fixture's kubelet reads it. */
  readonly readyAfter?: string;
  readonly timeoutMs: number;
}

export interface LargeZone {
  readonly statefulSet: string;
  readonly replicas: number;
}

export interface LargeRun {
  readonly zones: readonly LargeZone[];
  readonly group: TestGroup;
  /** From the new template until every pod was Ready at it. */
  readonly wallMs: number;
  /** Texts that Slack was sent, also those that others replaced; and the messages as they stand. */
  readonly slack: { readonly sent: readonly string[]; readonly messages: readonly { readonly text: string; readonly isReply: boolean }[] };
  readonly agentLog: string;
}

interface Budget extends KubernetesObject {
  readonly status?: { readonly disruptionsAllowed?: number };
}

interface Group extends KubernetesObject {
  readonly status?: { readonly phase?: string };
}

const zoneNames = ['a', 'b', 'c'] as const;
const ours = '/apis/rollout-group.dev/v1alpha1/namespaces';
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const toldTimeoutMs = 120_000;
/**
 * The defaults. An eviction that meets a write of the disruption controller is tried again by the API server after half a second, and a shorter
 * lease would leave no time for that.
 */
const leaseFlags = ['--lease.duration=15s', '--lease.renew-deadline=10s', '--lease.retry-period=2s'];

/** The kinds that such a run needs. Once for each control plane, before the first. */
export async function createKinds({ client }: Pick<ControlPlane, 'client'>): Promise<void> {
  for (const kind of ['RolloutGroup', 'NotificationChannel', 'RolloutRun'] as const)
    await client.create(definitions, customResourceDefinition(kind) ?? {});
}

/** Plays a whole run, from a group that is whole to one that is whole again, and waits until Slack shows that it is over. */
export async function playLargeRun(controlPlane: ControlPlane, options: LargeRunOptions): Promise<LargeRun> {
  const { client, identities, url } = controlPlane;
  const { namespace, pods, atOnce, strategy, executable, flags = [], timeoutMs, readyAfter = '50ms' } = options;
  const sizes = new Map(
    zoneNames.map((zone, index) => [zone as string, Math.floor((pods + zoneNames.length - 1 - index) / zoneNames.length)]),
  );
  const group = new TestGroup(client, {
    namespace,
    zones: zoneNames,
    strategy: strategy === 'onDelete' ? 'OnDelete' : 'RollingUpdate',
    podAnnotations: { 'test.rollout-group.dev/ready-after': readyAfter, 'test.rollout-group.dev/gone-after': '200ms' },
    zoneMeta: (zone) => ({ replicas: sizes.get(zone) ?? 0 }),
  });
  const ofExecutable = executable === undefined ? {} : { executable };
  const slack = fakeSlack(() => Date.now());
  const server = await onLoopback(slack);
  let agent: AgentProcess | undefined;
  let world: World | undefined;
  try {
    if (strategy === 'pinned') world = await createWorld(controlPlane, { namespaces: [namespace], start: ofExecutable });
    await group.create(timeoutMs);
    await createBudget(controlPlane, group, atOnce);
    // The webhook that pins pods is registered for the agent of this namespace.
    const home = strategy === 'pinned' ? 'rollout-group' : namespace;
    await createChannel(controlPlane, { home, namespace, url: server.url });
    await client.create(`${ours}/${namespace}/rolloutgroups`, groupObject(group, options));
    const own = [
      { apiGroups: ['rollout-group.dev'], resources: ['notificationchannels'], verbs: ['get'] },
      { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['slack'] },
    ];
    for (const one of new Set([namespace, home])) await grant(client, identities.agent, one, [...agentRules(), ...own]);
    await grantNodes(client, identities.agent);
    agent = await startAgentProcess({
      url,
      identity: identities.agent,
      namespace: home,
      ...ofExecutable,
      flags: [`-namespaces=${namespace}`, ...leaseFlags, ...flags],
    });
    await agent.untilReady();
    if (world !== undefined) await untilPinning(controlPlane, group, world);
    const startedAt = Date.now();
    await group.setImage(newImage);
    // Once every pod is pinned, Kubernetes itself takes the new revision for the current one; with OnDelete it never does.
    await group.untilRolled(timeoutMs, { isAdopted: strategy === 'pinned' });
    const wallMs = Date.now() - startedAt;
    await client.until<Group>(`${ours}/${namespace}/rolloutgroups`, 'a run that is over', (groups) =>
      groups.every(({ status }) => status?.phase === 'Done'),
    );
    const isTold = (): boolean => slack.messages.some(({ text }) => text.includes('is complete after')) && arePagesDone(slack, pods);
    for (const endsAt = Date.now() + toldTimeoutMs; !isTold(); await delay(100)) {
      if (Date.now() > endsAt) throw new Error(`Slack was not told all in ${toldTimeoutMs / 1000} s:\n${agent.log().slice(-2000)}`);
    }
    const sent = slack.asked.filter(({ method }) => method === 'POST').map(({ body }) => `${JSON.parse(body).text}`);
    const messages = slack.messages.map(({ text, thread_ts }) => ({ text, isReply: thread_ts !== undefined }));
    const zones = group.sets.map((statefulSet, index) => ({ statefulSet, replicas: sizes.get(zoneNames[index] ?? '') ?? 0 }));
    return { zones, group, wallMs, slack: { sent, messages }, agentLog: agent.log() };
  } finally {
    await agent?.stop();
    await world?.close();
    await server.close();
  }
}

async function createBudget({ client }: ControlPlane, { namespace, sets }: TestGroup, atOnce: number): Promise<void> {
  const collection = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
  const selector = { matchExpressions: [{ key: 'name', operator: 'In', values: sets }] };
  await client.create(collection, { metadata: { name: 'ingester' }, spec: { maxUnavailable: atOnce, selector } });
  await client.until<Budget>(collection, 'a budget that allows something', (budgets) =>
    budgets.every(({ status }) => status?.disruptionsAllowed === atOnce),
  );
}

/** Creates a channel in the namespace of the agent, for groups of the other namespace. */
async function createChannel(
  { client }: ControlPlane,
  { home, namespace, url }: Readonly<Record<'home' | 'namespace' | 'url', string>>,
): Promise<void> {
  await client.create(`/api/v1/namespaces/${home}/secrets`, { metadata: { name: 'slack' }, stringData: { key: slackToken } });
  await client.create(`${ours}/${home}/notificationchannels`, {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'NotificationChannel',
    metadata: { name: 'sre' },
    spec: {
      slack: { url: `${url}/api`, token: { name: 'slack', key: 'key' }, channel: slackChannel },
      usableFrom: { namespaces: [namespace] },
    },
  });
}

function groupObject({ sets }: TestGroup, { atOnce, strategy }: LargeRunOptions): object {
  return {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutGroup',
    metadata: { name: 'ingester' },
    spec: {
      members: { zones: zoneNames.map((name, index) => ({ name, statefulSet: sets[index] })) },
      replicas: { leader: true },
      rollout: {
        strategy,
        rotateBy: 'evict',
        maxUnavailable: atOnce,
        waves: wavePercents.map((percent) => ({ name: `to-${percent}`, zones: zoneNames, percent })),
      },
      notify: [{ channel: 'sre', events: ['started', 'waiting', 'failed', 'completed'] }],
    },
  };
}

/** Whether every pod is on a page, and new there. */
function arePagesDone({ messages }: ReturnType<typeof fakeSlack>, pods: number): boolean {
  const lines = messages.filter(({ text }) => text.startsWith('Pods ')).flatMap(({ text }) => podLinesOf(text));
  return lines.length === pods && lines.every((line) => line.startsWith('new '));
}

/** The lines of a page that name a pod. */
export function podLinesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => /^[a-z]+ +\S+-\d+$/.test(line));
}
