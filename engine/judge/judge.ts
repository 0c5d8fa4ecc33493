// Decides for the webhooks whether one API request may pass, by the same rules as `decide`. Some requests are exempt.
import type { GroupDefinition } from '../../policies/definition.ts';
import { podNamesOf } from '../../policies/objects/agent-deployment.ts';
import { canOverride } from '../../policies/rollout/rules-without-exception.ts';
import { defined, extended } from '../../policies/values/defined.ts';
import { type Action, type AdmissionRequest, asksToPrepare, type Judgement, type RuleResult } from '../decision.ts';
import { statefulSetInName } from '../observe/cluster.ts';
import { blocks, denialText, isPreparation, leadingResult, result } from '../rule.ts';
import { overrideCommand, permittedResults } from '../rules/exception.ts';
import { isOfCalendarOrPolicy, type PolicyAnswer } from '../rules/policy.ts';
import type { Snapshot } from '../snapshot.ts';
import { announcedByAgent, grantedBefore, groupOf, podNamed } from './admission-claims.ts';
import { checkPod, checkRestart, checkScale, checkStatefulSetDeletion, checkUpdate } from './checks.ts';
import { protectionKept, protectionOf } from './protection.ts';
import { decisionId, describe } from './request-text.ts';

export interface Verdict {
  readonly results: readonly RuleResult[];
  readonly policies?: PolicyAnswer;
  readonly warnings?: readonly string[];
  /** The calls to pods: they prepare pods before the request can pass, or withdraw a preparation. */
  readonly actions?: readonly Action[];
  readonly code?: number;
  /** `Judgement.unjudged`. */
  readonly unjudged?: string;
}

/**
 * Judges one API request. A request for an unprotected object passes; an unknown state of a protected object denies. With the outcome
 * `prepare` the caller makes the calls, adds the answers to the ledger and judges again. A denial may contain calls that withdraw a
 * preparation.
 */
export function judge(snapshot: Snapshot, request: AdmissionRequest): Judgement {
  const verdict = verdictOn(snapshot, request);
  const { results, policies, actions = [], unjudged } = verdict;
  const blocking = results.filter(blocks);
  const leading = leadingResult(results);
  const outcome = outcomeOf(blocking, actions);
  return {
    outcome,
    code: outcome === 'deny' ? (verdict.code === undefined || verdict.code === 200 ? 403 : verdict.code) : 200,
    request,
    message:
      leading === undefined
        ? [
            `${describe(request)} ${unjudged === undefined ? 'is allowed' : `was not judged: ${unjudged}`}`,
            ...permittedResults(results).map(({ rule, fact }) => `${rule}: ${fact}`),
          ].join('; ')
        : denialText(`${describe(request)} in namespace ${request.namespace}`, leading),
    effect: effectOf(blocking, policies),
    results,
    warnings: [...(verdict.warnings ?? []), ...(policies?.warnings ?? []).map(({ rule, fact }) => `${rule}: ${fact}`)],
    actions: outcome === 'allow' ? [] : actions,
    // Policy tests and reviews judge thousands of requests, and read no ID.
    get decisionId() {
      return decisionId(snapshot, request, leading?.rule);
    },
    ...defined({ unjudged, override: outcome === 'deny' ? overrideOf(snapshot, [{ request, results }]) : undefined }),
  };
}

/**
 * Judges the requests that one act makes about several members of a group. The override of each denial permits all of them: a rule that
 * blocks several members needs an exception for the group.
 */
export function judgeTogether(snapshot: Snapshot, requests: readonly AdmissionRequest[]): readonly Judgement[] {
  const judgements = requests.map((request) => judge(snapshot, request));
  const override = overrideOf(
    snapshot,
    judgements.filter(({ outcome }) => outcome === 'deny'),
  );
  return judgements.map(({ override: _own, ...judgement }) => ({
    ...judgement,
    ...defined({ override: judgement.outcome === 'deny' ? override : undefined }),
  }));
}

/**
 * Returns the commands that override each window and policy rule that denies these requests; undefined if another rule blocks, or if a rule
 * accepts no exception.
 */
function overrideOf(snapshot: Snapshot, denied: readonly Pick<Judgement, 'request' | 'results'>[]): string | undefined {
  const members = denied.map(({ request, results }) => extended(memberOf(snapshot, request), { blocking: results.filter(blocks) }));
  const group = members[0]?.group;
  const isOffered = (one: RuleResult): boolean => isOfCalendarOrPolicy(one) && canOverride(one.rule, snapshot.policies);
  if (group === undefined || !members.every(({ blocking }) => blocking.every(isOffered))) return undefined;
  const exceptions = snapshot.exceptions.filter((one) => one.namespace === group.namespace && one.group === group.name);
  const rules = [...new Set(members.flatMap(({ blocking }) => blocking.map(({ rule }) => rule)))];
  return rules
    .map((rule) => {
      const [only, ...others] = members.filter(({ blocking }) => blocking.some((one) => one.rule === rule));
      const zone = others.length === 0 && group.zones.length > 1 ? only?.zone : undefined;
      return overrideCommand({ group, exceptions, nowMs: snapshot.nowMs }, { rule, zone });
    })
    .join(' && ');
}

function statefulSetOf(snapshot: Snapshot, request: AdmissionRequest): string | undefined {
  if (!('pod' in request)) return request.statefulSet;
  return podNamed(snapshot, request.namespace, request.pod)?.set.name ?? statefulSetInName(request.pod);
}

/** Returns the group and the zone of the member that the request concerns; {} if it is not a member of a group. */
function memberOf(snapshot: Snapshot, request: AdmissionRequest): { readonly group?: GroupDefinition; readonly zone?: string } {
  const statefulSet = statefulSetOf(snapshot, request);
  const group = statefulSet === undefined ? undefined : groupOf(snapshot, request.namespace, statefulSet);
  return defined({ group, zone: group?.zones.find((one) => one.statefulSet === statefulSet)?.name });
}

/** Returns only the exemption if one applies; otherwise the results for the kind of request, for protection and for earlier grants. */
function verdictOn(snapshot: Snapshot, request: AdmissionRequest): Verdict {
  const exemption = namespaceEnds(snapshot, request) ?? announcedByAgent(snapshot, request);
  if (exemption !== undefined) return { results: [exemption] };
  const unread = unreadGroup(snapshot, request);
  if (unread !== undefined) return { results: [], unjudged: unread };
  const verdict = checkKind(snapshot, request);
  return { ...verdict, results: [...verdict.results, ...protectionKept(snapshot, request), ...grantedBefore(snapshot, request)] };
}

/** Returns a text if the StatefulSet may have a group that could not be read; undefined if it is protected, or if every group was read. */
function unreadGroup(snapshot: Snapshot, request: AdmissionRequest): string | undefined {
  const name = statefulSetOf(snapshot, request);
  if (name === undefined || protectionOf(snapshot, request.namespace, name) !== 'unknown') return undefined;
  return `the group of StatefulSet ${name} could not be read`;
}

function checkKind(snapshot: Snapshot, request: AdmissionRequest): Verdict {
  switch (request.kind) {
    case 'scale':
      return checkScale(snapshot, request);
    case 'update':
      return checkUpdate(snapshot, request);
    case 'deleteStatefulSet':
      return checkStatefulSetDeletion(snapshot, request);
    case 'restart':
      return checkRestart(snapshot, request);
    case 'deletePod':
    case 'evictPod':
      return checkPod(snapshot, request);
  }
}

/** Returns `prepare` if the preparation of pods is the only block and its calls have not been made. */
function outcomeOf(blocking: readonly RuleResult[], actions: readonly Action[]): Judgement['outcome'] {
  if (blocking.length === 0) return 'allow';
  return actions.some(asksToPrepare) && blocking.every((one) => isPreparation(one) && one.outcome === 'wait') ? 'prepare' : 'deny';
}

/** Returns the strictest effect. A rule of the engine that waits counts as `hold`, any other blocking rule of the engine as `deny`. */
function effectOf(blocking: readonly RuleResult[], policies: PolicyAnswer | undefined): Judgement['effect'] {
  const effects = policies?.effects ?? [];
  const own = blocking.filter(({ rule }) => !rule.includes('/'));
  if (own.some(({ outcome }) => outcome !== 'wait')) return 'deny';
  const ofPolicies = blocking.length > own.length ? effects : [];
  if (ofPolicies.includes('deny')) return 'deny';
  if (own.length > 0 || ofPolicies.includes('hold')) return 'hold';
  if (ofPolicies.includes('requireApproval')) return 'requireApproval';
  return effects.includes('warn') ? 'warn' : 'allow';
}

/** The name of a request's object, which is known even if the object cannot be read. */
interface JudgedObject {
  readonly kind: 'statefulSet' | 'pod';
  readonly namespace: string;
  readonly name: string;
}

/** The namespaces that this agent protects, and its own workloads. */
export interface JudgedScope {
  readonly own?: { readonly namespace: string; readonly names: readonly string[] } | undefined;
  /** The protected namespaces; absent: all namespaces. */
  readonly namespaces?: readonly string[] | undefined;
}

/**
 * Reports whether requests for the object pass unjudged: an object in an unprotected namespace, or a workload of the agent. An update of
 * the agent must always be possible.
 */
export function isExempt({ kind, namespace, name }: JudgedObject, { own, namespaces }: JudgedScope): boolean {
  if (namespaces?.includes(namespace) === false) return true;
  if (own?.namespace !== namespace) return false;
  return own.names.some((owner) => (kind === 'pod' ? new RegExp(podNamesOf(owner)).test(name) : owner === name));
}

/** The known properties of a request that could not be judged. */
interface UnjudgedRequest {
  readonly verb: 'update' | 'scale' | 'delete' | 'deletePod' | 'evictPod';
  /** True if the request only increases the replicas. */
  readonly onlyGrows: boolean;
  readonly isNamespaceEnding: boolean;
}

/**
 * Reports whether a request that could not be judged passes: the deletion of a pod, growth, and any request in a namespace under deletion. A
 * pod whose final removal is denied would stay Terminating. Other requests are denied.
 */
export function failsOpen({ verb, onlyGrows, isNamespaceEnding }: UnjudgedRequest): boolean {
  return verb === 'deletePod' || onlyGrows || isNamespaceEnding;
}

/** Returns the exemption of a request in a namespace that is being deleted, because every object there is deleted anyway. */
function namespaceEnds({ endingNamespaces = [] }: Snapshot, { namespace }: AdmissionRequest): RuleResult | undefined {
  return endingNamespaces.includes(namespace) ? result('namespace-ends', 'ok', `namespace ${namespace} is being deleted`) : undefined;
}
