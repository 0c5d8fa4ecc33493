// Gathers the facts for the checks of doctor from the cluster. A fact that the user may not read is unknown.
import { onStatus } from '../../../cluster/request/failure.ts';
import { getObject } from '../../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resourceOf, resources } from '../../../cluster/request/resource.ts';
import { namedSecretProblem, secretReader } from '../../../cluster/request/secret.ts';
import { ledgerKey, ledgerLabel, releaseLabel } from '../../../engine/ledger/ledger-document.ts';
import { observePodBudget } from '../../../engine/observe/budget.ts';
import { observePod, observeStatefulSet } from '../../../engine/observe/objects.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { containersOf } from '../../../engine/plan/risks.ts';
import { isUnknown, type Known } from '../../../engine/snapshot.ts';
import { mirrorsOf } from '../../../install/scope.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { messageOf } from '../../../policies/error-message.ts';
import { secretKeysOf } from '../../../policies/integrations/channel.ts';
import { loadObjects } from '../../../policies/live/objects.ts';
import { usualAgentNamespace } from '../../../policies/objects/agent-deployment.ts';
import { customResourceDefinition } from '../../../policies/schema/json-schema.ts';
import { type Kind, kinds, resourceOfKind } from '../../../policies/schema/kinds.ts';
import { traitsOf } from '../../../policies/strategies.ts';
import { isSameValue } from '../../../policies/values/canonical-json.ts';
import { defined } from '../../../policies/values/defined.ts';
import { tryParseJson } from '../../../policies/values/try-parse-json.ts';
import { metricSources, notificationChannels } from '../../cluster-snapshot/kinds.ts';
import { itemsOf, listKnown, mayBeInstalled } from '../../cluster-snapshot/listing.ts';
import type { Cluster } from '../../connection.ts';
import { type AgentLease, type LatestDecision, readAgentLeases, readDecisions } from '../../live/agent.ts';
import { failingChannels } from '../../live/notes.ts';
import { readPolicyFiles } from '../../policy-files.ts';
import { comparedObjects, listForPlan } from '../../source/cluster/live-plan.ts';
import { asFile } from '../../source/cluster/plan-policies.ts';
import { mirrorRights } from '../agent-rights.ts';
import type { AutoscalerFact, Facts, KindFact, LedgerFact, OperatorFact, SecretsFact } from '../check.ts';
import { readAccounts } from './accounts.ts';
import { readAdmissionPolicies, readRegistration, readWebhookAccounts } from './admission.ts';

interface DoctorScope {
  /** The namespaces to check; absent for all. */
  readonly namespaces?: readonly string[];
  /** The namespace of the agent; if absent, the namespace of the Lease of a deciding agent. */
  readonly agentNamespace?: string;
  /** `namespace/name` of the agent's account; if absent, the account of the agent's pod, else the default account. */
  readonly serviceAccount?: string;
}

const deployments = resourceOf('apps/v1', 'deployments', 'Deployment');
const scaledObjects = resourceOf('keda.sh/v1alpha1', 'scaledobjects', 'ScaledObject');

/** Gathers all facts. Throws a Failure if the user may not read StatefulSets, because no group can then be checked. */
export async function gatherFacts(cluster: Cluster, scope: DoctorScope, nowMs: () => number): Promise<Facts> {
  const { namespaces } = scope;
  const list = (resource: Resource) => listKnown(cluster, resource, namespaces);
  const places = [scope.agentNamespace ?? usualAgentNamespace, ...(namespaces ?? [])].map((namespace) => ({ namespace }));
  const [agents, published] = await Promise.all([readAgentLeases(cluster, places), readDecisions(cluster, namespaces)]);
  const isHeld = itemsOf(agents.leases).some(({ holder }) => holder !== '');
  const leases = isHeld ? agents.leases : (agents.unread ?? agents.leases);
  const agentNamespace = scope.agentNamespace ?? leaseInCharge(leases, published)?.namespace ?? usualAgentNamespace;
  const [{ listing }, clock, deployed, autoscalers, scaled, installed] = await Promise.all([
    listForPlan(cluster, namespaces, agentNamespace),
    readVersion(cluster, nowMs),
    list(deployments),
    list(resources.horizontalPodAutoscalers),
    list(scaledObjects),
    readKinds(cluster),
  ]);
  const { documents = [], pods = [], podBudgets = [] } = listing;
  const statefulSets = itemsOf(listing.statefulSets);
  const { resolution, findings } = readPolicyFiles(comparedObjects(listing).map(asFile), { agentNamespace });
  const { groups, policies } = resolution.bundle;
  const unreadGroups = [listing.groups].find(isUnknown);
  const unreadPolicies = [listing.policies, listing.agentPolicies].find(isUnknown);
  const unreadOthers = [listing.exceptions, listing.podBudgets, listing.zoneBudgets].find(isUnknown);
  const registration = unreadGroups ?? unreadPolicies ?? (await readRegistration(cluster, { agentNamespace, groups, policies }));
  const admissionPolicies = unreadGroups ?? (await readAdmissionPolicies(cluster, { agentNamespace, groups, registration }));
  const secrets = await readNamedSecrets(cluster, agentNamespace);
  const managed = [...new Set([...groups, ...itemsOf(published)].map(({ namespace }) => namespace))];
  const watched = namespaces ?? managed;
  const pinned = groups.filter((group) => traitsOf(group).pinsPods).map(({ namespace }) => namespace);
  const mirrored = mirrorsOf(groups).flatMap(mirrorRights);
  const configurations = isUnknown(registration) ? [] : registration.configurations;
  const question = { ...scope, watched, managed, pinned, mirrored, configurations, leases, published, usualNamespace: agentNamespace };
  const accounts = await readAccounts(cluster, question);
  return {
    ...clock,
    maxUnavailableGate: await readMaxUnavailableGate(cluster, groups),
    agentNamespace,
    leases,
    unread: defined({ leases: agents.unread, autoscalers: [scaled].find(isUnknown) }),
    published,
    kinds: installed,
    registration,
    ...(admissionPolicies === undefined ? {} : { admissionPolicies }),
    secrets,
    accounts: [...accounts, ...(await readWebhookAccounts(cluster, registration, { agentNamespace, pinned, known: accounts }))],
    operators: readEach(deployed, operatorOf),
    autoscalers: readEach(autoscalers, autoscalerOf, itemsOf(scaled)),
    groups: unreadGroups ?? groups,
    createdMs: new Map(itemsOf(listing.groups).map(createdAt)),
    policies: unreadPolicies ?? policies,
    findings: unreadGroups ?? unreadPolicies ?? unreadOthers ?? findings,
    statefulSets,
    sets: statefulSets.map(observeStatefulSet).flatMap(ifKnown),
    pods: readEach(pods, (pod) => ifKnown(observePod(pod))),
    budgets: readEach(podBudgets, (budget) => ifKnown(observePodBudget(budget))),
    ledgers: readEach(documents, ledgerOf),
    failingChannels: readEach(documents, failingChannels),
  };
}

/** Returns the facts of the objects and of `more`; unknown if the list of objects is unknown. */
function readEach<Fact>(
  objects: Known<readonly KubernetesObject[]>,
  read: (object: KubernetesObject) => readonly Fact[],
  more: readonly KubernetesObject[] = [],
): Known<readonly Fact[]> {
  return isUnknown(objects) ? objects : [...objects, ...more].flatMap((object) => read(object));
}

function ifKnown<View>(view: Known<View>): readonly View[] {
  return isUnknown(view) ? [] : [view];
}

function createdAt({ metadata }: KubernetesObject): readonly [name: string, createdMs: number] {
  return [`${metadata.namespace}/${metadata.name}`, Date.parse(metadata.creationTimestamp ?? '')];
}

/** Returns the first Lease whose holder decides about the checked namespaces, else the first Lease with a holder. */
function leaseInCharge(leases: Known<readonly AgentLease[]>, published: Known<readonly LatestDecision[]>): AgentLease | undefined {
  const held = itemsOf(leases).filter(({ holder }) => holder !== '');
  const deciders = new Set(itemsOf(published).map(({ leader }) => leader));
  return held.find(({ holder }) => deciders.has(holder)) ?? held[0];
}

/** The resolution of the header Date. The server can write the header at any time between request and answer. */
const dateResolutionMs = 1_000;

async function readVersion({ env, timeoutMs }: Cluster, nowMs: () => number) {
  const askedMs = nowMs();
  const { status, body, headers } = await env.kubernetes.request({ method: 'GET', path: '/version', timeoutMs, site: 'doctor.version' });
  const answeredMs = nowMs();
  const serverMs = Date.parse(headers['date'] ?? '');
  const version = status === 200 ? fieldAt(tryParseJson(body), ['gitVersion']) : undefined;
  const known: Pick<Facts, 'nowMs' | 'clockDoubtMs' | 'serverMs' | 'serverVersion'> = {
    nowMs: (askedMs + answeredMs) / 2,
    clockDoubtMs: (answeredMs - askedMs) / 2 + dateResolutionMs,
    serverMs: Number.isNaN(serverMs) ? { unknown: 'the API server returns no time' } : serverMs + dateResolutionMs / 2,
    serverVersion: typeof version === 'string' ? version : { unknown: `the version of the API server cannot be read (${status})` },
  };
  return known;
}

async function readMaxUnavailableGate({ env, timeoutMs }: Cluster, groups: readonly GroupDefinition[]): Promise<Known<boolean>> {
  // The metrics of an API server can have many megabytes.
  if (!groups.some((group) => traitsOf(group).lowersPartition)) return { unknown: 'no group has the strategy partition' };
  const read = env.kubernetes.request({ method: 'GET', path: '/metrics', timeoutMs, site: 'doctor.featureGate' });
  const answer = await read.catch((error: unknown) => ({ unknown: messageOf(error) }));
  if (isUnknown(answer)) return answer;
  const { status, body } = answer;
  const [, value] = /^kubernetes_feature_enabled\{name="MaxUnavailableStatefulSet",.*\} ([01])$/m.exec(status === 200 ? body : '') ?? [];
  return value === undefined ? { unknown: `the metrics of the API server do not show the feature gate (${status})` } : value === '1';
}

function operatorOf(object: KubernetesObject): readonly OperatorFact[] {
  const images = containersOf(object).map((container) => String(fieldAt(container, ['image']) ?? ''));
  const image = images.find((one) => /(?:^|\/)rollout-operator(?:-[\w-]+)?(?:[:@]|$)/.test(one));
  const replicas = fieldAt(object, ['status', 'replicas']) ?? 0;
  const { namespace = '', name } = object.metadata;
  return image === undefined ? [] : [{ namespace, name, image, replicas: Number(replicas) }];
}

function autoscalerOf(object: KubernetesObject): readonly AutoscalerFact[] {
  const target = fieldAt(object, ['spec', 'scaleTargetRef']);
  const { namespace = '', name } = object.metadata;
  const targetName = fieldAt(target, ['name']);
  // KEDA scales a Deployment if no kind is given.
  const kind = fieldAt(target, ['kind']) ?? 'Deployment';
  if (typeof targetName !== 'string' || typeof kind !== 'string') return [];
  return [{ namespace, kind: object.kind ?? '', name, target: { kind, name: targetName } }];
}

function ledgerOf(object: KubernetesObject): readonly LedgerFact[] {
  const { labels = {}, namespace = '', name } = object.metadata;
  if (labels[ledgerLabel.key] !== ledgerLabel.value) return [];
  const isReleased = labels[releaseLabel.key] === releaseLabel.value;
  if (!isReleased) return [{ namespace, name }];
  const goneMs = fieldAt(tryParseJson(fieldAt(object, ['data', ledgerKey])), ['release', 'goneMs']);
  return [{ namespace, name, isReleased, ...(typeof goneMs === 'number' ? { goneMs } : {}) }];
}

async function readKinds(cluster: Cluster): Promise<Known<readonly KindFact[]>> {
  const { env, timeoutMs } = cluster;
  const all = (Object.keys(kinds) as Kind[]).filter((kind) => kinds[kind].plural !== undefined);
  return Promise.all(
    all.map(async (kind): Promise<KindFact> => {
      const definition = customResourceDefinition(kind);
      const name = String(fieldAt(definition, ['metadata', 'name']));
      const read = getObject(env, resources.customResourceDefinitions, { name }, { site: 'doctor.kind', timeoutMs });
      const live = await read.catch(onStatus('denied', 403));
      if (live !== 'denied')
        return { kind, isServed: live !== undefined, isOurs: live !== undefined && includesFieldsOf(definition, live) };
      const isOurs = { unknown: 'no permission to get customresourcedefinitions, so its version is unknown' };
      return { kind, isServed: await mayBeInstalled(cluster, resourceOfKind(kind)), isOurs };
    }),
  );
}

/** Reports whether the installed definition has all fields of ours; the API server adds more fields. */
function includesFieldsOf(ours: unknown, live: unknown): boolean {
  if (Array.isArray(ours))
    return Array.isArray(live) && ours.length === live.length && ours.every((entry, index) => includesFieldsOf(entry, live[index]));
  if (typeof ours !== 'object' || ours === null) return isSameValue(ours, live);
  return Object.entries(ours).every(([key, value]) => value === undefined || includesFieldsOf(value, fieldAt(live, [key])));
}

/** Finds missing Secrets of metric sources and channels in the agent's namespace. Unknown if the user may not list sources or channels. */
export async function readNamedSecrets(cluster: Cluster, agentNamespace: string): Promise<Known<SecretsFact>> {
  const lists = await Promise.all([metricSources, notificationChannels].map((resource) => listKnown(cluster, resource, [agentNamespace])));
  const unread = lists.find(isUnknown);
  if (unread !== undefined) return unread;
  const { documents } = loadObjects(lists.flatMap(itemsOf));
  const named = documents.flatMap((document) =>
    secretKeysOf(document, agentNamespace).map((key) => ({ key, object: `${document.kind} ${agentNamespace}/${document.name}` })),
  );
  const { env, timeoutMs } = cluster;
  const read = secretReader(env, { namespace: agentNamespace, site: 'doctor.secret', timeoutMs: () => timeoutMs });
  const problems: string[] = [];
  const forbidden: string[] = [];
  for (const { key, object } of named) {
    const found = await read(key).catch(onStatus('denied', 403));
    if (found === 'denied') forbidden.push(key.name);
    else if ('problem' in found) problems.push(`${object}: ${namedSecretProblem(key, found.problem, agentNamespace)}`);
  }
  return { named: named.length, problems: [...new Set(problems)], forbidden: [...new Set(forbidden)] };
}
