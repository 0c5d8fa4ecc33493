// Asks both sides the same questions, by the functions that policy tests, admission and the agent use.

import { fieldAt } from '../engine/observe/raw.ts';
import { askEngine } from '../engine/policy-test/policy-test.ts';
import type { GroupDefinition } from '../policies/definition.ts';
import { policiesFor } from '../policies/join.ts';
import { holdingPartition, traitsOf } from '../policies/strategies.ts';
import { type Answered, compareAnswers, type Flip } from './compare.ts';
import type { Question } from './questions.ts';
import { questionsOf } from './scene.ts';
import type { BoundGroup, Pair, Side } from './sides.ts';

interface PairDecisions {
  readonly flips: readonly Flip[];
  /** The number of questions that both sides answered. */
  readonly asked: number;
}

/** Asks all questions about a pair of groups, and returns the answers that differ. Exceptions do not count here. */
export function decisionsOf(pair: Pair, sides: { readonly before: Side; readonly after: Side }, nowMs: number): PairDecisions {
  const objects = [...ownObjects(pair, sides.before, sides.after), ...ownObjects(pair, sides.after, sides.before)];
  const askBefore = askerOf(pair, pair.before, sides.before, sides.after);
  const askAfter = askerOf(pair, pair.after, sides.after, sides.before);
  const flips: Flip[] = [];
  let asked = 0;
  for (const question of questionsOf(pair, objects, nowMs)) {
    const before = askBefore(question);
    const after = before === undefined ? undefined : askAfter(question);
    if (before === undefined || after === undefined) continue;
    asked += 1;
    flips.push(...compareAnswers(question, before, after));
  }
  return { flips, asked };
}

type Asker = (question: Question) => Answered | undefined;

/**
 * Returns a function that asks one side. If the side lacks the group or the member, the state is built with the other side's group, and no
 * group of that side protects the member.
 */
function askerOf(pair: Pair, own: BoundGroup | undefined, side: Side, other: Side): Asker {
  const { agentNamespace, bundle } = side;
  const manifests = ownObjects(pair, side, other);
  const sets = new Set([pair.before, pair.after].flatMap((one) => (one?.group.zones ?? []).map((zone) => zone.statefulSet)));
  const groups = bundle.groups.filter(
    ({ namespace, zones }) => namespace === pair.namespace && zones.some((zone) => sets.has(zone.statefulSet)),
  );
  const plain = { manifests, agentNamespace };
  // Policies that bind none of these groups decide nothing, and each decision would look at them.
  const policies = [...new Set(groups.flatMap((group) => policiesFor(bundle.policies, group, agentNamespace)))];
  const ofMembers = { ...plain, bundle: { groups, policies, exceptions: [] } };
  return (question) => {
    const isMember = own !== undefined && hasMember(own.group, question.statefulSet);
    if (!isMember && question.asksAgent) return undefined;
    const state = isMember ? own : own === pair.before ? pair.after : pair.before;
    const one = state && question.build(state);
    if (state === undefined || one === undefined) return undefined;
    const asked = isMember ? ofMembers : { ...plain, bundle: { groups: [state.group], policies: bundle.policies, exceptions: [] }, groups };
    const answered = askEngine({ group: state.group, ...one, nowMs: question.nowMs }, asked);
    return 'answer' in answered ? ofQuestion(question, answered.answer) : undefined;
  };
}

/** The rules that block a step of the agent because of another step. They say nothing about policies. */
const ofProgress: ReadonlySet<string> = new Set(['replica-write-in-flight', 'pods-in-flight']);

/** Returns the answer about the question alone: the agent can do other things, such as calling pods. */
function ofQuestion({ isDone, isAboutOrder, action }: Question, answer: Answered): Answered | undefined {
  // The replicas are not at rest, for example outside the bounds, so a scale-down decides about the rollout.
  if (action === 'rollout' && answer.results.some(({ rule }) => rule === 'replica-source')) return undefined;
  if (isAboutOrder) {
    const results = answer.results.filter(({ rule }) => rule !== 'paused');
    return { ...answer, results, decision: isDone?.(answer) ? 'act' : 'wait' };
  }
  if (isDone === undefined || answer.decision === 'done') return answer;
  const results = answer.results.filter(({ rule }) => !ofProgress.has(rule));
  return { ...answer, results, decision: isDone(answer) ? 'act' : answer.decision === 'act' ? 'wait' : answer.decision };
}

function hasMember({ zones }: GroupDefinition, statefulSet: string | undefined): boolean {
  return statefulSet === undefined || zones.some((zone) => zone.statefulSet === statefulSet);
}

/** Returns the objects of the namespace of the pair. A member without a manifest has the manifest of the other side, or a plain one. */
export function ownObjects(pair: Pair, side: Side, other: Side): readonly unknown[] {
  const isOwn = (object: unknown): boolean => (fieldAt(object, ['metadata', 'namespace']) ?? 'default') === pair.namespace;
  const bound = [pair.before, pair.after].flatMap((one) => one ?? []);
  // A plain StatefulSet has the strategy that its own side requires.
  const ownLast = [...bound].sort((a, b) => Number(side.bundle.groups.includes(a.group)) - Number(side.bundle.groups.includes(b.group)));
  const members = new Map(ownLast.flatMap(({ group }) => group.zones.map((zone) => [zone.statefulSet, group] as const)));
  const mirrored = new Set(bound.flatMap(({ group }) => group.zones.flatMap(mirroredBy)));
  const isNeeded = (object: unknown): boolean => {
    const kind = String(fieldAt(object, ['kind']));
    if (kind === 'StatefulSet') return members.has(nameOf(object));
    return /^(?:Pod|List|.*DisruptionBudget)$/.test(kind) || mirrored.has(`${kind} ${nameOf(object)}`);
  };
  const own = side.manifests.filter((object) => isOwn(object) && isNeeded(object));
  const known = new Set(own.filter(isStatefulSet).map(nameOf));
  const theirs = other.manifests.filter(
    (object) => isOwn(object) && isStatefulSet(object) && members.has(nameOf(object)) && !known.has(nameOf(object)),
  );
  for (const object of theirs) known.add(nameOf(object));
  const plain = [...members].flatMap(([name, group]) => (known.has(name) ? [] : [plainSet(group, name)]));
  return [...own, ...theirs, ...plain];
}

function mirroredBy({ replicas }: GroupDefinition['zones'][number]): readonly string[] {
  return replicas.kind === 'mirror' ? [`${replicas.resourceKind} ${replicas.name}`] : [];
}

function isStatefulSet(object: unknown): boolean {
  return fieldAt(object, ['kind']) === 'StatefulSet';
}

function nameOf(object: unknown): string {
  return String(fieldAt(object, ['metadata', 'name']) ?? '');
}

function plainSet(group: GroupDefinition, name: string): unknown {
  const { updateStrategy, holdsPartition } = traitsOf(group);
  const labels = { statefulset: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name, namespace: group.namespace },
    spec: {
      replicas: 3,
      serviceName: name,
      selector: { matchLabels: labels },
      updateStrategy: { type: updateStrategy, ...(holdsPartition ? { rollingUpdate: { partition: holdingPartition } } : {}) },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'main' }] } },
    },
  };
}
