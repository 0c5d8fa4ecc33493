// Measures how soon the agent acts after it may act, and how much longer a rollout takes than its pods need.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AgentProcess, startAgentProcess } from '../../test/control-plane/agent-process.ts';
import type { ControlPlane } from '../../test/control-plane/control-plane.ts';
import { type GroupOptions, TestGroup } from '../../test/control-plane/group.ts';
import { agentRules, grant, grantNodes } from '../../test/control-plane/roles.ts';
import type { Pod, StatefulSet } from '../../test/control-plane/workloads.ts';
import { imageEnvironment } from '../release/image.ts';
import { type Replacement, replacementsIn } from './audit.ts';
import { type Figure, median, percentile } from './figure.ts';

const newImage = 'example.com/server:2';
const zoneCount = 3;

/** The default intervals of the agent, which test suites shorten. */
export const defaultIntervals = [
  '--reconcile.interval=5s',
  '--lease.duration=15s',
  '--lease.renew-deadline=10s',
  '--lease.retry-period=2s',
  '--publish.every=5s',
];

/** Starts the built agent in the namespace with the shipped Role and the default intervals, but without its own request limit. */
export async function startBuiltAgent(
  { client, identities, url }: ControlPlane,
  namespace: string,
  more: readonly string[] = [],
): Promise<AgentProcess> {
  await grant(client, identities.agent, namespace, agentRules());
  await grantNodes(client, identities.agent);
  const agent = await startAgentProcess({
    url,
    identity: identities.agent,
    namespace,
    executable: 'dist/rollout-group-agent',
    env: imageEnvironment,
    flags: [...defaultIntervals, ...more],
  });
  await agent.untilReady();
  return agent;
}

interface RolloutOptions extends GroupOptions {
  readonly replicas: number;
  /** A policy file that defines the group instead of labels. */
  readonly policy?: string;
}

type UpdatedSet = StatefulSet & { readonly status: { readonly updatedReplicas?: number } };

const rolloutTimeoutMs = 120_000;

interface Rollout {
  readonly replacements: readonly Replacement[];
  /** From the first patch of a template until the last pod was Ready. */
  readonly wallMs: number;
}

/** Replaces every pod of a new group. */
async function roll(controlPlane: ControlPlane, options: RolloutOptions): Promise<Rollout> {
  const group = new TestGroup(controlPlane.client, options);
  await group.create();
  const agent = await startBuiltAgent(controlPlane, group.namespace, policyFlags(controlPlane, options));
  try {
    const startedMs = Date.now();
    await group.setImage(newImage);
    // Does not wait for the current revision in the status: with OnDelete Kubernetes does not change it, and only adopted groups need it.
    await controlPlane.client.until<UpdatedSet>(
      group.setsPath,
      'every pod Ready at the new revision',
      (sets) => sets.every(({ status }) => status.updatedReplicas === options.replicas && status.readyReplicas === options.replicas),
      rolloutTimeoutMs,
    );
    const replacements = await replacementsIn(controlPlane, group.namespace);
    const expected = options.replicas * zoneCount;
    if (replacements.length !== expected) throw new Error(`${replacements.length} pods were replaced, not ${expected}`);
    return { replacements, wallMs: Math.max(...replacements.map(({ readyMs }) => readyMs)) - startedMs };
  } finally {
    await agent.stop();
  }
}

/** Replaces one pod at a time, so that each request of the agent has one cause: the previous pod became Ready. */
export async function reactionFigures(controlPlane: ControlPlane): Promise<readonly Figure[]> {
  const replicas = 60;
  const { replacements } = await roll(controlPlane, {
    namespace: 'reaction',
    replicas,
    maxUnavailable: 1,
    podAnnotations: quick('20ms', '20ms'),
  });
  const reactionsMs = replacements.slice(1).map(({ askedMs }, index) => askedMs - (replacements[index]?.readyMs ?? Number.NaN));
  const floorMs = await guardedDeletes(controlPlane);
  const figure = (name: string, of: (values: readonly number[]) => number): Figure => ({
    what: `from a pod's Ready to the next delete, 3 x ${replicas} pods, ${name}`,
    value: of(reactionsMs),
    bar: 100,
    unit: 'ms',
    floor: `a write of the ledger and a delete, answered: ${of(floorMs).toFixed(1)} ms`,
  });
  return [figure('p50', median), figure('p99', (values) => percentile(values, 99)), figure('max', (values) => Math.max(...values))];
}

/** Returns durations in milliseconds of the least work of a step: a compare-and-swap of a ConfigMap, then a delete with preconditions. */
async function guardedDeletes({ client }: ControlPlane): Promise<readonly number[]> {
  const namespace = 'floor';
  const count = 50;
  await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
  await client.until(`/api/v1/namespaces/${namespace}/serviceaccounts`, 'the account', (accounts) => accounts.length > 0);
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const maps = `/api/v1/namespaces/${namespace}/configmaps`;
  let ledger = await client.create(maps, { metadata: { name: 'ledger' }, data: { ledger: '' } });
  const tookMs: number[] = [];
  for (let index = 0; index < count; index += 1) {
    // No scheduler assigns this pod to a node, so the delete removes it at once.
    const { metadata } = await client.create<Pod>(pods, {
      metadata: { name: `pod-${index}` },
      spec: { schedulerName: 'nobody', containers: [{ name: 'server', image: 'example.com/server:1' }] },
    });
    const { uid, resourceVersion, name } = metadata;
    const startedMs = performance.now();
    const body = { ...ledger, data: { ledger: JSON.stringify({ uid, resourceVersion, name, padding: 'x'.repeat(400) }) } };
    const { status, body: stored } = await client.ask('PUT', `${maps}/ledger`, body);
    if (status !== 200) throw new Error(`the ledger of the floor was answered with ${status}`);
    await client.delete(`${pods}/${name}`, { preconditions: { uid, resourceVersion } });
    tookMs.push(performance.now() - startedMs);
    ledger = stored;
  }
  return tookMs;
}

/** Writes the policy file of the group, if it has one. Returns the flag with its folder. */
function policyFlags({ folder }: ControlPlane, { namespace, policy }: RolloutOptions): readonly string[] {
  if (policy === undefined) return [];
  const policies = join(folder, `policies-${namespace}`);
  mkdirSync(policies);
  writeFileSync(join(policies, 'group.yaml'), policy);
  return [`--policies=${policies}`];
}

/** Replaces ten pods at a time: the next replacement starts as soon as one of the ten is Ready. */
export async function rollingFigures(controlPlane: ControlPlane): Promise<readonly Figure[]> {
  const size = { replicas: 20, maxUnavailable: 10, podAnnotations: quick('2s', '1s') };
  const native = await roll(controlPlane, { namespace: 'rolling', ...size, policy: policyOf('rolling', size.maxUnavailable) });
  const adopted = await roll(controlPlane, { namespace: 'adopted', ...size });
  const figure = (kind: string, rollout: Rollout, judged: Pick<Figure, 'bar'>, why: string): Figure => {
    const needMs = neededMs(rollout, size.maxUnavailable);
    return {
      what: `rolling 3 x ${size.replicas} pods, ${size.maxUnavailable} at a time, ${kind} group, against what its pods need`,
      value: rollout.wallMs / needMs,
      ...judged,
      unit: 'x',
      floor: `the pods need ${(needMs / 1000).toFixed(1)} s, the rollout took ${(rollout.wallMs / 1000).toFixed(1)} s${why}`,
    };
  };
  return [
    figure('native', native, { bar: 1.3 }, ''),
    // Keeps the behaviour of grafana/rollout-operator for groups with its labels.
    figure('adopted', adopted, {}, ': as in grafana/rollout-operator, a pod that goes takes two places'),
  ];
}

function policyOf(namespace: string, maxUnavailable: number): string {
  const zones = ['a', 'b', 'c'].map((zone) => `{ name: ${zone}, statefulSet: ingester-zone-${zone} }`);
  return `
apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: ingester, namespace: ${namespace} }
spec:
  members: { zones: [${zones.join(', ')}] }
  rollout: { strategy: onDelete, maxUnavailable: ${maxUnavailable} }
`;
}

/**
 * Returns the shortest possible rollout: for each zone ceil(pods / limit) times the time of one replacement, from the events of the same
 * run.
 */
function neededMs({ replacements }: Rollout, limit: number): number {
  const zones = new Map<string, Replacement[]>();
  for (const one of replacements) {
    const zone = one.pod.slice(0, one.pod.lastIndexOf('-'));
    zones.set(zone, [...(zones.get(zone) ?? []), one]);
  }
  const needs = [...zones.values()].map((pods) => {
    const [goneMs, readyMs] = [mean(pods.map((pod) => pod.goneMs - pod.askedMs)), mean(pods.map((pod) => pod.readyMs - pod.startedMs))];
    return Math.ceil(pods.length / limit) * (goneMs + readyMs);
  });
  return needs.reduce((sum, one) => sum + one, 0);
}

function quick(readyAfter: string, goneAfter: string): Readonly<Record<string, string>> {
  return { 'test.rollout-group.dev/ready-after': readyAfter, 'test.rollout-group.dev/gone-after': goneAfter };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
