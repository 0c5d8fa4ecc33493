// Reads the names that completion offers from the cluster and the kubeconfig, within a deadline. Uses published decisions and written
// objects as they are: the engine and the schemas take longer to load than completion may take.
import type { ClusterEnv } from '../cluster/env.ts';
import { onStatus } from '../cluster/request/failure.ts';
import { asJsonObject, isJsonObject } from '../cluster/request/json.ts';
import { listObjects } from '../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resourceOf, resources } from '../cluster/request/resource.ts';
import { ordinalsIn } from '../engine/amount.ts';
import { isStatusMapName } from '../engine/publish/published.ts';
import { labelKeys } from '../policies/adopt/keys.ts';
import { usualAgentNamespace } from '../policies/objects/agent-deployment.ts';
import { wavesOf } from '../policies/resolve/group.ts';
import { tryParseJson } from '../policies/values/try-parse-json.ts';
import type { ClusterQuestion, ClusterSubject } from './cluster-candidates.ts';
import { type Cluster, type ConnectionContext, type ConnectionFlags, connect } from './connection.ts';
import { overridableRules } from './live/overridable-rules.ts';
import { type GroupName, groupNamed } from './live/target.ts';

/**
 * The time after which completion stops waiting for credentials and requests, if the program loaded fast. In milliseconds since the start of
 * the process, at which the monotonic clock of Node.js starts. The process needs the rest of 300 ms to end.
 */
export const deadlineMs = 260;

/** Returns the names, unsorted. Rejects after an error or the deadline. */
export async function namesFor({ subject, flags, group }: ClusterQuestion): Promise<readonly string[]> {
  const { connectionProcess, processClock, processTimers } = await import('../cluster/connection/process-env.ts');
  if (subject === 'context') {
    const { contextsOf } = await import('../cluster/kubeconfig/kubeconfig.ts');
    return contextsOf(flags.kubeconfig === undefined ? {} : { kubeconfig: flags.kubeconfig }, connectionProcess());
  }
  return withinDeadline({ clock: processClock, timers: processTimers }, (timeoutMs) => readNames(flags, { subject, group, timeoutMs }));
}

/**
 * Returns the result. Rejects at the deadline, for example if a credential plugin is slow. On a busy machine the program loads slowly, and the
 * cluster then has as much time as the program needed: otherwise completion would never know a name.
 */
export async function withinDeadline<Result>(
  { clock, timers }: Pick<ClusterEnv, 'clock' | 'timers'>,
  ask: (timeoutMs: number) => Promise<Result>,
): Promise<Result> {
  const loadedMs = clock.monotonicMs();
  const leftMs = Math.max(deadlineMs - loadedMs, loadedMs);
  let cancel: (() => void) | undefined;
  const late = new Promise<never>((_, reject) => {
    cancel = timers.after(leftMs, () => reject(new Error('too late')));
  });
  try {
    return await Promise.race([ask(leftMs), late]);
  } finally {
    cancel?.();
  }
}

/** The context in which a credential plugin neither prompts nor writes, because the user is typing a command. */
const silent: ConnectionContext = {
  env: process.env,
  verbosity: 0,
  stderr: { write: () => true },
  terminal: { isTerminal: false, pluginStderr: 'ignore' },
};

interface ReadOptions {
  readonly subject: Exclude<ClusterSubject, 'context'>;
  readonly group: string | undefined;
  readonly timeoutMs: number;
}

/** Reads the names with these connection flags. Rejects after an error. */
export async function readNames(flags: ConnectionFlags, { subject, group, timeoutMs }: ReadOptions): Promise<readonly string[]> {
  const { asGroup = [] } = flags;
  const cluster = await connect(silent, { ...flags, asGroup: [asGroup].flat() }, 'read');
  try {
    return await namesOf({ ...cluster, timeoutMs }, subject, group);
  } finally {
    cluster.close();
  }
}

function ours(kind: string, plural = `${kind.toLowerCase()}s`): Resource {
  return resourceOf('rollout-group.dev/v1alpha1', plural, kind);
}

async function namesOf(cluster: Cluster, subject: ReadOptions['subject'], text: string | undefined): Promise<readonly string[]> {
  const { namespace } = cluster;
  if (subject === 'namespace') return (await list(cluster, resources.namespaces)).map(({ metadata }) => metadata.name);
  const name = text === undefined ? undefined : groupNamed(text, cluster);
  if (subject === 'request' || subject === 'run') return name === undefined ? [] : recordsOf(cluster, subject, name);
  const groups = await readGroups(cluster, name?.namespace ?? namespace);
  const shown = name === undefined ? groups : groups.filter(({ group }) => group === name.group);
  if (subject === 'rule') return shown.length === 0 ? [] : rulesOf(cluster, name?.namespace ?? namespace, shown);
  if (subject === 'revision') return revisionsOf(cluster, name?.namespace ?? namespace, shown);
  return shown.flatMap((one) => partsOf(one, subject));
}

async function recordsOf(cluster: Cluster, subject: 'request' | 'run', { namespace, group }: GroupName): Promise<readonly string[]> {
  const kinds = subject === 'run' ? [ours('RolloutRun')] : [ours('RolloutIntent'), ours('RolloutException')];
  const lists = await Promise.all(kinds.map((kind) => list(cluster, kind, { namespace })));
  const about = lists.flat().filter((one) => [...textsAt(one, 'spec.group'), ...textsAt(one, 'spec.target.group')].includes(group));
  return subject === 'run' ? about.flatMap((run) => textsAt(run, 'spec.id')) : about.map(({ metadata }) => metadata.name);
}

interface ReadGroup {
  readonly group: string;
  readonly decision?: unknown;
  readonly written?: KubernetesObject;
}

/** Reads the groups that have a published decision, an object or labelled StatefulSets. A group may be in the list several times. */
async function readGroups(cluster: Cluster, namespace: string): Promise<readonly ReadGroup[]> {
  const [written, documents, labelled] = await Promise.all([
    list(cluster, ours('RolloutGroup'), { namespace }),
    list(cluster, resources.configMaps, { namespace, labelSelector: 'rollout-group.dev/document' }),
    list(cluster, resources.statefulSets, { namespace, labelSelector: labelKeys.group }),
  ]);
  const ofMaps = documents
    .filter(({ metadata }) => isStatusMapName(metadata.name))
    .flatMap((map) => textsAt(map, 'data.decision'))
    .map((text) => tryParseJson(text));
  return [
    ...written.map((object) => ({ group: object.metadata.name, written: object, decision: valuesAt(object, 'status.decision')[0] })),
    ...ofMaps.flatMap((decision) => textsAt(decision, 'group').map((group) => ({ group, decision }))),
    ...labelled.map(({ metadata }) => ({ group: metadata.labels?.[labelKeys.group] ?? '' })),
  ];
}

function partsOf({ group, decision, written }: ReadGroup, subject: 'group' | 'zone' | 'wave' | 'gate' | 'pod'): readonly string[] {
  const zones = textsAt(written, 'spec.members.zones.name');
  switch (subject) {
    case 'group':
      return [group];
    case 'zone':
      return [...textsAt(decision, 'zones.zone'), ...zones];
    case 'wave':
      return [...textsAt(decision, 'wave.name'), ...(written === undefined ? [] : waveNames(written, zones))];
    case 'pod':
      return valuesAt(decision, 'zones').flatMap(podsOf);
    case 'gate':
      return [...textsAt(decision, 'gates.gate'), ...textsAt(written, 'spec.gates.name')];
  }
}

function podsOf(zone: unknown): readonly string[] {
  const ranges = textsAt(zone, 'revisions.ordinals');
  const ordinals = ranges.flatMap((range) => ordinalsIn(range, 10_000) ?? []);
  return textsAt(zone, 'statefulSet').flatMap((statefulSet) => ordinals.map((ordinal) => `${statefulSet}-${ordinal}`));
}

/** Returns the numbers of the revisions of the StatefulSets, as in `kubectl rollout history`. */
async function revisionsOf(cluster: Cluster, namespace: string, groups: readonly ReadGroup[]): Promise<readonly string[]> {
  const sets = groups.flatMap(({ decision, written }) => [
    ...textsAt(decision, 'zones.statefulSet'),
    ...textsAt(written, 'spec.members.zones.statefulSet'),
  ]);
  const revisions = await list(cluster, resources.controllerRevisions, { namespace });
  const own = revisions.filter(({ metadata }) => textsAt(metadata, 'ownerReferences.name').some((owner) => sets.includes(owner)));
  return own.map((revision) => String(revision['revision']));
}

function waveNames(group: KubernetesObject, zones: readonly string[]): readonly string[] {
  const { rollout = {} } = asJsonObject(group['spec']) as { readonly rollout?: Parameters<typeof wavesOf>[0] };
  return wavesOf(
    rollout,
    zones.map((name) => ({ name })),
  ).map(({ name }) => name);
}

async function rulesOf(cluster: Cluster, namespace: string, groups: readonly ReadGroup[]): Promise<readonly string[]> {
  const namespaces = [...new Set([namespace, cluster.agentNamespace ?? usualAgentNamespace])];
  const kind = ours('RolloutPolicy', 'rolloutpolicies');
  const lists = await Promise.all(namespaces.map((one) => list(cluster, kind, { namespace: one })));
  const policies = lists.flat().map((policy) => ({
    name: policy.metadata.name,
    rules: valuesAt(policy, 'spec.rules').map((rule) => {
      const [effect = ''] = textsAt(rule, 'effect');
      return { name: textsAt(rule, 'name').join(), effect, onUnknown: textsAt(rule, 'onUnknown')[0] ?? effect };
    }),
  }));
  const paths = ['stops.rule', 'waits.rule', 'steps.results.rule'];
  const named = groups.flatMap(({ decision }) => paths.flatMap((path) => textsAt(decision, path)));
  return overridableRules(policies, { waits: named.map((rule) => ({ rule })), steps: [] });
}

/** Returns the listed objects; an empty list if the kind is not installed or the user may not list it. */
async function list(
  { env, timeoutMs }: Cluster,
  resource: Resource,
  options: { readonly namespace?: string; readonly labelSelector?: string } = {},
): Promise<readonly KubernetesObject[]> {
  const listing = listObjects(env, resource, { ...options, site: 'complete', timeoutMs });
  return (await listing.catch(onStatus({ items: [] }, 403, 404))).items;
}

/** Returns the texts at a path such as `zones.zone`, through all elements of lists. */
function textsAt(value: unknown, path: string): readonly string[] {
  return valuesAt(value, path).filter((one) => typeof one === 'string');
}

function valuesAt(value: unknown, path: string): readonly unknown[] {
  return path
    .split('.')
    .reduce<readonly unknown[]>((values, key) => values.flatMap((one) => (isJsonObject(one) ? [one[key]].flat() : [])), [value]);
}
