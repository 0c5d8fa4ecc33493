// Reads the registered webhook configurations and admission policies of this project, and finds the namespaces that the webhooks protect.
import { isStatus, onStatus } from '../../../cluster/request/failure.ts';
import { asJsonObject } from '../../../cluster/request/json.ts';
import { getObject, listObjects } from '../../../cluster/request/read.ts';
import { type KubernetesObject, type Resource, resourceOf, resources } from '../../../cluster/request/resource.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { profileOf } from '../../../engine/profiles.ts';
import { needsApproval } from '../../../engine/rules/approval.ts';
import { isUnknown, type Known, type WebhookProblems } from '../../../engine/snapshot.ts';
import { admissionPolicyKinds, markAnnotation } from '../../../install/admission-policy.ts';
import { enforceLabel } from '../../../install/object.ts';
import {
  laggingMembers,
  ownNames,
  type Registered,
  registrationProblems,
  type StoredConfiguration,
  storedConfiguration,
  trustProblem,
} from '../../../install/registered.ts';
import { admissionPolicyProblems, policyNames, type StoredPolicy } from '../../../install/registered-policies.ts';
import { pluralOf } from '../../../install/rights.ts';
import { membersOf } from '../../../install/scope.ts';
import { admissionVersion, configurationName, pinConfigurationName } from '../../../install/webhooks.ts';
import type { GroupDefinition, PolicyDefinition } from '../../../policies/definition.ts';
import { type Labels, matchesSelector } from '../../../policies/label-selector.ts';
import { traitsOf } from '../../../policies/strategies.ts';
import { defined } from '../../../policies/values/defined.ts';
import type { Cluster } from '../../connection.ts';
import { webhookRights } from '../agent-rights.ts';
import type { AccountFact, AdmissionPolicyFact, RegistrationFact, UnansweredFact } from '../check.ts';
import { readRights, servingRightsOf, wordsOf } from './accounts.ts';

const mutatingConfigurations = resources.mutatingWebhookConfigurations;
const validatingConfigurations = admissionResource('ValidatingWebhookConfiguration');
const configurations = [validatingConfigurations, mutatingConfigurations];
const policyResources = admissionPolicyKinds.map(admissionResource);

function admissionResource(kind: string): Resource {
  return resourceOf(admissionVersion, pluralOf(kind), kind, false);
}

interface AdmissionScope {
  readonly agentNamespace: string;
  readonly groups: readonly GroupDefinition[];
}

/** Reads our webhook configurations and the enforcement of the groups' namespaces. Unknown, with the missing permission, if forbidden. */
export async function readRegistration(
  cluster: Cluster,
  { agentNamespace, groups, policies }: AdmissionScope & { readonly policies: readonly PolicyDefinition[] },
): Promise<Known<RegistrationFact>> {
  const stored: StoredConfiguration[] = [];
  for (const resource of configurations) {
    for (const name of ownNames({ namespace: agentNamespace })) {
      const found = await readConfiguration(cluster, resource, name);
      if (isUnknown(found)) return found;
      if (found !== undefined) stored.push(found);
    }
  }
  const namespaces = await readNamespaces(cluster, groups);
  if (isUnknown(namespaces)) return namespaces;
  const optedIn = enforcedNamespaces(namespaces);
  const members = membersOf(groups.filter(({ namespace }) => optedIn.has(namespace)));
  const pinned = membersOf(groups.filter((group) => traitsOf(group).pinsPods));
  const isRegistered = stored.length > 0;
  const isPinOnly = !isRegistered && optedIn.size === 0;
  const question = { namespace: agentNamespace, members, pinned };
  const problems = registrationProblems(stored, question, { isPinOnly, mayLag: true });
  const lagging = laggingMembers(stored, question);
  const pinName = pinConfigurationName({ namespace: agentNamespace });
  const needsRequesters = needsApproval(groups, policies);
  const isNeeded = ({ name }: Registered): boolean => (name === pinName ? pinned.length > 0 : optedIn.size > 0 || needsRequesters);
  const unanswered = await readUnanswered(cluster, stored, isNeeded);
  const services = [...new Set(stored.flatMap(servicesOf))].sort();
  return {
    isRegistered,
    configurations: stored.map(({ kind, name }) => ({ kind, name })),
    problems,
    namespaces,
    services,
    ...(lagging.length === 0 ? {} : { lagging }),
    ...(unanswered.length === 0 ? {} : { unanswered }),
  };
}

async function readNamespaces(cluster: Cluster, groups: readonly GroupDefinition[]): Promise<Known<RegistrationFact['namespaces']>> {
  const found: RegistrationFact['namespaces'][number][] = [];
  for (const name of [...new Set(groups.map(({ namespace }) => namespace))].sort()) {
    const labels = await readLabels(cluster, name);
    if (isUnknown(labels)) return labels;
    const deniesDownscale = await readDownscaleWebhook(
      cluster,
      labels,
      groups.filter((group) => group.namespace === name),
    );
    found.push({ name, isOptedIn: labels[enforceLabel] === 'true', ...(deniesDownscale === false ? {} : { deniesDownscale }) });
  }
  return found;
}

/** Reports whether a webhook denies downscales in a namespace with these labels: one whose path the profile of a group names. */
async function readDownscaleWebhook(
  { env, timeoutMs }: Cluster,
  labels: Labels,
  groups: readonly GroupDefinition[],
): Promise<Known<boolean>> {
  const guarded = groups.filter(({ zones }) => zones.some(({ noDownscale }) => noDownscale));
  const paths = guarded.flatMap((group) => profileOf(group).downscaleWebhook ?? []);
  if (paths.length === 0) return false;
  const { plural } = validatingConfigurations;
  const unknown = { unknown: `no permission to list ${plural}, so it is unknown whether a webhook denies downscales` };
  const read = listObjects(env, validatingConfigurations, { site: 'doctor.downscaleWebhooks', timeoutMs });
  const found = await read.catch(onStatus(unknown, 403));
  if (isUnknown(found)) return found;
  const rows = found.items.flatMap(({ webhooks }) => (Array.isArray(webhooks) ? webhooks : []));
  return rows.some((row) => {
    const selector = fieldAt(row, ['namespaceSelector']) ?? {};
    return paths.includes(String(fieldAt(row, ['clientConfig', 'service', 'path']))) && matchesSelector(selector, labels);
  });
}

/** Returns why the needed webhooks do not work. Unknown, with the missing permission, if the user may not read them. */
export async function readWebhookProblems(
  cluster: Cluster,
  namespace: string,
  needs: Readonly<Record<'pins' | 'requesters', boolean>>,
): Promise<Known<WebhookProblems>> {
  const pins = needs.pins ? await readWebhookProblem(cluster, pinConfigurationName({ namespace })) : undefined;
  const requesters = needs.requesters ? await readWebhookProblem(cluster, configurationName({ namespace })) : undefined;
  if (isUnknown(pins)) return pins;
  return isUnknown(requesters) ? requesters : defined({ pins, requesters });
}

async function readWebhookProblem(cluster: Cluster, name: string): Promise<Known<string | undefined>> {
  const stored = await readConfiguration(cluster, mutatingConfigurations, name);
  if (stored === undefined) return `${mutatingConfigurations.kind} ${name} does not exist`;
  if (isUnknown(stored)) return stored;
  const [unanswered] = await readUnanswered(cluster, [stored], () => true);
  return unanswered?.message;
}

/** Returns why no webhook of this project denies requests in the namespace; undefined if a webhook does. Unknown without the right to see it. */
export async function readUnenforced(cluster: Cluster, agentNamespace: string, namespace: string): Promise<Known<string | undefined>> {
  const name = configurationName({ namespace: agentNamespace });
  const stored = await readConfiguration(cluster, validatingConfigurations, name);
  if (stored === undefined) return `${validatingConfigurations.kind} ${name} does not exist`;
  if (isUnknown(stored)) return stored;
  const labels = await readLabels(cluster, namespace);
  if (isUnknown(labels)) return labels;
  if (labels[enforceLabel] !== 'true') return `namespace ${namespace} does not have the label ${enforceLabel}=true`;
  const [unanswered] = await readUnanswered(cluster, [stored], () => true);
  return unanswered?.message;
}

function enforcedNamespaces(namespaces: RegistrationFact['namespaces']): ReadonlySet<string> {
  return new Set(namespaces.filter(({ isOptedIn }) => isOptedIn).map(({ name }) => name));
}

function servicesOf({ webhooks }: Registered): readonly string[] {
  return webhooks.flatMap((row) => {
    const [namespace, name] = ['namespace', 'name'].map((field) => fieldAt(row, ['clientConfig', 'service', field]));
    return typeof namespace === 'string' && typeof name === 'string' ? [`${namespace}/${name}`] : [];
  });
}

const services = resourceOf('v1', 'services', 'Service');

/** Returns the accounts of the pods behind the webhook Services, except `known`, with the rights that a webhook process needs. */
export async function readWebhookAccounts(
  cluster: Cluster,
  registration: Known<RegistrationFact>,
  { agentNamespace, pinned, known }: WebhookAccountsQuestion,
): Promise<readonly AccountFact[]> {
  if (isUnknown(registration)) return [];
  const accounts = new Map<string, readonly string[]>();
  for (const service of registration.services) for (const one of await processesBehind(cluster, service)) accounts.set(...one);
  for (const { name } of known) accounts.delete(name);
  const facts: AccountFact[] = [];
  const namespaces = registration.namespaces.map(({ name }) => name);
  for (const [account, words] of accounts) {
    const serving = servingRightsOf(words, agentNamespace, registration.configurations);
    const rights = await readRights(cluster, { account, agentNamespace, namespaces, pinned, rights: webhookRights, serving });
    facts.push({ name: account, rights });
  }
  return facts;
}

interface WebhookAccountsQuestion {
  readonly agentNamespace: string;
  readonly pinned: readonly string[];
  readonly known: readonly AccountFact[];
}

/** Returns the account and the arguments of each pod behind the Service. */
async function processesBehind(
  { env, timeoutMs }: Cluster,
  service: string,
): Promise<readonly [account: string, words: readonly string[]][]> {
  const [namespace = '', name = ''] = service.split('/');
  try {
    const found = await getObject(env, services, { namespace, name }, { site: 'doctor.service', timeoutMs });
    const selector = Object.entries(asJsonObject(fieldAt(found, ['spec', 'selector'])));
    if (selector.length === 0) return [];
    const labelSelector = selector.map(([key, value]) => `${key}=${String(value)}`).join(',');
    const { items } = await listObjects(env, resources.pods, { namespace, labelSelector, site: 'doctor.webhookPods', timeoutMs });
    return items.map(({ spec }) => [`${namespace}/${String(fieldAt(spec, ['serviceAccountName']) ?? 'default')}`, wordsOf(spec)]);
  } catch (error) {
    return onStatus([], 403)(error);
  }
}

async function readConfiguration(
  { env, timeoutMs }: Cluster,
  resource: Resource,
  name: string,
): Promise<Known<StoredConfiguration | undefined>> {
  const denied = { unknown: `no permission to get ${resource.plural}, so the registered webhooks are unknown` };
  const found = await getObject(env, resource, { name }, { site: 'doctor.webhooks', timeoutMs }).catch(onStatus(denied, 403));
  if (found === undefined || isUnknown(found)) return found;
  return storedConfiguration(resource.kind, found);
}

async function readLabels({ env, timeoutMs }: Cluster, name: string): Promise<Known<Labels>> {
  const denied = { unknown: `no permission to get the namespace ${name}, so it is unknown whether the webhooks protect it` };
  const read = getObject(env, resources.namespaces, { name }, { site: 'doctor.namespace', timeoutMs });
  const found = await read.catch(onStatus(denied, 403));
  return found !== undefined && isUnknown(found) ? found : (found?.metadata.labels ?? {});
}

/** Returns why webhooks cannot answer, such as no caBundle or no ready endpoint. Leaves out Services that the user may not read. */
async function readUnanswered(
  cluster: Cluster,
  stored: readonly StoredConfiguration[],
  isNeeded: (one: Registered) => boolean,
): Promise<readonly UnansweredFact[]> {
  const unanswered = stored.flatMap((one): readonly UnansweredFact[] => {
    const message = trustProblem(one);
    return message === undefined ? [] : [{ message, isNeeded: isNeeded(one) }];
  });
  const needed = new Set(stored.filter(isNeeded).flatMap(servicesOf));
  for (const service of [...new Set(stored.flatMap(servicesOf))].sort()) {
    const message = await serviceProblem(cluster, service);
    if (message !== undefined) unanswered.push({ message, isNeeded: needed.has(service) });
  }
  return unanswered;
}

const endpointSlices = resourceOf('discovery.k8s.io/v1', 'endpointslices', 'EndpointSlice');

/** Returns a sentence if the Service does not exist or has no ready endpoint. Undefined otherwise, and if the user may not read it. */
async function serviceProblem({ env, timeoutMs }: Cluster, service: string): Promise<string | undefined> {
  const [namespace = '', name = ''] = service.split('/');
  try {
    if ((await getObject(env, services, { namespace, name }, { site: 'doctor.service', timeoutMs })) === undefined) {
      return `Service ${service} of the webhooks does not exist`;
    }
    const labelSelector = `kubernetes.io/service-name=${name}`;
    const { items } = await listObjects(env, endpointSlices, { namespace, labelSelector, site: 'doctor.endpoints', timeoutMs });
    if (items.some(isReady)) return undefined;
    return `Service ${service} of the webhooks has no ready endpoint. Run: kubectl get pods -n ${namespace}`;
  } catch (error) {
    return onStatus(undefined, 403, 404)(error);
  }
}

/** Reports whether the slice has a ready endpoint. As in Kubernetes, a missing condition counts as ready. */
function isReady({ endpoints }: KubernetesObject): boolean {
  return Array.isArray(endpoints) && endpoints.some((one) => fieldAt(one, ['conditions', 'ready']) !== false);
}

/**
 * Reads our admission policies and bindings. They are expected if a webhook is registered or a namespace is enforced, or if neither is
 * known. Undefined if none is found and none is expected. Unknown, with the missing permission, if what decides could not be read.
 */
export async function readAdmissionPolicies(
  cluster: Cluster,
  { agentNamespace: namespace, groups, registration }: AdmissionScope & { readonly registration: Known<RegistrationFact> },
): Promise<Known<AdmissionPolicyFact> | undefined> {
  const optedIn = enforcedNamespaces(isUnknown(registration) ? [] : registration.namespaces);
  const isExpected = isUnknown(registration) || registration.isRegistered || optedIn.size > 0;
  const stored = await readPolicies(cluster, policyNames({ namespace }));
  if (isUnknown(stored)) return isExpected ? stored : undefined;
  if (stored === 'not served') return isExpected ? { isServed: false, problems: [] } : undefined;
  if (stored.length === 0 && isUnknown(registration)) return registration;
  if (stored.length === 0 && !isExpected) return undefined;
  const enforced = groups.filter((one) => optedIn.has(one.namespace));
  const named = membersOf(enforced.filter((group) => traitsOf(group).lowersPartition));
  const held = [...membersOf(enforced.filter((group) => traitsOf(group).pinsPods)), ...named];
  return { isServed: true, problems: admissionPolicyProblems(stored, { namespace, held, named }) };
}

async function readPolicies({ env, timeoutMs }: Cluster, names: readonly string[]): Promise<Known<readonly StoredPolicy[]> | 'not served'> {
  const stored: StoredPolicy[] = [];
  for (const resource of policyResources) {
    try {
      for (const name of names) {
        const found = await getObject(env, resource, { name }, { site: 'doctor.admissionPolicies', timeoutMs });
        const mark = found?.metadata.annotations?.[markAnnotation];
        if (found === undefined) continue;
        stored.push({ kind: resource.kind, name, spec: asJsonObject(found['spec']), ...(mark === undefined ? {} : { mark }) });
      }
    } catch (error) {
      const denied = { unknown: `no permission to get ${resource.plural}, so it is unknown whether the admission policies are installed` };
      return isStatus(error, 404) ? 'not served' : onStatus(denied, 403)(error);
    }
  }
  return stored;
}
