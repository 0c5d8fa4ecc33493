// Reads our webhook configurations as registered, and which namespaces of groups are enforced.

import { isStatus } from '../../../cluster/request/failure.ts';
import { asJsonObject } from '../../../cluster/request/json.ts';
import { getObject, listObjects } from '../../../cluster/request/read.ts';
import { type Resource, resources } from '../../../cluster/request/resource.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { isUnknown, type Known } from '../../../engine/snapshot.ts';
import { enforceLabel } from '../../../install/object.ts';
import { ownNames, type Registered, registrationProblems } from '../../../install/registered.ts';
import type { GroupDefinition } from '../../../policies/definition.ts';
import { traitsOf } from '../../../policies/strategies.ts';
import type { Cluster } from '../../connection.ts';
import { webhookRights } from '../agent-rights.ts';
import type { AccountFact, RegistrationFact } from '../check.ts';
import { isInjectedByOthers, readUnanswered, type StoredConfiguration } from './answers.ts';
import { readRights } from './rights.ts';

const configurations: readonly Resource[] = (['Validating', 'Mutating'] as const).map((what) => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural: `${what.toLowerCase()}webhookconfigurations`,
  kind: `${what}WebhookConfiguration`,
  isNamespaced: false,
}));

/** Unknown, with the missing permission, if they may not be read. */
export async function readRegistration(
  cluster: Cluster,
  { agentNamespace, groups }: { readonly agentNamespace: string; readonly groups: readonly GroupDefinition[] },
): Promise<Known<RegistrationFact>> {
  const stored: StoredConfiguration[] = [];
  for (const resource of configurations) {
    for (const name of ownNames({ namespace: agentNamespace })) {
      const found = await read(cluster, resource, name);
      if (isUnknown(found)) return found;
      if (found !== undefined) stored.push(found);
    }
  }
  const namespaces: { readonly name: string; readonly isOptedIn: boolean }[] = [];
  for (const name of [...new Set(groups.map(({ namespace }) => namespace))].sort()) {
    const labels = await labelsOf(cluster, name);
    if (isUnknown(labels)) return labels;
    namespaces.push({ name, isOptedIn: labels['labels'][enforceLabel] === 'true' });
  }
  const optedIn = new Set(namespaces.filter(({ isOptedIn }) => isOptedIn).map(({ name }) => name));
  const membersOf = (some: readonly GroupDefinition[]) =>
    some.flatMap(({ namespace, zones }) => zones.map(({ statefulSet }) => ({ namespace, statefulSet })));
  const members = membersOf(groups.filter(({ namespace }) => optedIn.has(namespace)));
  const pinned = membersOf(groups.filter((group) => traitsOf(group).pinsPods));
  const areThere = stored.length > 0;
  const isPinOnly = !areThere && optedIn.size === 0;
  const problems = registrationProblems(stored, { namespace: agentNamespace, members, pinned }, { isPinOnly });
  const unanswered = await readUnanswered(cluster, stored, {
    agentNamespace,
    isNeeded: { pin: pinned.length > 0, other: optedIn.size > 0 },
  });
  return { areThere, problems, namespaces, services: servicesOf(stored), ...(unanswered.length === 0 ? {} : { unanswered }) };
}

function servicesOf(stored: readonly Registered[]): readonly string[] {
  const named = stored.flatMap(({ webhooks }) =>
    webhooks.flatMap((row) => {
      const [namespace, name] = ['namespace', 'name'].map((field) => fieldAt(row, ['clientConfig', 'service', field]));
      return typeof namespace === 'string' && typeof name === 'string' ? [`${namespace}/${name}`] : [];
    }),
  );
  return [...new Set(named)].sort();
}

const services: Resource = { group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true };

/**
 * Returns the accounts behind these Services that are not among `known`, with the rights of a process that only serves webhooks. Unreadable
 * objects are left out: the processes log the missing rights themselves.
 */
export async function readWebhookAccounts(
  cluster: Cluster,
  registration: Known<RegistrationFact>,
  {
    agentNamespace,
    pinned,
    known,
  }: { readonly agentNamespace: string; readonly pinned: readonly string[]; readonly known: readonly AccountFact[] },
): Promise<readonly AccountFact[]> {
  if (isUnknown(registration)) return [];
  const accounts = new Set<string>();
  for (const service of registration.services) for (const account of await accountsBehind(cluster, service)) accounts.add(account);
  const facts: AccountFact[] = [];
  const namespaces = registration.namespaces.map(({ name }) => name);
  for (const account of accounts) {
    if (known.some(({ name }) => name === account)) continue;
    facts.push({
      name: account,
      rights: await readRights(cluster, { account, agentNamespace, namespaces, pinned, rights: webhookRights }),
    });
  }
  return facts;
}

async function accountsBehind({ env, timeoutMs }: Cluster, service: string): Promise<readonly string[]> {
  const [namespace = '', name = ''] = service.split('/');
  try {
    const found = await getObject(env, services, { namespace, name }, { site: 'doctor.service', timeoutMs });
    const selector = Object.entries(asJsonObject(fieldAt(found, ['spec', 'selector'])));
    if (selector.length === 0) return [];
    const labelSelector = selector.map(([key, value]) => `${key}=${String(value)}`).join(',');
    const { items } = await listObjects(env, resources.pods, { namespace, labelSelector, site: 'doctor.webhookPods', timeoutMs });
    return items.map((pod) => `${namespace}/${String(fieldAt(pod, ['spec', 'serviceAccountName']) ?? 'default')}`);
  } catch (error) {
    if (!isStatus(error, 403)) throw error;
    return [];
  }
}

async function read({ env, timeoutMs }: Cluster, resource: Resource, name: string): Promise<Known<StoredConfiguration | undefined>> {
  try {
    const found = await getObject(env, resource, { name }, { site: 'doctor.webhooks', timeoutMs });
    const webhooks = found?.['webhooks'];
    if (found === undefined) return undefined;
    return { kind: resource.kind, name, webhooks: Array.isArray(webhooks) ? webhooks : [], isInjected: isInjectedByOthers(found) };
  } catch (error) {
    if (!isStatus(error, 403)) throw error;
    return { unknown: `no permission to get ${resource.plural}, so the registered webhooks are unknown` };
  }
}

async function labelsOf({ env, timeoutMs }: Cluster, name: string): Promise<Known<{ readonly labels: Readonly<Record<string, string>> }>> {
  try {
    const found = await getObject(env, resources.namespaces, { name }, { site: 'doctor.namespace', timeoutMs });
    return { labels: found?.metadata.labels ?? {} };
  } catch (error) {
    if (!isStatus(error, 403)) throw error;
    return { unknown: `no permission to get the namespace ${name}, so it is unknown whether it is enforced` };
  }
}
