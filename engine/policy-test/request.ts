// Puts the request of a policy test case to the engine, and returns one answer.

import type { GroupDefinition, ZoneDefinition } from '../../policies/definition.ts';
import type { PolicyTestCase } from '../../policies/schema/policy-test.ts';
import { defined } from '../../policies/values/defined.ts';
import { counted } from '../../policies/wording.ts';
import type { AdmissionRequest } from '../decision.ts';
import { blocks } from '../rule.ts';
import { type Snapshot, type StatefulSetView, setNamed } from '../snapshot.ts';
import { type Answer, type CaseState, decided, judged } from './answer.ts';

type Request = PolicyTestCase['request'];

type Asking = { readonly answer: Answer } | { readonly problem: string };

/** Returns the answer to the request of a case. Different answers on two write paths are a problem. */
export function ask(asked: CaseState, request: Request): Asking {
  switch (request.action) {
    case 'rollout':
    case 'none': {
      const idle = (
        ['from', 'to', 'ordinal', 'via', 'user', 'groups', ...(request.action === 'none' ? (['zone'] as const) : [])] as const
      ).find((field) => request[field] !== undefined);
      return idle === undefined
        ? { answer: decided(asked) }
        : { problem: `the field ${idle} has no meaning if the action is ${request.action}` };
    }
    case 'scaleUp':
    case 'scaleDown':
      return askScale(asked, request);
    case 'delete':
    case 'evict':
    case 'restart':
      return askMember(asked, request);
  }
}

interface Member {
  readonly zone: ZoneDefinition;
  readonly set: StatefulSetView;
}

function memberOf({ snapshot, group }: CaseState, request: Request): Member | string {
  const zone = zoneOf(group, request.zone);
  if (typeof zone === 'string') return zone;
  const set = setNamed(snapshot, group.namespace, zone.statefulSet);
  return set === undefined ? `zone ${zone.name}: the manifests contain no StatefulSet ${zone.statefulSet}` : { zone, set };
}

function zoneOf(group: GroupDefinition, name: string | undefined): ZoneDefinition | string {
  const names = group.zones.map((zone) => zone.name).join(', ');
  const [only, ...others] = group.zones;
  if (name === undefined) return only !== undefined && others.length === 0 ? only : `the request names no zone; zones are ${names}`;
  return group.zones.find((zone) => zone.name === name) ?? `the group ${group.name} has no zone ${name}; its zones are ${names}`;
}

const writePaths = ['update', 'patch', 'apply', 'scale'] as const;

function askScale(asked: CaseState, request: Request): Asking {
  const member = memberOf(asked, request);
  if (typeof member === 'string') return { problem: member };
  const { zone, set } = member;
  const { action, from = set.replicas, to, user, groups } = request;
  if (to === undefined) return { problem: `the request ${action} has no field "to"` };
  if (from !== set.replicas)
    return { problem: `zone ${zone.name} has ${counted(set.replicas, 'replica')}, so it is not scaled from ${from}` };
  if (action === 'scaleUp' ? to <= from : to >= from) return { problem: `from ${from} to ${to} is not a ${action}` };
  const base = { namespace: set.namespace, statefulSet: set.name, from, to, dryRun: false, ...defined({ user, groups }) };
  const answers = (request.via ?? writePaths).map((via) => {
    const write: AdmissionRequest =
      via === 'scale'
        ? { kind: 'scale', ...base, via }
        : { kind: 'update', ...base, isTemplateChanged: false, strategy: set.updateStrategy, via };
    return { via, answer: judged(asked, write, { zone: zone.name, replicas: to }) };
  });
  return alike(answers);
}

function alike(answers: readonly { readonly via: string; readonly answer: Answer }[]): Asking {
  const [first] = answers;
  if (first === undefined) return { problem: 'the request names no write path' };
  const holdingRules = ({ answer }: { readonly answer: Answer }): string =>
    `${answer.decision} ${answer.results
      .filter(blocks)
      .map((result) => result.rule)
      .sort()
      .join(' ')}`;
  const other = answers.find((one) => holdingRules(one) !== holdingRules(first));
  if (other === undefined) return { answer: first.answer };
  return { problem: `the write path ${first.via} returns ${holdingRules(first)}, but ${other.via} returns ${holdingRules(other)}` };
}

function askMember(asked: CaseState, request: Request): Asking {
  if (request.via !== undefined) return { problem: `via is for scaleUp and scaleDown, not for ${request.action}` };
  const member = memberOf(asked, request);
  if (typeof member === 'string') return { problem: member };
  const { namespace, name: statefulSet } = member.set;
  const { user, groups } = request;
  const base = { namespace, dryRun: false, ...defined({ user, groups }) };
  if (request.action === 'restart') return { answer: judged(asked, { kind: 'restart', statefulSet, ...base }) };
  if (request.action === 'delete' && request.ordinal === undefined)
    return { answer: judged(asked, { kind: 'deleteStatefulSet', statefulSet, ...base }) };
  if (request.ordinal === undefined) return { problem: 'an eviction needs the ordinal of its pod' };
  const pod = `${statefulSet}-${request.ordinal}`;
  if (!exists(asked.snapshot, namespace, pod)) return { problem: `zone ${member.zone.name} has no pod ${pod}` };
  return { answer: judged(asked, { kind: request.action === 'evict' ? 'evictPod' : 'deletePod', pod, ...base }) };
}

/** Reports whether the pod may exist: a zone that could not be read may contain it. */
function exists(snapshot: Snapshot, namespace: string, name: string): boolean {
  return snapshot.pods
    .filter((view) => view.namespace === namespace)
    .some(({ pods, statefulSet }) => ('unknown' in pods ? name.startsWith(`${statefulSet}-`) : pods.some((pod) => pod.name === name)));
}
