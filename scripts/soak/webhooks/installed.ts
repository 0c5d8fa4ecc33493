// Reads the webhooks that the API server asks from the webhook configurations of an installation.
import { compatWebhooksOf } from '../../../install/compat.ts';
import { endpointPaths, enforceLabel, type InstallObject, type InstallOptions } from '../../../install/object.ts';
import { everywhere } from '../../../install/scope.ts';
import { type WebhookRule, webhooksOf } from '../../../install/webhooks.ts';
import type { InstalledWebhook, ReviewedRequest } from '../../../simulation/cluster/admitted.ts';
import type { Actor } from '../../../simulation/server/request.ts';
import { matchesSelector } from '../../../simulation/server/selector.ts';
import { compileCel } from './cel.ts';

interface StoredWebhook {
  readonly name: string;
  readonly clientConfig: { readonly service: { readonly path: string } };
  readonly rules: readonly WebhookRule[];
  readonly matchConditions?: readonly { readonly expression: string }[];
  readonly failurePolicy: 'Fail' | 'Ignore';
  readonly timeoutSeconds: number;
  readonly namespaceSelector?: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly reinvocationPolicy?: string;
}

interface Protected {
  /** The namespace of the agents. */
  readonly agentNamespace: string;
  /** The namespaces of the groups. */
  readonly namespaces: readonly string[];
  /** True if these namespaces have the label that enables enforcement. */
  readonly isEnforced: boolean;
  /** True if a ZoneAwarePodDisruptionBudget limits evictions. */
  readonly hasZoneBudget: boolean;
}

/** Returns the webhooks in the order in which API servers ask them: mutating first, then by the names of the configurations. */
export function installedWebhooks({ agentNamespace, namespaces, isEnforced, hasZoneBudget }: Protected): readonly InstalledWebhook[] {
  const options: InstallOptions = {
    namespace: agentNamespace,
    image: 'agent',
    replicas: 2,
    scope: { ...everywhere, namespaces },
    hasCompat: true,
    hasNamespace: false,
    isEnforced,
    isMembersOnly: false,
    hasAdmissionPolicies: false,
  };
  const selects = ({ namespaceSelector = {} }: { readonly namespaceSelector?: object }, namespace: string): boolean =>
    matchesSelector(namespaceSelector, { 'kubernetes.io/metadata.name': namespace, ...(isEnforced ? { [enforceLabel]: 'true' } : {}) });
  return [...webhooksOf(options), ...compatWebhooksOf(options)]
    .sort((one, other) => orderOf(one).localeCompare(orderOf(other)))
    .flatMap((object) => (object['webhooks'] as readonly StoredWebhook[]).map((one) => ({ one, isMutating: isMutating(object) })))
    .filter(({ one }) => namespaces.some((namespace) => selects(one, namespace)))
    .map(({ one, isMutating: changes }) => {
      const isSelected = (namespace: string): boolean => !namespaces.includes(namespace) || selects(one, namespace);
      return webhookOf(one, { isMutating: changes, hasZoneBudget, isSelected });
    });
}

function isMutating({ kind }: InstallObject): boolean {
  return kind.startsWith('Mutating');
}

function orderOf({ kind, metadata }: InstallObject): string {
  return `${kind} ${metadata.name}`;
}

function webhookOf(
  { name, clientConfig, rules, matchConditions = [], ...rest }: StoredWebhook,
  {
    isMutating: changes,
    hasZoneBudget,
    isSelected,
  }: { readonly isMutating: boolean; readonly hasZoneBudget: boolean; readonly isSelected: (namespace: string) => boolean },
): InstalledWebhook {
  const { path } = clientConfig.service;
  const isCovered: InstalledWebhook['covers'] = (request) => rules.some((rule) => covers(rule, request));
  const conditions = matchConditions.map(({ expression }) => compileCel(expression));
  return {
    name,
    path,
    isMutating: changes,
    isJudging: path === endpointPaths.enforce || (hasZoneBudget && path === '/admission/pod-eviction'),
    failurePolicy: rest.failurePolicy,
    timeoutMs: rest.timeoutSeconds * 1000,
    isReinvoked: rest.reinvocationPolicy === 'IfNeeded',
    covers: isCovered,
    isAsked: (request) => {
      if (!isCovered(request) || !isSelected(request.namespace)) return false;
      const scope = scopeOf(request);
      let result: boolean | undefined = true;
      for (const condition of conditions) {
        const isTrue = condition(scope);
        if (isTrue === false) return false;
        result = isTrue && result;
      }
      return result;
    },
  };
}

function covers(
  { apiGroups, resources, operations }: WebhookRule,
  { resource, subresource, operation }: Parameters<InstalledWebhook['covers']>[0],
): boolean {
  const { plural, group } = partsOf(resource);
  const what = subresource === '' ? plural : `${plural}/${subresource}`;
  return apiGroups.includes(group) && resources.includes(what) && operations.includes(operation);
}

/** Returns the variables of match conditions. */
function scopeOf({ resource, operation, namespace, name, actor, object, oldObject }: ReviewedRequest): Readonly<Record<string, unknown>> {
  const { plural, group } = partsOf(resource);
  const request = {
    operation,
    namespace,
    name,
    resource: { group, resource: plural },
    userInfo: { username: actor.user, groups: groupsOf(actor) },
  };
  return { request, ...(object === undefined ? {} : { object }), ...(oldObject === undefined ? {} : { oldObject }) };
}

/** Returns the plural and the API group of a resource such as `statefulsets.apps`. */
export function partsOf(resource: string): { readonly plural: string; readonly group: string } {
  const [plural = '', ...groups] = resource.split('.');
  return { plural, group: groups.join('.') };
}

/** Returns the groups of the user of a request. */
export function groupsOf({ groups = [] }: Actor): readonly string[] {
  return ['system:authenticated', ...groups];
}
