// Combines a directory, objects and adopted StatefulSets into the policies of a running cluster.
import { type Adoption, adoptGroups } from '../adopt/adopt.ts';
import type { ExceptionDefinition, GroupDefinition, PolicyBundle, PolicyDefinition } from '../definition.ts';
import { policyDigest } from '../digest.ts';
import { type Finding, finding, sortFindings } from '../findings/finding.ts';
import { type MetricSourceDefinition, metricSourceOf } from '../integrations/metric-source.ts';
import { lintContext } from '../lint/context.ts';
import { adoptionFindings, checkDocuments } from '../lint/lint.ts';
import { checkRuleConditions, checkWindowTimes } from '../lint/policies.ts';
import { type Loaded, type LoadedDocument, type LoadResult, loadPolicies, type PolicyFile, type UnusableDocument } from '../load.ts';
import { resolvePolicy } from '../resolve/policy.ts';
import { ofKind, resolvePolicies, type StatefulSetLabels } from '../resolve/resolve.ts';
import type { RolloutGroup } from '../schema/kinds.ts';
import { rolloutPolicySpec } from '../schema/rollout-policy.ts';
import { textAt, textsOf, valueAt } from '../schema/schema-walk.ts';
import { defined } from '../values/defined.ts';
import { firstByKey } from '../values/group-by.ts';
import { intentOf, type LiveIntent } from './intents.ts';
import { loadObjects } from './objects.ts';

type LiveSource = 'directory' | 'objects' | 'adopted';

export interface LiveInput {
  readonly directory?: readonly PolicyFile[];
  /** The objects of our kinds, as the API server returns them. */
  readonly objects?: readonly unknown[];
  /** The StatefulSets (`apps/v1`): all, or only those of groups. Each one has at least the fields that `adoptionDigest` reads. */
  readonly statefulSets: readonly unknown[];
  /** The sources of groups, policies and exceptions in order of precedence. Intents of objects always count. */
  readonly order: readonly LiveSource[];
  /** The namespace whose policies may name other namespaces. */
  readonly agentNamespace: string;
  /** The namespaces whose groups the agent manages; all if absent. */
  readonly namespaces?: readonly string[];
  /** True if a webhook stamps `requestedBy` of intents and exceptions; otherwise requesters are not trusted. */
  readonly areIntentsStamped?: boolean;
  /** The rules of the engine that exceptions may name; without them only rules of policies are checked. */
  readonly engineRules?: readonly string[];
}

/** The policies of a cluster. Groups, exceptions and intents are sorted by namespace and name. */
export interface LivePolicies extends PolicyBundle {
  readonly intents: readonly LiveIntent[];
  /** The metric sources of the policy directory. The agent reads MetricSource objects when it uses them. */
  readonly metricSources: readonly MetricSourceDefinition[];
  /** The errors and warnings, without notices. */
  readonly findings: readonly Finding[];
  /** True if no file of the policy directory has an error. */
  readonly isDirectorySound: boolean;
  /** The digest of groups, policies and exceptions. It does not depend on the order of the inputs, on file names or on line numbers. */
  readonly digest: string;
  /** Returns the source that defines a group; undefined if no source does. */
  readonly origin: (group: { readonly namespace: string; readonly name: string }) => LiveSource | undefined;
}

/**
 * Combines all sources. Never throws: an unusable document causes a finding. A RolloutGroup of a source before `adopted` replaces each
 * adopted group with the same name or with one of the same members, even if the RolloutGroup is invalid. An unusable policy or directory
 * blocks all groups to which it might apply. A StatefulSet in two written groups blocks both groups.
 */
export function resolveLive(input: LiveInput): LivePolicies {
  const loads = loadSources(input);
  const adoption = input.order.includes('adopted') ? adoptGroups(input.statefulSets) : noAdoption;
  const { before, after } = aroundAdopted(input.order);
  const first = documentsOf(loads, before);
  const { kept, findings: late } = withoutAdopted(documentsOf(loads, after), adoption);
  const unusable = before.flatMap((source) => loads[source].unusable);
  const statefulSets = labelsOf(input.statefulSets);
  const documents = [...first, ...kept].filter((document) => isDefinedHere(input, loads, document));
  const resolution = resolvePolicies(documents, {
    statefulSets,
    isCluster: true,
    adoption: { ...adoption, groups: adoption.groups.filter((group) => !unusable.some((document) => replaces(document, group))) },
  });
  const groups = resolution.bundle.groups.filter((group) => input.namespaces?.includes(group.namespace) ?? true);
  const policies = [...resolution.bundle.policies, ...blockingPolicies(loads, groups, input.agentNamespace)];
  const bundle = { ...resolution.bundle, groups, policies };
  const origins = originsOf(bundle.groups, loads, input.order);
  const intents = [...ofKind(loads.objects.documents, 'RolloutIntent'), ...ofKind(documentsOf(loads, ['directory']), 'RolloutIntent')];
  const checked = checkDocuments({
    load: { ...loads.objects, documents, unusable: [...loads.directory.unusable, ...loads.objects.unusable] },
    bundle: resolution.bundle,
    intents,
    statefulSets,
    isCluster: true,
    agentNamespace: input.agentNamespace,
    engineRules: input.engineRules,
  });
  const adopted = new Set(groups.filter((group) => origins.get(keyOf(group)) === 'adopted').flatMap(memberNames));
  const all = [
    ...loads.directory.findings,
    ...loads.objects.findings,
    ...resolution.findings,
    ...late,
    ...unwatchedGroups(input, resolution.bundle.groups, documents),
    ...adoptionFindings(adoption.findings, []).filter(({ object = '' }) => adopted.has(object)),
    ...checked,
  ];
  const isStamped = (file: string | undefined): boolean => (file ?? '') === '' && input.areIntentsStamped === true;
  return {
    ...bundle,
    exceptions: bundle.exceptions.map((one) => (isStamped(one.source.file) ? one : withoutRequester(one))),
    intents: firstByKey(intents, keyOf).map((document) => intentOf(document, isStamped(document.file))),
    metricSources: metricSourcesOf(loads.directory, input.agentNamespace),
    findings: sortFindings(all.filter(({ severity }) => severity !== 'notice')),
    isDirectorySound: !hasErrors(loads.directory),
    digest: policyDigest(bundle),
    origin: (group) => origins.get(keyOf(group)),
  };
}

function withoutRequester({ requestedBy: _unverified, ...exception }: ExceptionDefinition): ExceptionDefinition {
  return exception;
}

type WrittenSource = Exclude<LiveSource, 'adopted'>;
type Loads = Readonly<Record<WrittenSource, LoadResult>>;

const nothing: LoadResult = { documents: [], manifests: [], unusable: [], findings: [] };
const noAdoption: Adoption = { groups: [], findings: [], sources: {} };

/** Loads directory and objects. In files the default namespace is the agent's, or the managed namespace if the agent manages only one. */
function loadSources({ directory, objects, namespaces, agentNamespace, order }: LiveInput): Loads {
  const namespace = namespaces?.length === 1 ? (namespaces[0] ?? agentNamespace) : agentNamespace;
  const used = order.includes('objects') ? (objects ?? []) : (objects ?? []).filter((raw) => valueAt(raw, ['kind']) === 'RolloutIntent');
  return {
    directory: directory && order.includes('directory') ? excludeInvalidPolicies(loadPolicies(directory, { namespace })) : nothing,
    objects: excludeInvalidPolicies(loadObjects(used)),
  };
}

/** Returns one blocking policy for each unusable RolloutPolicy object, and one for each namespace if the policy directory has errors. */
function blockingPolicies(
  { directory, objects }: Loads,
  groups: readonly GroupDefinition[],
  agentNamespace: string,
): readonly PolicyDefinition[] {
  const broken = objects.unusable.filter(({ kind }) => kind === 'RolloutPolicy');
  return [
    // The documents of an unreadable file are unknown.
    ...(hasErrors(directory) ? blockAllGroups(groups, 'files', 'the policy directory has errors') : []),
    ...broken.map((document) => blockInsteadOf(document, groups, agentNamespace)),
  ];
}

function hasErrors({ findings }: LoadResult): boolean {
  return findings.some(({ severity }) => severity === 'error');
}

/** Returns the written sources before and after `adopted`; without it, all are before. */
function aroundAdopted(order: readonly LiveSource[]): { readonly [part in 'before' | 'after']: readonly WrittenSource[] } {
  const end = order.includes('adopted') ? order.indexOf('adopted') : order.length;
  const isWritten = (source: LiveSource) => source !== 'adopted';
  return { before: order.slice(0, end).filter(isWritten), after: order.slice(end).filter(isWritten) };
}

function documentsOf(loads: Loads, sources: readonly WrittenSource[]): readonly LoadedDocument[] {
  return sources.flatMap((source) => loads[source].documents);
}

/** Returns the documents without groups that are already adopted, and a finding for each such group. */
function withoutAdopted(documents: readonly LoadedDocument[], adoption: Adoption) {
  const findings: Finding[] = [];
  const kept = documents.filter((document) => {
    const adopted = document.kind === 'RolloutGroup' && adoption.groups.find((group) => replaces(document, group));
    if (!adopted) return true;
    const message = `${document.kind} ${keyOf(document)} is defined twice; it is ignored, because the adopted group ${adopted.metadata.name} comes first`;
    findings.push(finding('RG2101', document.place(['metadata', 'name']), message));
    return false;
  });
  return { kept, findings };
}

/** Reports whether a written group, usable or not, has the name or a member of an adopted group. */
function replaces({ kind, namespace, name, value }: UnusableDocument, { metadata, spec }: RolloutGroup): boolean {
  if (kind !== 'RolloutGroup' || namespace !== metadata.namespace) return false;
  const zones = valueAt(value, ['spec', 'members', 'zones']);
  const named = Array.isArray(zones) ? zones.map((zone) => valueAt(zone, ['statefulSet'])) : [];
  return name === metadata.name || (spec.members.zones ?? []).some((zone) => named.includes(zone.statefulSet));
}

/** Returns false for a copy of a group of the directory, and for a group with an unusable document in an earlier source. */
function isDefinedHere({ order }: LiveInput, loads: Loads, document: LoadedDocument): boolean {
  if (document.kind !== 'RolloutGroup') return true;
  const own = document.file === '' ? 'objects' : 'directory';
  if (own === 'objects' && isCopy(document) && order.includes('directory')) return false;
  const isBroken = (source: WrittenSource): boolean =>
    loads[source].unusable.some((other) => other.kind === document.kind && keyOf(other) === keyOf(document));
  return !order.slice(0, order.indexOf(own)).some((source) => source !== 'adopted' && isBroken(source));
}

/** The annotation of a RolloutGroup object that the agent wrote for a group of its directory, to publish status and scale. */
const sourceAnnotation = 'rollout-group.dev/source';

/** Returns the metric sources of the agent's namespace, sorted by name. Of two documents with the same name, the first counts. */
function metricSourcesOf({ documents }: LoadResult, agentNamespace: string): readonly MetricSourceDefinition[] {
  const own = ofKind(documents, 'MetricSource').filter(({ value }) => (value.metadata.namespace ?? agentNamespace) === agentNamespace);
  return firstByKey(own, ({ name }) => name).map(({ value }) => metricSourceOf(value));
}

function unwatchedGroups(
  { namespaces }: LiveInput,
  groups: readonly GroupDefinition[],
  documents: readonly LoadedDocument[],
): readonly Finding[] {
  return groups.flatMap((group) => {
    if (namespaces?.includes(group.namespace) ?? true) return [];
    const document = ofKind(documents, 'RolloutGroup').find((candidate) => keyOf(candidate) === keyOf(group));
    const message = `the group ${group.name} is in the namespace ${group.namespace}, which the agent does not manage`;
    return document === undefined ? [] : [finding('RG2206', document.place(['metadata', 'name']), message, { severity: 'warning' })];
  });
}

function originsOf(groups: readonly GroupDefinition[], loads: Loads, order: readonly LiveSource[]): ReadonlyMap<string, LiveSource> {
  const written = order.flatMap((source) =>
    source === 'adopted' ? [] : ofKind(loads[source].documents, 'RolloutGroup').map((document) => ({ source, document })),
  );
  return new Map(
    groups.map((group) => {
      // The source of an adopted group is its StatefulSets. The source of a written group is the file or the object itself.
      const isAdopted = group.sources['']?.object?.startsWith('StatefulSet ') === true;
      const found = written.find(({ source, document }) => keyOf(document) === keyOf(group) && !(source === 'objects' && isCopy(document)));
      return [keyOf(group), isAdopted ? 'adopted' : (found?.source ?? 'adopted')];
    }),
  );
}

function isCopy(document: LoadedDocument): boolean {
  return document.value.metadata.annotations?.[sourceAnnotation] === 'directory';
}

function memberNames(group: GroupDefinition): readonly string[] {
  return group.zones.map((zone) => `StatefulSet ${group.namespace}/${zone.statefulSet}`);
}

function labelsOf(statefulSets: readonly unknown[]): readonly StatefulSetLabels[] {
  return statefulSets.flatMap((raw) => {
    const [name, namespace = 'default'] = [textAt(raw, ['metadata', 'name']), textAt(raw, ['metadata', 'namespace'])];
    return name === undefined ? [] : [{ namespace, name, labels: textsOf(valueAt(raw, ['metadata', 'labels'])) }];
  });
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

/** Moves RolloutPolicies with invalid conditions, schedules or ranges to the unusable documents, and adds their findings. */
export function excludeInvalidPolicies(load: LoadResult): LoadResult {
  const unsound = new Map(
    ofKind(load.documents, 'RolloutPolicy').flatMap((policy): readonly [Loaded<'RolloutPolicy'>, readonly Finding[]][] => {
      const findings = problemsOf(policy, load);
      return findings.length === 0 ? [] : [[policy, findings]];
    }),
  );
  if (unsound.size === 0) return load;
  const isUnsound = (document: LoadResult['documents'][number]): boolean => document.kind === 'RolloutPolicy' && unsound.has(document);
  return {
    ...load,
    documents: load.documents.filter((document) => !isUnsound(document)),
    unusable: [...load.unusable, ...[...unsound.keys()].map(({ kind, namespace, name, value }) => ({ kind, namespace, name, value }))],
    findings: [...load.findings, ...[...unsound.values()].flat()],
  };
}

function problemsOf(policy: Loaded<'RolloutPolicy'>, load: LoadResult): readonly Finding[] {
  const context = lintContext({
    load: { ...load, documents: [policy] },
    bundle: { groups: [], policies: [resolvePolicy(policy)], exceptions: [] },
    statefulSets: [],
    agentNamespace: '',
    engineRules: undefined,
  });
  return [checkRuleConditions, checkWindowTimes]
    .flatMap((check) => check(context))
    .filter(({ severity, pointer }) => severity === 'error' && !pointer.endsWith('/message'));
}

/** Returns a policy that blocks all actions on its targets except scale-ups. By default the targets are all groups of its namespace. */
function blockingPolicy(
  namespace: string,
  name: string,
  reason: string,
  targets: PolicyDefinition['targets'] = { all: true },
): PolicyDefinition {
  return {
    namespace,
    name: `unreadable-${name}`,
    targets,
    metrics: {},
    rules: [
      {
        name: 'hold',
        actions: ['scaleDown', 'rollout', 'restart', 'delete', 'evict'],
        effect: 'hold',
        onUnknown: 'hold',
        approval: { count: 1, from: [] },
        message: reason,
        source: {},
      },
    ],
    windows: [],
    limits: {},
    limitSources: {},
  };
}

/** Returns one blocking policy for each namespace with a group. */
export function blockAllGroups(groups: readonly GroupDefinition[], name: string, reason: string): readonly PolicyDefinition[] {
  return [...new Set(groups.map(({ namespace }) => namespace))].sort().map((namespace) => blockingPolicy(namespace, name, reason));
}

/** Returns a policy that blocks all targets of an unusable RolloutPolicy, or every group that it may name if its targets are unreadable. */
export function blockInsteadOf(
  { namespace, name, value }: UnusableDocument,
  groups: readonly GroupDefinition[],
  agentNamespace: string,
): PolicyDefinition {
  const reason = `RolloutPolicy ${namespace}/${name} has errors`;
  const read = rolloutPolicySpec.shape.targets.safeParse(valueAt(value, ['spec', 'targets']));
  const chosen = read.success ? [read.data.groups, read.data.selector, read.data.all].filter((one) => one !== undefined) : [];
  if (read.success && chosen.length === 1) return blockingPolicy(namespace, name, reason, defined(read.data));
  if (namespace !== agentNamespace) return blockingPolicy(namespace, name, reason);
  const namespaces = [...new Set([namespace, ...groups.map((group) => group.namespace)])].sort();
  return blockingPolicy(namespace, name, reason, { all: true, namespaces });
}
