// Reads the input of a plan on a cluster: the live objects, with the manifests and policies laid over them.

import { resources } from '../../../cluster/request/resource.ts';
import type { ObjectContent } from '../../../engine/diff/field-diff.ts';
import { withRevisions } from '../../../engine/observe/revisions.ts';
import { groupsToPlan } from '../../../engine/plan/groups.ts';
import { isUnknown, type Snapshot } from '../../../engine/snapshot.ts';
import { policyDigest } from '../../../policies/digest.ts';
import type { LivePolicies } from '../../../policies/live/sources.ts';
import { loadPolicies } from '../../../policies/load.ts';
import { isRecord } from '../../../policies/schema/schema-walk.ts';
import { resourcesOf } from '../../cluster-snapshot/kinds.ts';
import {
  itemsOf,
  type Listing,
  listCluster,
  type Namespaces,
  requiredStatefulSets,
  snapshotNames,
} from '../../cluster-snapshot/listing.ts';
import { clusterSnapshot, clusterState, readReplicaSourceObjects } from '../../cluster-snapshot/snapshot.ts';
import type { Cluster } from '../../connection.ts';
import type { CommandContext } from '../../context.ts';
import { nameOf } from '../../difference.ts';
import { agentNamespaceOf } from '../agent-namespace.ts';
import { readInput, readInputs } from '../input.ts';
import {
  assumptionsOf,
  type GivenFiles,
  instantOf,
  type LivePlanOptions,
  type PlanInputOptions,
  type PlanInputs,
  refuseRepeats,
  selectGroups,
  unique,
} from '../plan-inputs.ts';
import { applyWhatIf, parseWhatIf } from '../what-if.ts';
import { type AskedObject, liveTwins, type StoredObject, storedObject, withReplicasAsAsked } from './desired-objects.ts';
import { liveAbsence } from './members-elsewhere.ts';
import { basisOf, type ReadObject } from './plan-basis.ts';
import { documentsOf, policiesOver } from './plan-policies.ts';

export interface LivePlanInputs extends PlanInputs {
  /** The desired objects in the order in which they are applied, each with its stored form. */
  readonly asked: readonly (AskedObject & StoredObject)[];
  readonly namespaces: Namespaces;
  readonly agentNamespace: string;
  readonly snapshot: Snapshot;
  readonly basis: readonly ReadObject[];
  /** Objects that could not be read or tried, one sentence part each. */
  readonly notes: readonly string[];
}

/** Reads the files of the options. Manifests among the policies are desired unless --desired names others. */
export async function givenFiles(context: CommandContext, { desired, file = [] }: PlanInputOptions): Promise<GivenFiles> {
  const policies = await readInputs(file, context);
  return { manifests: desired === undefined ? policies : await readInput(desired, context), policies };
}

/**
 * Reads the cluster and lays the files of the options over it.
 *
 * @throws Failure as `readPlanInputs` does, and what the API server answers where StatefulSets cannot be read.
 */
export async function readLiveInputs(
  context: CommandContext,
  options: LivePlanOptions,
  cluster: Cluster,
  given: GivenFiles,
): Promise<LivePlanInputs> {
  const changes = (options.set ?? []).map(parseWhatIf);
  const nowMs = options.at === undefined ? context.nowMs() : instantOf(options.at);
  const assumptions = await assumptionsOf(context, options.assumptions);
  const files = unique([...given.manifests, ...given.policies]);
  const { namespace } = cluster;
  const loaded = loadPolicies(files, { namespace });
  const askedFiles = new Set(given.manifests.map(({ name }) => name));
  const manifests = loaded.manifests.filter(({ file }) => askedFiles.has(file));
  refuseRepeats(options.desired === undefined ? '--file' : '--desired', manifests);
  const namespaces = namespacesOf(options, namespace, [...manifests, ...loaded.documents]);
  const { listing, agentNamespace } = await listForPlan(cluster, namespaces, options.agentNamespace);
  const live = comparedObjects(listing);

  const askedObjects = [...documentsOf(files), ...manifests.map(({ value }) => value)].map((object) => inNamespace(object, namespace));
  const kinds = await resourcesOf(cluster, askedObjects);
  const asked = await liveTwins(cluster, askedObjects, kinds, live);
  const askedNames = new Set(askedObjects.map(nameOf));
  const { bundle, groupsBefore, errors } = policiesOver({
    files,
    askedFiles,
    asked,
    live,
    namespace,
    agentNamespace,
  });
  const groups = groupsToPlan(bundle.groups, groupsBefore);
  const selected = errors.length > 0 ? groups : selectGroups(groups, options);
  const digest = policyDigest(bundle);
  const sources = await readReplicaSourceObjects(cluster, selected);
  const snapshot = clusterSnapshot(listing, {
    policies: { ...bundle, groups: selected, digest, intents: unsignedIntents(listing, agentNamespace) },
    agentNamespace,
    nowMs,
    replicaSources: sources.map(({ view }) => view),
  });
  const sourceObjects = sources.flatMap(({ object }) => (object === undefined || object.kind === 'Scale' ? [] : [object]));
  const current: readonly ObjectContent[] = [
    ...live,
    ...extra(asked, live),
    ...sourceObjects.filter((object) => !askedNames.has(nameOf(object))),
  ];
  const stored = await Promise.all((errors.length > 0 ? [] : asked).map((one) => storedObject(cluster, one)));
  const overlay = new Map(asked.map(({ manifest }, index) => [nameOf(manifest), stored[index]?.object ?? manifest]));
  const wanted = new Map(asked.map(({ manifest }) => [nameOf(manifest), manifest]));
  const present = new Set(current.map(nameOf));
  const desired = [
    ...current.map((object) => overlay.get(nameOf(object)) ?? object),
    ...[...overlay].flatMap(([name, object]) => (present.has(name) ? [] : [object])),
  ].map((object) => withReplicasAsAsked(object, wanted.get(nameOf(object))));
  const askedGroups = new Set(loaded.documents.filter(({ kind }) => kind === 'RolloutGroup').map((one) => `${one.namespace}/${one.name}`));
  const { absent, notes } = await liveAbsence(cluster, errors.length > 0 ? [] : selected, askedGroups, desired);
  const isOurs = (object: ObjectContent): boolean => String(object['apiVersion']).startsWith('rollout-group.dev/');
  return {
    documents: { current: current.filter(isOurs), desired: desired.filter(isOurs) },
    errors,
    input: {
      groups: selected,
      groupsBefore,
      policies: bundle.policies,
      exceptions: bundle.exceptions,
      policyDigest: digest,
      current: current.filter((object) => !isOurs(object)),
      desired: withRevisions(
        applyWhatIf(
          desired.filter((object) => !isOurs(object)),
          selected,
          changes,
        ),
        current,
        itemsOf(listing.revisions),
      ),
      assumptions,
      running: snapshot,
      absent,
      nowMs,
    },
    asked: asked.map((one, index) => ({ ...one, ...(stored[index] ?? { object: one.manifest }) })),
    namespaces,
    agentNamespace,
    snapshot,
    basis: basisOf({ groups: selected, snapshot, live: current, asked: askedObjects }),
    notes: [...unreadNotes(listing), ...notes, ...new Set(stored.flatMap(({ note }) => note ?? []))],
  };
}

/** Lists everything that a plan reads. @throws Failure when StatefulSets may not be listed. */
export async function listForPlan(
  cluster: Cluster,
  namespaces: Namespaces,
  givenAgentNamespace?: string,
): Promise<{ readonly listing: Listing; readonly agentNamespace: string }> {
  const agentNamespace = givenAgentNamespace ?? (await agentNamespaceOf(cluster, namespaces));
  const listing = await listCluster({ ...cluster, agentNamespace }, [...snapshotNames, 'revisions'], namespaces);
  requiredStatefulSets(listing);
  return { listing, agentNamespace };
}

/** Returns the live objects that diff and plan compare, by kind. */
export function comparedObjects(listing: Listing): readonly ObjectContent[] {
  const { statefulSets, podBudgets, zoneBudgets, groups, policies, exceptions, agentPolicies } = listing;
  return [statefulSets, podBudgets, zoneBudgets, groups, policies, exceptions, agentPolicies].flatMap(itemsOf);
}

/** Names the lists that could not be read, one sentence part each. Without policies of the agent's namespace a plan is as without the agent. */
function unreadNotes(listing: Listing): readonly string[] {
  const { pods, nodes, podBudgets, zoneBudgets, groups, policies, exceptions, intents, documents } = listing;
  const unread = [pods, podBudgets, zoneBudgets, groups, policies, exceptions, intents, documents];
  return [
    ...new Set(unread.flatMap((list = []) => (isUnknown(list) ? [list.unknown] : []))),
    ...(nodes !== undefined && isUnknown(nodes) ? [`${nodes.unknown}; every node counts as ready`] : []),
  ];
}

/** Returns the requests without their requesters: a plan assumes approvals or names the missing ones, and cannot check a webhook's stamp. */
function unsignedIntents(listing: Listing, agentNamespace: string): LivePolicies['intents'] {
  return clusterState(listing, agentNamespace).policies.intents.map(({ requestedBy: _requester, ...rest }) => rest);
}

/** Returns the namespaces of the flags, else of the files, else of the context; undefined for all. */
function namespacesOf(
  { allNamespaces, namespaces, namespace }: LivePlanOptions,
  ofContext: string,
  files: readonly { readonly namespace: string }[],
): readonly string[] | undefined {
  if (namespaces !== undefined) return namespaces.length === 0 ? undefined : namespaces;
  if (allNamespaces === true) return undefined;
  const named = [...new Set(files.map((file) => file.namespace))].sort();
  return namespace === undefined && named.length > 0 ? named : [ofContext];
}

/** Returns live twins that are in no list, such as a Service. */
function extra(asked: readonly AskedObject[], live: readonly ObjectContent[]): readonly ObjectContent[] {
  const known = new Set(live.map(nameOf));
  return asked.flatMap(({ live: twin }) => (twin === undefined || known.has(nameOf(twin)) ? [] : [twin]));
}

function inNamespace(object: ObjectContent, namespace: string): ObjectContent {
  const metadata = isRecord(object['metadata']) ? object['metadata'] : {};
  return metadata['namespace'] === undefined && !clusterWide.has(String(object['kind']))
    ? { ...object, metadata: { ...metadata, namespace } }
    : object;
}

/** Cluster-wide kinds that are common in manifests. */
const clusterWide: ReadonlySet<string> = new Set([
  resources.namespaces.kind,
  resources.nodes.kind,
  resources.customResourceDefinitions.kind,
  'ClusterRole',
  'ClusterRoleBinding',
  'PriorityClass',
  'StorageClass',
  'PersistentVolume',
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
]);
