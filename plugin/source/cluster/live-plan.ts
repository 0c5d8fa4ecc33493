// Plans on a cluster: reads the live objects, merges the manifests and policies into them, and prepares a saved plan for apply.
import { getObject } from '../../../cluster/request/read.ts';
import { resources } from '../../../cluster/request/resource.ts';
import { fieldDiff, type ObjectContent } from '../../../engine/diff/field-diff.ts';
import { fieldAt, objectKey } from '../../../engine/observe/raw.ts';
import { ledgerRevisions, observeTemplate, withRevisions } from '../../../engine/observe/revisions.ts';
import { plannedChanges } from '../../../engine/plan/changes.ts';
import { revisionsBeforeTemplates } from '../../../engine/plan/controller.ts';
import { type ApiDenial, namesText, type Plan } from '../../../engine/plan/document.ts';
import { absentElsewhere, groupsToPlan } from '../../../engine/plan/groups.ts';
import { type AbsentMembers, type PlanInput, planGroups } from '../../../engine/plan/plan.ts';
import { cancelledDecreases, readPlanSnapshots } from '../../../engine/plan/world.ts';
import { disruptiveMembers, usualOrder, type WriteOrder, type WritePart, writeOrder } from '../../../engine/plan/write-order.ts';
import { policiesRead } from '../../../engine/rules/policy.ts';
import { isRollingBack } from '../../../engine/run/origin.ts';
import { isUnknown, ledgerOf, type Snapshot, setNamed } from '../../../engine/snapshot.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { policyDigest } from '../../../policies/digest.ts';
import { loadPolicies } from '../../../policies/load.ts';
import { usualAgentNamespace } from '../../../policies/objects/agent-deployment.ts';
import { ofKind } from '../../../policies/resolve/resolve.ts';
import { defined } from '../../../policies/values/defined.ts';
import { groupBy } from '../../../policies/values/group-by.ts';
import { firstOf } from '../../../policies/wording.ts';
import { rolloutGroups } from '../../cluster-snapshot/kinds.ts';
import {
  denialsByKind,
  itemsOf,
  type Listing,
  listCluster,
  listKnown,
  type Namespaces,
  refuseUnknownPlan,
  requiredStatefulSets,
  snapshotNames,
  unreadPolicies,
} from '../../cluster-snapshot/listing.ts';
import { clusterSnapshot, clusterState, readReplicaSourceObjects } from '../../cluster-snapshot/snapshot.ts';
import type { Cluster } from '../../connection.ts';
import { isAdmission, shortMessage } from '../../connection-failure.ts';
import type { CommandContext } from '../../context.ts';
import { memberNames, nameOf, objectChanges } from '../../difference.ts';
import { usageFailure } from '../../failure.ts';
import { leaseOfNamespace, readAgentLeases, readDecisions } from '../../live/agent.ts';
import { rejectedWrites, withInstallation } from '../../live/installation.ts';
import { groupNamed } from '../../live/target.ts';
import { requesterFor } from '../../live/user-judgements.ts';
import { readInput, readInputs } from '../input.ts';
import {
  type FilePlanInputs,
  type GivenFiles,
  type InputErrors,
  isPartial,
  type LivePlanOptions,
  type PlanInputOptions,
  type PlanInputs,
  planInputsOf,
  readScenario,
  refuseRepeats,
  selectGroups,
  unique,
} from '../plan-inputs.ts';
import { type SavedPlan, savedPlan } from '../saved-plan.ts';
import { applyWhatIf, withField } from '../what-if.ts';
import {
  type ManifestObject,
  pairWithLiveObjects,
  type StoredObject,
  storedObject,
  toApply,
  withManifestReplicas,
} from './desired-objects.ts';
import { adoptionOf } from './managed-fields.ts';
import { basisOf, type ReadObject } from './plan-basis.ts';
import { asFile, documentsOf, isOurs, policiesOver } from './plan-policies.ts';
import { type ReadyObject, takenText } from './server-apply.ts';

type DesiredObject = ManifestObject & StoredObject;

export type TriedObject = ReadyObject & Pick<StoredObject, 'trouble' | 'taken'>;

export interface LivePlanInputs extends PlanInputs {
  readonly desiredObjects: readonly DesiredObject[];
  /** The desired objects that change something, in the form and the order in which `apply` sends them. */
  readonly ready: readonly TriedObject[];
  readonly given: GivenFiles;
  readonly writeOrder: WriteOrder;
  /** The changed objects that --group and --namespace leave out, if any. */
  readonly omitted?: readonly string[];
  readonly forceConflicts: boolean;
  readonly namespaces: Namespaces;
  readonly agentNamespace: string;
  readonly basis: readonly ReadObject[];
  readonly denials: ReadonlyMap<string, string>;
  /** One sentence for each reason why an agent of the groups does not run. */
  readonly stoppedAgents: readonly string[];
}

export interface Planned extends LivePlanInputs {
  readonly plan: Plan;
}

/** Reads the files of --filename and --desired. Without --desired, the manifests among the files of --filename are desired. */
async function givenFiles(context: CommandContext, { desired, filename: file = [] }: PlanInputOptions): Promise<GivenFiles> {
  const policies = await readInputs(file, context);
  return { manifests: desired === undefined ? policies : await readInput(desired, context), policies };
}

export async function readAndPlan(...question: ReadArguments): Promise<Planned | InputErrors> {
  const inputs = await readLiveInputs(...question);
  return 'errors' in inputs ? inputs : { ...inputs, plan: planGroups(inputs.input) };
}

/** Reads the cluster and merges the files into its objects. Throws Failure like `readPlanInputs`, and if StatefulSets cannot be read. */
export async function readLiveInputs(...[context, options, cluster, files]: ReadArguments): Promise<LivePlanInputs | InputErrors> {
  const given = files ?? (await givenFiles(context, options));
  return selectedInputs(cluster, options, await readCluster(given, context, options, cluster));
}

/** Merges the objects of the files into the cluster. Merges again without the objects that the plan of the selected groups does not show. */
async function selectedInputs(cluster: Cluster, options: LivePlanOptions, read: ClusterReading): Promise<LivePlanInputs | InputErrors> {
  const inputs = await mergedInputs(cluster, options, read);
  if ('errors' in inputs) return inputs;
  const { omitted = unseenObjects(inputs, options) } = options;
  if (omitted.length === 0) return inWriteOrder(inputs);
  if (options.omitted === undefined) return selectedInputs(cluster, { ...options, omitted }, read);
  const selected = inputs.input.groups.map(({ namespace, name }) => `${namespace}/${name}`);
  const note = `the flags select ${firstOf(selected, 3)}; not applied: ${firstOf(omitted, 1)}`;
  return { ...inWriteOrder(inputs), omitted, notes: [note, ...inputs.notes] };
}

type ReadArguments = [context: CommandContext, options: LivePlanOptions, cluster: Cluster, files?: GivenFiles];

function unseenObjects({ input, ready }: MergedInputs, options: LivePlanOptions): readonly string[] {
  if (!isPartial(options)) return ready.filter((one) => isElsewhere(one, options)).map(({ object }) => nameOf(object));
  const compared = { ...input, ...readPlanSnapshots(input) };
  const shown = input.groups.flatMap((group) => {
    const parts = plannedChanges(group, compared, []).map(({ field }) => field.replace(/ (\S+).*/, ` ${group.namespace}/$1`));
    return [`RolloutGroup ${group.namespace}/${group.name}`, ...memberNames([group]), ...parts];
  });
  return ready.flatMap(({ object }) => (isPolicy(object) || shown.includes(nameOf(object)) ? [] : [nameOf(object)]));
}

function isElsewhere({ object, resource }: Pick<DesiredObject, 'object' | 'resource'>, { namespace }: LivePlanOptions): boolean {
  const isScoped = namespace !== undefined && resource?.isNamespaced !== false && !isPolicy(object);
  return isScoped && fieldAt(object, ['metadata', 'namespace']) !== namespace;
}

type ClusterReading = Awaited<ReturnType<typeof readCluster>>;

/** Reads the objects that the plan compares, and how the cluster would store the objects of the files. */
async function readCluster(given: GivenFiles, ...[context, options, cluster]: ReadArguments) {
  const scenario = await readScenario(context, options);
  const { namespace } = cluster;
  const files = unique([...given.manifests, ...given.policies]);
  const loaded = loadPolicies(files, { namespace });
  const manifests = loaded.manifests.filter(({ file }) => given.manifests.some(({ name }) => name === file));
  refuseRepeats(options.desired === undefined ? '--filename' : '--desired', manifests);
  const namespaces = namespacesOf(options, namespace, [...manifests, ...loaded.documents]);
  const { listing, agentNamespace } = await listForPlan(cluster, namespaces, options.agentNamespace);
  refuseUnknownPlan(listing);
  const live = comparedObjects(listing);
  const manifestObjects = await pairWithLiveObjects(cluster, [...documentsOf(files), ...manifests.map(({ value }) => value)], live);
  const forceConflicts = options.forceConflicts === true;
  const stored = await Promise.all(manifestObjects.map(async (one) => ({ ...one, ...(await storedObject(cluster, one, forceConflicts)) })));
  return { given, scenario, files, loaded, namespaces, listing, agentNamespace, live, forceConflicts, stored };
}

type MergedInputs = Omit<LivePlanInputs, 'writeOrder'>;

async function mergedInputs(cluster: Cluster, options: LivePlanOptions, read: ClusterReading): Promise<MergedInputs | InputErrors> {
  const { given, files, loaded, namespaces, listing, agentNamespace, live, forceConflicts, stored } = read;
  const { changes, ...scenario } = read.scenario;
  const { namespace } = cluster;
  const { desiredObjects, resulting, omitted } = withoutOmitted(stored, options);
  const { bundle, errors, ...definitions } = policiesOver({ files, desiredObjects: resulting, omitted, live, namespace, agentNamespace });
  if (errors.length > 0) return { errors, notes: unreadNotes(listing, agentNamespace) };
  const allGroups = groupsToPlan(bundle.groups, definitions.groupsBefore);
  const needed = desiredObjects.some((one) => isElsewhere(one, options)) ? { mayHaveNoGroup: false } : {};
  const groups = selectGroups(allGroups, { ...options, ...needed });
  const sources = await readReplicaSourceObjects(cluster, groups);
  const { policies, published } = clusterState(listing, agentNamespace);
  const { intents, ...before } = policies;
  const snapshot = clusterSnapshot(listing, {
    policies: { ...bundle, groups, digest: policyDigest(bundle), intents },
    agentNamespace,
    published,
    nowMs: scenario.nowMs,
    replicaSources: sources.map(({ view }) => view),
  });
  const current = firstOfEachName([...live, ...stored.flatMap((one) => one.live ?? []), ...sourceObjectsOf(sources)]);
  const desired = replaceByDesired(current, desiredObjects, memberNames(allGroups));
  const desiredGroups = new Set(ofKind(loaded.documents, 'RolloutGroup').map(({ namespace: place, name }) => `${place}/${name}`));
  const { absent, notes } = await liveAbsence(cluster, groups, desiredGroups, desired);
  const question = { groups, listing, published, agentNamespace };
  const { stopped, unread, snapshot: running } = await withInstallation({ ...cluster, agentNamespace }, snapshot, question);
  const rejected = rejectedWrites(groups.flatMap((group) => published.get(`${group.namespace}/${group.name}`) ?? []));
  const requester = await requesterFor(cluster, { policies: [...bundle.policies, ...before.policies] });
  const ready = readyObjects(desiredObjects, forceConflicts);
  const documents = { current: current.filter(isOurs), desired: desired.filter(isOurs) };
  const others = { current: current.filter((object) => !isOurs(object)), desired: desired.filter((object) => !isOurs(object)) };
  const revisions = [...itemsOf(listing.revisions), ...groups.flatMap((group) => ledgerRevisions(snapshot, group))];
  const input = {
    ...bundle,
    groups,
    ...definitions,
    running,
    before,
    absent,
    ...defined({ requester }),
    // The agent computes its digest from every namespace.
    policyDigest: namespaces === undefined ? snapshot.policyDigest : '',
    current: others.current,
    desired: withRevisions(applyWhatIf(others.desired, groups, changes), current, revisions),
    written: desiredObjects.map(({ manifest }) => manifest),
    revisions,
    ...scenario,
    ...objectChanges(documents, others, isPartial(options) ? undefined : memberNames(allGroups)),
    denied: denialsOf(ready),
  };
  return {
    documents,
    given,
    input,
    desiredObjects,
    ready,
    forceConflicts,
    namespaces,
    agentNamespace,
    basis: basisOf({ groups, snapshot: running, live: current, desiredObjects: stored.map(({ manifest }) => manifest) }),
    denials: denialsByKind(listing),
    stoppedAgents: stopped,
    notes: [...unreadNotes(listing, agentNamespace), ...stopped, ...rejected, ...notes, ...furtherNotes(input, unread, desiredObjects)],
  };
}

/** An omitted object counts as in the cluster. An object that the cluster lacks counts as in the files: references to it stay valid. */
function withoutOmitted(stored: ClusterReading['stored'], options: LivePlanOptions) {
  const isWritten = ({ manifest }: ManifestObject): boolean => options.omitted?.includes(nameOf(manifest)) !== true;
  const resulting = stored.filter((one) => isWritten(one) || one.live === undefined);
  const omitted = stored.filter((one) => !resulting.includes(one)).map(({ manifest }) => nameOf(manifest));
  return { desiredObjects: stored.filter(isWritten), resulting, omitted };
}

function sourceObjectsOf(sources: Awaited<ReturnType<typeof readReplicaSourceObjects>>): readonly ObjectContent[] {
  return sources.flatMap(({ object }) => (object === undefined || object.kind === 'Scale' ? [] : [object]));
}

/** Sorts the objects in the order of the writes. The order matters only if several objects change. */
function inWriteOrder(inputs: MergedInputs): LivePlanInputs {
  const { desiredObjects, ready, input } = inputs;
  const isMixed = new Set(ready.map(({ object }) => partOf(object))).size > 1;
  const order = isMixed ? writeOrder(input) : usualOrder;
  const first = ready.length > 1 ? disruptiveMembers(input) : new Set<string>();
  const isLater = (object: ObjectContent): boolean => object['kind'] !== 'StatefulSet' || !first.has(objectKey(object));
  const byPart = (a: Pick<DesiredObject, 'object'>, b: typeof a): number =>
    order.parts.indexOf(partOf(a.object)) - order.parts.indexOf(partOf(b.object)) || Number(isLater(a.object)) - Number(isLater(b.object));
  return { ...inputs, desiredObjects: desiredObjects.toSorted(byPart), ready: ready.toSorted(byPart), writeOrder: order };
}

const isPolicy = (object: ObjectContent): boolean => isOurs(object) && partOf(object) === 'policies';

function partOf(object: ObjectContent): WritePart {
  if (isOurs(object)) return object['kind'] === 'RolloutGroup' ? 'groups' : 'policies';
  return String(object['kind']).endsWith('PodDisruptionBudget') ? 'policies' : 'members';
}

function furtherNotes(input: PlanInput, unread: string | undefined, desiredObjects: readonly DesiredObject[]): readonly string[] {
  const notes = desiredObjects.flatMap(({ manifest, notes: texts, taken }) =>
    [...texts, ...(taken.length === 0 ? [] : [takenText(taken)])].map((message) => ({ object: nameOf(manifest), message })),
  );
  return [
    ...cancelledDecreases(input),
    ...(unread === undefined ? [] : [unread]),
    ...byMessage(notes).map(({ objects, message }) => `${namesText(objects)}: ${message}`),
  ];
}

function denialsOf(ready: readonly TriedObject[]): readonly ApiDenial[] {
  return byMessage(
    ready.flatMap(({ object, trouble }) =>
      trouble !== undefined && isAdmission(trouble) ? [{ object: nameOf(object), message: shortMessage(trouble.message) }] : [],
    ),
  );
}

function byMessage(said: readonly { readonly object: string; readonly message: string }[]): readonly ApiDenial[] {
  const byText = groupBy(said, ({ message }) => message);
  return [...byText].map(([message, same]) => ({ objects: [...new Set(same.map(({ object }) => object))], message }));
}

function firstOfEachName(objects: readonly ObjectContent[]): readonly ObjectContent[] {
  return [...groupBy(objects, nameOf).values()].map(([first]) => first);
}

/** Returns the running objects. A desired object replaces the running object of the same name. New objects come last. */
function replaceByDesired(
  current: readonly ObjectContent[],
  desiredObjects: readonly DesiredObject[],
  members: ReadonlySet<string>,
): readonly ObjectContent[] {
  const byName = new Map(desiredObjects.map((one) => [nameOf(one.manifest), one]));
  return firstOfEachName([...current, ...desiredObjects.map(({ object }) => object)]).map((object) => {
    const one = byName.get(nameOf(object));
    return members.has(nameOf(object)) ? withManifestReplicas(one?.object ?? object, one) : (one?.object ?? object);
  });
}

/**
 * Checks the groups in `desiredGroups` (`namespace/name`) that have no StatefulSet in their namespace. Returns as `absent`, which blocks
 * the group, each group whose StatefulSets exist in another namespace and belong to no group there. Returns a note on every other
 * checked group.
 */
export async function liveAbsence(
  cluster: Cluster,
  groups: readonly GroupDefinition[],
  desiredGroups: ReadonlySet<string>,
  desired: readonly unknown[],
): Promise<{ readonly absent: readonly AbsentMembers[]; readonly notes: readonly string[] }> {
  const there = new Set(desired.filter((object) => fieldAt(object, ['kind']) === 'StatefulSet').map(objectKey));
  const empty = groups.filter(
    ({ namespace, name, zones }) =>
      desiredGroups.has(`${namespace}/${name}`) && zones.every(({ statefulSet }) => !there.has(`${namespace}/${statefulSet}`)),
  );
  if (empty.length === 0) return { absent: [], notes: [] };
  const [sets, others] = await Promise.all([
    listKnown(cluster, resources.statefulSets, undefined),
    listKnown(cluster, rolloutGroups, undefined),
  ]);
  // Without both lists it is unknown whether the StatefulSets belong to another group.
  const absent = isUnknown(sets) || isUnknown(others) ? [] : absentElsewhere(empty, { sets, groups: others });
  const notes = empty
    .filter(({ namespace, name }) => !absent.some((one) => one.namespace === namespace && one.group === name))
    .map(({ namespace, name }) => `the namespace ${namespace} has no StatefulSet of the group ${name} yet`);
  return { absent, notes };
}

function readyObjects(desiredObjects: readonly DesiredObject[], forceConflicts: boolean): readonly TriedObject[] {
  return desiredObjects.flatMap((one): readonly TriedObject[] => {
    const { manifest, resource, live, object } = one;
    if (resource === undefined) return [];
    const isMoved = forceConflicts && adoptionOf(live) !== undefined;
    if (live !== undefined && !isMoved && fieldDiff(live, object).length === 0) return [];
    return [{ ...one, resource, object: toApply(manifest, live) }];
  });
}

/** Throws Failure for a Secret in the manifests, because saved plans are shared. */
export function refuseSecrets({ desiredObjects, omitted = [] }: Planned): void {
  if (![...desiredObjects.map(({ manifest }) => nameOf(manifest)), ...omitted].some((name) => name.startsWith('Secret '))) return;
  throw usageFailure('a saved plan must not contain a Secret', 'remove the Secrets from the manifests, and apply them separately');
}

export async function savedOf(cluster: Cluster, planned: Planned, nowMs: number): Promise<SavedPlan> {
  const { basis, plan, given, namespaces = [], agentNamespace, omitted, forceConflicts, ready } = planned;
  const scope = defined({
    cluster: await clusterUid(cluster),
    server: cluster.server,
    namespaces,
    agentNamespace,
    groups: planned.input.groups.map(({ namespace, name }) => `${namespace}/${name}`).sort(),
    files: given,
    omitted,
    forceConflicts: forceConflicts || undefined,
  });
  return savedPlan({ scope, basis, objects: ready.map(({ object }) => object), plan }, nowMs);
}

/** Reads the objects of a cluster as requested manifests. The running manifests have the templates before the rollout in progress. */
export async function readSimulationInputs(...[context, options, cluster]: ReadArguments): Promise<FilePlanInputs | InputErrors> {
  const scenario = await readScenario(context, options);
  const { listing, agentNamespace } = await listForPlan(cluster, namespacesOf(options, cluster.namespace, []), options.agentNamespace);
  refuseUnknownPlan(listing);
  const { policies } = clusterState(listing, agentNamespace);
  const { groups } = policies;
  const read = await readReplicaSourceObjects(cluster, groups);
  const sources = read.flatMap(({ object }) => object ?? []);
  const times = { nowMs: cluster.env.clock.nowMs(), replicaSources: read.map(({ view }) => view) };
  const snapshot = clusterSnapshot(listing, { policies, agentNamespace, published: new Map(), ...times });
  const before = new Map(groups.flatMap((group) => templatesBefore(group, listing, snapshot)));
  const objects: readonly ObjectContent[] = [...comparedObjects(listing), ...sources.filter(({ kind }) => kind !== 'Scale')];
  const current = objects.map((object) => {
    const template = object['kind'] === 'StatefulSet' ? before.get(objectKey(object)) : undefined;
    return asFile(template === undefined ? object : withField(object, ['spec', 'template'], template));
  });
  const files = { current, desired: objects.map(asFile), policies: await readInputs(options.filename ?? [], context) };
  return planInputsOf(files, scenario, { ...options, agentNamespace });
}

/** Returns the templates of the members before the present ones, by `namespace/name`; no template if no rollout is in progress or due. */
function templatesBefore(group: GroupDefinition, listing: Listing, snapshot: Snapshot): readonly (readonly [string, ObjectContent])[] {
  const { namespace, zones } = group;
  const { run } = ledgerOf(snapshot, group);
  if (run === undefined || isRollingBack(run)) return [];
  const setOf = (statefulSet: string) => setNamed(snapshot, namespace, statefulSet);
  const isKnown = zones.every(({ name, statefulSet }) => setOf(statefulSet)?.status.updateRevision === run.target[name]);
  if (run.outcome === 'completed' && isKnown) return [];
  const before = revisionsBeforeTemplates(snapshot, group, run);
  return zones.flatMap(({ name: zone, statefulSet }) => {
    const wanted = before.get(zone)?.to;
    const revision = itemsOf(listing.revisions).find(({ metadata }) => metadata.namespace === namespace && metadata.name === wanted);
    const template = revision && observeTemplate(revision, setOf(statefulSet)?.uid ?? '');
    return template === undefined || isUnknown(template) ? [] : [[`${namespace}/${statefulSet}`, template] as const];
  });
}

/** Returns the UID of the namespace kube-system, which does not depend on the address of the cluster; undefined if it cannot be read. */
export async function clusterUid({ env, timeoutMs }: Cluster): Promise<string | undefined> {
  try {
    const namespace = await getObject(env, resources.namespaces, { name: 'kube-system' }, { site: 'source.cluster', timeoutMs });
    return namespace?.metadata.uid;
  } catch {
    return undefined;
  }
}

/** Lists all objects that a plan needs. Throws Failure if the user may not list StatefulSets. */
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

export function comparedObjects(listing: Listing): readonly ObjectContent[] {
  const { statefulSets, podBudgets, zoneBudgets, groups, policies, exceptions, agentPolicies } = listing;
  return [statefulSets, podBudgets, zoneBudgets, groups, policies, exceptions, agentPolicies].flatMap(itemsOf);
}

/** Returns a note on each list that the user may not read. Revisions get no note. */
function unreadNotes(listing: Listing, agentNamespace: string): readonly string[] {
  const { pods, nodes, podBudgets, zoneBudgets, groups, exceptions, intents, documents } = listing;
  const unread = [pods, podBudgets, zoneBudgets, groups, exceptions, intents, documents];
  const policies = policiesRead({ unread: unreadPolicies(listing, agentNamespace) });
  return [
    ...new Set(unread.flatMap((list = []) => (isUnknown(list) ? [list.unknown] : []))),
    ...(policies === undefined ? [] : [`${policies.fact}; a policy that the plan does not contain may block its groups`]),
    ...(nodes !== undefined && isUnknown(nodes) ? [`${nodes.unknown}; every node counts as ready`] : []),
  ];
}

/** Returns the namespaces of the flags, else of the files and of --group, else of the context; undefined for all. */
function namespacesOf(
  { allNamespaces, namespaces, namespace, group = [] }: LivePlanOptions,
  ofContext: string,
  files: readonly { readonly namespace: string }[],
): readonly string[] | undefined {
  if (namespaces !== undefined) return namespaces.length === 0 ? undefined : namespaces;
  if (allNamespaces === true) return undefined;
  // A group name without a namespace adds no namespace to those of the files.
  const ofName = (name: string): string => groupNamed(name, { namespace: files[0]?.namespace ?? ofContext }).namespace;
  const named = [...new Set([...files.map((file) => file.namespace), ...group.map(ofName)])].sort();
  return namespace === undefined && named.length > 0 ? named : [ofContext];
}

/** Returns the namespace of the agent's Lease, or the default. Throws Failure if several agents are possible. */
export async function agentNamespaceOf(cluster: Cluster, namespaces: readonly string[] | undefined): Promise<string> {
  const leases = itemsOf((await readAgentLeases(cluster, [])).leases);
  const [first, second] = leases;
  if (first === undefined) return usualAgentNamespace;
  if (second === undefined) return first.namespace;
  const decisions = await readDecisions(cluster, namespaces);
  const decided = itemsOf(decisions).map(({ namespace }) => namespace);
  const places = new Set((namespaces ?? decided).map((namespace) => leaseOfNamespace(leases, decisions, namespace)?.namespace));
  const [only] = places;
  if (places.size === 1 && only !== undefined) return only;
  const names = [...leases].map(({ namespace }) => namespace).sort();
  throw usageFailure(
    `agents run in the namespaces ${names.join(', ')}, and ${places.size > 1 ? 'several of them decide here' : 'which of them decides here is unknown'}`,
    `name one with --agent-namespace, such as --agent-namespace ${names[0] ?? ''}`,
  );
}
