// Defines the matchConditions of our webhooks: CEL that limits the requests that API servers send.
import { stopActions } from '../engine/run/requests.ts';
import { annotationKeys, preparationKeys } from '../policies/adopt/keys.ts';
import { agentName, podNamesOf } from '../policies/objects/agent-deployment.ts';
import type { InstallOptions } from './object.ts';
import { type Member, memberKey } from './scope.ts';

/** A condition of `admissionregistration.k8s.io/v1`. A request is sent only if all conditions are true. */
export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** Returns CEL with a default for an absent field. CEL fails on absent fields, and `failurePolicy: Fail` then denies the request. */
function orElse(path: string, otherwise: string): string {
  return `(has(${path}) ? ${path} : ${otherwise})`;
}

/** Returns the replicas of a StatefulSet in CEL; absent means 1, the default of the API server. */
function setReplicas(of: 'object' | 'oldObject'): string {
  return orElse(`${of}.spec.replicas`, '1');
}

/** Returns the replicas of a Scale in CEL; absent means 0. */
function scaleReplicas(of: 'object' | 'oldObject'): string {
  return `(has(${of}.spec) && has(${of}.spec.replicas) ? ${of}.spec.replicas : 0)`;
}

function differs(path: string): string {
  return `${orElse(`object.${path}`, '{}')} != ${orElse(`oldObject.${path}`, '{}')}`;
}

const annotationAt = (of: 'object' | 'oldObject') =>
  `(has(${of}.metadata.annotations) && key in ${of}.metadata.annotations ? ${of}.metadata.annotations[key] : '')`;

/** CEL for changed labels and changed annotations about downscales. Any label may make a StatefulSet a member, so every label counts. */
const metadataDiffers = [
  differs('metadata.labels'),
  `[${[annotationKeys.lastDownscale, ...preparationKeys]
    .map((key) => `'${key}'`)
    .join(', ')}].exists(key, ${annotationAt('object')} != ${annotationAt('oldObject')})`,
];

/** CEL for changed fields of the spec. The start ordinal counts, because it decides which pods a downscale deletes. */
const specDiffers = [differs('spec.template'), differs('spec.updateStrategy'), differs('spec.ordinals')];

function anyOf(parts: readonly string[]): string {
  return parts.map((part) => `(${part})`).join(' || ');
}

const guardedUpdate = anyOf([`${setReplicas('object')} < ${setReplicas('oldObject')}`, ...specDiffers, ...metadataDiffers]);

/** Matches an update that reduces replicas, or changes the template, update strategy, ordinals, a label or a downscale annotation. */
export const changesGuardedFields: MatchCondition = { name: 'changes-what-is-guarded', expression: guardedUpdate };

/** Matches an update that adds replicas and changes no guarded field. */
export const onlyGrows: MatchCondition = {
  name: 'only-adds-replicas',
  expression: `${setReplicas('object')} > ${setReplicas('oldObject')} && !(${guardedUpdate})`,
};

export const scalesDown: MatchCondition = {
  name: 'removes-replicas',
  expression: `${scaleReplicas('object')} < ${scaleReplicas('oldObject')}`,
};

export const scalesUp: MatchCondition = {
  name: 'adds-replicas',
  expression: `${scaleReplicas('object')} > ${scaleReplicas('oldObject')}`,
};

/** Matches a request for an object that is not terminating: no repeated DELETE, and not the final removal by the kubelet. */
export const isNotTerminating: MatchCondition = {
  name: 'is-not-terminating',
  expression: '!has(oldObject.metadata.deletionTimestamp)',
};

/** Exempts the namespace controller. It has the identity of the controller manager if controllers have no service accounts. */
export const isNoNamespaceDeletion: MatchCondition = {
  name: 'is-no-namespace-deletion',
  expression:
    "!(request.userInfo.username in ['system:serviceaccount:kube-system:namespace-controller', 'system:kube-controller-manager'])",
};

export const isNoNode: MatchCondition = {
  name: 'is-no-node',
  expression:
    "!request.userInfo.username.startsWith('system:node:') && !(has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups)",
};

/** Exempts the scheduler (preemption), the controller manager (scale-down) and every service account of kube-system. */
export const isNoController: MatchCondition = {
  name: 'is-no-controller-of-kubernetes',
  expression:
    "!request.userInfo.username.startsWith('system:serviceaccount:kube-system:') && !(request.userInfo.username in ['system:kube-controller-manager', 'system:kube-scheduler'])",
};

/** Matches a request for a pod that a StatefulSet controls. */
export const isOfStatefulSet: MatchCondition = {
  name: 'is-of-a-statefulset',
  expression:
    "has(oldObject.metadata.ownerReferences) && oldObject.metadata.ownerReferences.exists(owner, owner.kind == 'StatefulSet' && has(owner.controller) && owner.controller)",
};

/** Matches the creation of a pod that an `apps` StatefulSet controls. */
export const isMadeForStatefulSet: MatchCondition = {
  name: 'is-made-for-a-statefulset',
  expression:
    "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, owner.kind == 'StatefulSet' && owner.apiVersion.startsWith('apps/') && has(owner.controller) && owner.controller)",
};

const hasEnded = (of: 'object' | 'oldObject'): string =>
  `has(${of}.status) && has(${of}.status.phase) && ${of}.status.phase in ['Failed', 'Succeeded']`;
const imagesOf = (of: 'object' | 'oldObject'): string => `${of}.spec.containers.map(one, has(one.image) ? one.image : '')`;

/** Matches an update that removes a pod from its StatefulSet or budget (label, controller), or ends it (deadline, image, status). */
export const removesPod: MatchCondition = {
  name: 'takes-the-pod-away',
  expression: anyOf([
    'has(oldObject.metadata.labels) && oldObject.metadata.labels.exists(key, !has(object.metadata.labels) || !(key in object.metadata.labels) || object.metadata.labels[key] != oldObject.metadata.labels[key])',
    'has(oldObject.metadata.ownerReferences) && oldObject.metadata.ownerReferences.exists(old, has(old.controller) && old.controller && !(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, owner.uid == old.uid && has(owner.controller) && owner.controller)))',
    `${orElse('object.spec.activeDeadlineSeconds', '0')} != ${orElse('oldObject.spec.activeDeadlineSeconds', '0')}`,
    `${imagesOf('object')} != ${imagesOf('oldObject')}`,
    `${hasEnded('object')} && !(${hasEnded('oldObject')})`,
  ]),
};

/** Matches evictions of pods with an ordinal in the name, because an eviction request contains only the name of the pod. */
export const hasOrdinal: MatchCondition = { name: 'has-an-ordinal', expression: "request.name.matches('^.+-[0-9]+$')" };

export const changesSpec: MatchCondition = {
  name: 'says-something-new',
  expression: `request.operation == 'CREATE' || ${differs('spec')}`,
};

/**
 * CEL for a new RolloutIntent that only stops a group. A change of a stored request is never one: it could end a pause, or turn an
 * approval into something else.
 */
const createsStopOnly = [
  "request.operation == 'CREATE' && request.resource.resource == 'rolloutintents'",
  `has(object.spec) && has(object.spec.action) && object.spec.action in [${stopActions.map((action) => `'${action}'`).join(', ')}]`,
].join(' && ');

export const createsStop: MatchCondition = { name: 'creates-a-stop', expression: createsStopOnly };

export const createsNoStop: MatchCondition = { name: 'creates-no-stop', expression: `!(${createsStopOnly})` };

/** Exempts requests of the agent, which applies the same rules and writes a claim to the ledger before its request. */
export function isNotTheAgent({ namespace }: InstallOptions): MatchCondition {
  return {
    name: 'is-not-the-agent',
    expression: `request.userInfo.username != 'system:serviceaccount:${namespace}:${agentName}'`,
  };
}

/** Exempts pods of the agent: its Deployment can always roll and its nodes can always be drained, even if the webhook fails. */
export function isNoPodOfTheAgent({ namespace }: InstallOptions): MatchCondition {
  return {
    name: 'is-no-pod-of-the-agent',
    expression: `!(request.namespace == '${namespace}' && request.name.matches('${podNamesOf(agentName)}'))`,
  };
}

/** Returns CEL that matches the creation of a pod that one of these StatefulSets controls. */
export function isMadeForOneOf(list: string): string {
  return `object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller && (request.namespace + '/' + owner.name) in ${list})`;
}

/** Returns the condition that a new pod belongs to a member of a group of the strategy `pinned`; empty without `--members-only`. */
export function isMadeForMember({ scope, isMembersOnly }: Pick<InstallOptions, 'scope' | 'isMembersOnly'>): readonly MatchCondition[] {
  return isMembersOnly ? [{ name: 'is-a-member', expression: isMadeForOneOf(memberList(scope.pinned.members)) }] : [];
}

export function memberList(members: readonly Member[]): string {
  return `[${members.map((member) => `'${memberKey(member)}'`).join(', ')}]`;
}

/** The field with the name. A DELETE request for a collection has no name, so the condition reads the stored object. */
type NameOf = 'request.name' | 'oldObject.metadata.name';

export function nameIn(name: NameOf, members: readonly Member[]): string {
  return `request.namespace + '/' + ${name} in ${memberList(members)}`;
}

/** Returns the condition for the StatefulSets of the scope; empty without `--members-only`, or if the scope does not name them all. */
export function isMember({ scope, isMembersOnly }: InstallOptions, name: NameOf): readonly MatchCondition[] {
  if (!isMembersOnly || scope.members === undefined) return [];
  return [{ name: 'is-a-member', expression: nameIn(name, scope.members) }];
}

/** Returns the condition for pods of the StatefulSets of the scope; empty in the same cases as `isMember`. */
export function isPodOfMember({ scope, isMembersOnly }: InstallOptions, name: NameOf): readonly MatchCondition[] {
  if (!isMembersOnly || scope.members === undefined) return [];
  const names = scope.members.map(({ namespace, statefulSet }) => `${namespace}/${statefulSet.replaceAll('.', '[.]')}`);
  return [{ name: 'is-a-pod-of-a-member', expression: `(request.namespace + '/' + ${name}).matches('^(${names.join('|')})-[0-9]+$')` }];
}
