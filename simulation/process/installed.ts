// Reads the webhooks that the API server asks from the webhook configurations of an installation.
import { compatWebhooksOf } from '../../install/compat.ts';
import { endpointPaths, enforceLabel, type InstallObject, type InstallOptions } from '../../install/object.ts';
import { everywhere } from '../../install/scope.ts';
import { type WebhookRule, webhooksOf } from '../../install/webhooks.ts';
import { groupsOf, partsOf, type ReviewedRequest } from '../cluster/admitted.ts';
import { compileCel } from '../server/cel.ts';
import { matchesSelector } from '../server/selector.ts';

/** A webhook of an installation. */
export interface InstalledWebhook {
  readonly name: string;
  readonly path: string;
  readonly isMutating: boolean;
  /** True if the webhook counts disruptions: /admission/enforce, and /admission/pod-eviction with a ZoneAwarePodDisruptionBudget. */
  readonly isJudging: boolean;
  readonly failurePolicy: 'Fail' | 'Ignore';
  readonly timeoutMs: number;
  /** True if the API server may call the webhook again after another webhook changed the object. */
  readonly isReinvoked: boolean;
  readonly covers: (request: Pick<ReviewedRequest, 'resource' | 'subresource' | 'operation'>) => boolean;
  /** Returns whether the API server asks the webhook about the request; undefined if a match condition fails. */
  readonly isAsked: (request: ReviewedRequest) => boolean | undefined;
}

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
  readonly namespace: string;
  /** True if the namespace has the label that enables enforcement. */
  readonly isEnforced: boolean;
  /** True if a ZoneAwarePodDisruptionBudget limits evictions. */
  readonly hasZoneBudget: boolean;
}

/** Returns the webhooks in the order in which API servers ask them: mutating first, then by the names of the configurations. */
export function installedWebhooks({ agentNamespace, namespace, isEnforced, hasZoneBudget }: Protected): readonly InstalledWebhook[] {
  const options: InstallOptions = {
    namespace: agentNamespace,
    image: 'agent',
    replicas: 2,
    scope: { ...everywhere, namespaces: [namespace] },
    hasCompat: true,
    hasNamespace: false,
    isEnforced,
    isMembersOnly: false,
    hasAdmissionPolicies: false,
  };
  const labels = { 'kubernetes.io/metadata.name': namespace, ...(isEnforced ? { [enforceLabel]: 'true' } : {}) };
  return [...webhooksOf(options), ...compatWebhooksOf(options)]
    .sort((one, other) => orderOf(one).localeCompare(orderOf(other)))
    .flatMap((object) => (object['webhooks'] as readonly StoredWebhook[]).map((one) => ({ one, isMutating: isMutating(object) })))
    .filter(({ one }) => matchesSelector(one.namespaceSelector ?? {}, labels))
    .map(({ one, isMutating: changes }) => webhookOf(one, { isMutating: changes, hasZoneBudget }));
}

function isMutating({ kind }: InstallObject): boolean {
  return kind.startsWith('Mutating');
}

function orderOf({ kind, metadata }: InstallObject): string {
  return `${kind} ${metadata.name}`;
}

function webhookOf(
  { name, clientConfig, rules, matchConditions = [], ...rest }: StoredWebhook,
  { isMutating: changes, hasZoneBudget }: { readonly isMutating: boolean; readonly hasZoneBudget: boolean },
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
      if (!isCovered(request)) return false;
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
