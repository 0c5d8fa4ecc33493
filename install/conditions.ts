// The matchConditions of our webhooks: CEL that lets the API server itself tell what could matter, so that nothing else is ever sent.
import { annotationKeys, preparationKeys } from '../policies/adopt/keys.ts';
import { podNamesOf } from '../policies/objects/agent-deployment.ts';
import { agentName, type InstallOptions } from './object.ts';
import type { Member } from './scope.ts';

/** As in `admissionregistration.k8s.io/v1`: all must be true for a request to be sent. */
export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** In place of a field that is absent. CEL fails on those, and what fails is refused under `failurePolicy: Fail`. */
function orElse(path: string, otherwise: string): string {
  return `(has(${path}) ? ${path} : ${otherwise})`;
}

/** Replicas of a StatefulSet: absent stands for 1, as the API server fills it in. */
function setReplicas(of: 'object' | 'oldObject'): string {
  return orElse(`${of}.spec.replicas`, '1');
}

/** Replicas of a Scale: absent stands for 0. */
function scaleReplicas(of: 'object' | 'oldObject'): string {
  return `(has(${of}.spec) && has(${of}.spec.replicas) ? ${of}.spec.replicas : 0)`;
}

function differs(path: string): string {
  return `${orElse(`object.${path}`, '{}')} != ${orElse(`oldObject.${path}`, '{}')}`;
}

const annotationAt = (of: 'object' | 'oldObject') =>
  `(has(${of}.metadata.annotations) && key in ${of}.metadata.annotations ? ${of}.metadata.annotations[key] : '')`;

/**
 * Any label may be what binds a StatefulSet to a group. Of the annotations those are heard of that protect: when it last shrank, and where its pods
 * are asked before they go. The others say how an adopted group is scaled and rolled, as a RolloutGroup does.
 */
const boundDifferently = [
  differs('metadata.labels'),
  `[${[annotationKeys.lastDownscale, ...preparationKeys]
    .map((key) => `'${key}'`)
    .join(', ')}].exists(key, ${annotationAt('object')} != ${annotationAt('oldObject')})`,
];

/** The start ordinal decides which pods a downscale deletes. */
const specDiffers = [differs('spec.template'), differs('spec.updateStrategy'), differs('spec.ordinals')];

function anyOf(parts: readonly string[]): string {
  return parts.map((part) => `(${part})`).join(' || ');
}

const guardedUpdate = anyOf([`${setReplicas('object')} < ${setReplicas('oldObject')}`, ...specDiffers, ...boundDifferently]);

/** An update that takes something away, or changes what a StatefulSet runs, how it is rolled or what binds it. */
export const changesWhatIsGuarded: MatchCondition = { name: 'changes-what-is-guarded', expression: guardedUpdate };

/** An update that adds replicas and is not judged for another reason already. */
export const onlyGrows: MatchCondition = {
  name: 'only-adds-replicas',
  expression: `${setReplicas('object')} > ${setReplicas('oldObject')} && !(${guardedUpdate})`,
};

/** Of `/scale`. */
export const scalesDown: MatchCondition = {
  name: 'removes-replicas',
  expression: `${scaleReplicas('object')} < ${scaleReplicas('oldObject')}`,
};

/** Of `/scale`. */
export const scalesUp: MatchCondition = {
  name: 'adds-replicas',
  expression: `${scaleReplicas('object')} > ${scaleReplicas('oldObject')}`,
};

/** The first request to delete it, not one that repeats or completes it: the kubelet's removal of a pod is a DELETE like any other. */
export const isNotTerminating: MatchCondition = {
  name: 'is-not-terminating',
  expression: '!has(oldObject.metadata.deletionTimestamp)',
};

/** The namespace controller, which empties a deleted namespace; without service accounts for controllers, the controller manager. */
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

/** The StatefulSet controller scales down by deleting pods, the scheduler makes room, the garbage collector clears up. */
export const isNoController: MatchCondition = {
  name: 'is-no-controller-of-kubernetes',
  expression:
    "!request.userInfo.username.startsWith('system:serviceaccount:kube-system:') && !(request.userInfo.username in ['system:kube-controller-manager', 'system:kube-scheduler'])",
};

/** A pod that a StatefulSet controls, by the pod as it is stored. */
export const isOfStatefulSet: MatchCondition = {
  name: 'is-of-a-statefulset',
  expression:
    "has(oldObject.metadata.ownerReferences) && oldObject.metadata.ownerReferences.exists(owner, owner.kind == 'StatefulSet' && has(owner.controller) && owner.controller)",
};

/** A pod that a StatefulSet of Kubernetes controls, by the pod as it is about to be made. */
export const isMadeForStatefulSet: MatchCondition = {
  name: 'is-made-for-a-statefulset',
  expression:
    "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, owner.kind == 'StatefulSet' && owner.apiVersion.startsWith('apps/') && has(owner.controller) && owner.controller)",
};

const hasEnded = (of: 'object' | 'oldObject'): string =>
  `has(${of}.status) && has(${of}.status.phase) && ${of}.status.phase in ['Failed', 'Succeeded']`;
const imagesOf = (of: 'object' | 'oldObject'): string => `${of}.spec.containers.map(one, has(one.image) ? one.image : '')`;

/**
 * An update that takes a label of the pod away or changes it, or that takes away its controller: it could leave its StatefulSet, or a budget, by
 * that. What is added changes nothing of it. Or one that ends it: a deadline, another image, a status by which it has ended.
 */
export const takesPodAway: MatchCondition = {
  name: 'takes-the-pod-away',
  expression: anyOf([
    'has(oldObject.metadata.labels) && oldObject.metadata.labels.exists(key, !has(object.metadata.labels) || !(key in object.metadata.labels) || object.metadata.labels[key] != oldObject.metadata.labels[key])',
    'has(oldObject.metadata.ownerReferences) && oldObject.metadata.ownerReferences.exists(old, has(old.controller) && old.controller && !(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, owner.uid == old.uid && has(owner.controller) && owner.controller)))',
    `${orElse('object.spec.activeDeadlineSeconds', '0')} != ${orElse('oldObject.spec.activeDeadlineSeconds', '0')}`,
    `${imagesOf('object')} != ${imagesOf('oldObject')}`,
    `${hasEnded('object')} && !(${hasEnded('oldObject')})`,
  ]),
};

/** An eviction shows no more of the pod than its name, and those of StatefulSets end in an ordinal. */
export const hasOrdinal: MatchCondition = { name: 'has-an-ordinal', expression: "request.name.matches('^.+-[0-9]+$')" };

/** A spec that is what it was says nothing new. */
export const saysSomethingNew: MatchCondition = {
  name: 'says-something-new',
  expression: `request.operation == 'CREATE' || ${differs('spec')}`,
};

/** The agent has decided by the same rules, and written it into the ledger, before it asks. */
export function isNotTheAgent({ namespace }: InstallOptions): MatchCondition {
  return {
    name: 'is-not-the-agent',
    expression: `request.userInfo.username != 'system:serviceaccount:${namespace}:${agentName}'`,
  };
}

/** Exempts the agent: its Deployment must roll and its nodes must drain in every state. */
export function isNoPodOfTheAgent({ namespace }: InstallOptions): MatchCondition {
  return {
    name: 'is-no-pod-of-the-agent',
    expression: `!(request.namespace == '${namespace}' && request.name.matches('${podNamesOf(agentName)}'))`,
  };
}

/** Of pods that are about to be made: only those that one of these StatefulSets controls. */
export function isMadeForOneOf(list: string): string {
  return `object.metadata.ownerReferences.exists(owner, has(owner.controller) && owner.controller && (request.namespace + '/' + owner.name) in ${list})`;
}

/** As `isMember`, of pods that are about to be made: only for groups of the strategy pinned. */
export function isMadeForMember({ scope, isMembersOnly }: Pick<InstallOptions, 'scope' | 'isMembersOnly'>): readonly MatchCondition[] {
  if (!isMembersOnly) return [];
  const names = scope.pinned.members.map(({ namespace, statefulSet }) => `'${namespace}/${statefulSet}'`);
  return [{ name: 'is-a-member', expression: isMadeForOneOf(`[${names.join(', ')}]`) }];
}

/** Where the name is read: a DELETE may be one of a collection, whose request carries none. */
type NameOf = 'request.name' | 'oldObject.metadata.name';

/** Reports whether the request names one of these StatefulSets. */
export function nameIn(name: NameOf, members: readonly Member[]): string {
  const names = members.map(({ namespace, statefulSet }) => `'${namespace}/${statefulSet}'`);
  return `request.namespace + '/' + ${name} in [${names.join(', ')}]`;
}

/** Only of the StatefulSets that the scope names; empty when it does not name them all, or more are to be heard of. */
export function isMember({ scope, isMembersOnly }: InstallOptions, name: NameOf): readonly MatchCondition[] {
  if (!isMembersOnly || scope.members === undefined) return [];
  return [{ name: 'is-a-member', expression: nameIn(name, scope.members) }];
}

/** As `isMember`, of pods. */
export function isPodOfMember({ scope, isMembersOnly }: InstallOptions, name: NameOf): readonly MatchCondition[] {
  if (!isMembersOnly || scope.members === undefined) return [];
  const names = scope.members.map(({ namespace, statefulSet }) => `${namespace}/${statefulSet.replaceAll('.', '[.]')}`);
  return [{ name: 'is-a-pod-of-a-member', expression: `(request.namespace + '/' + ${name}).matches('^(${names.join('|')})-[0-9]+$')` }];
}
