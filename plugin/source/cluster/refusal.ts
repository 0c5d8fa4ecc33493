// Finds the reason why apply would reject a whole request. plan and diff show the reason as a note.

import { counted, firstOf, listed } from '../../../policies/wording.ts';
import { nameOf } from '../../difference.ts';
import { exitCodes, type FailureDetails } from '../../failure.ts';
import { gitOpsOwner } from './git-ops-owner.ts';
import type { LivePlanInputs } from './live-plan.ts';
import { conflictsOf, isOfKubectl } from './server-apply.ts';

type Question = Pick<LivePlanInputs, 'desiredObjects' | 'ready' | 'forceConflicts' | 'writeOrder'>;

/** Returns the first reason why apply rejects the whole request; undefined if apply carries it out. */
export function refusalOf(inputs: Question): FailureDetails | undefined {
  return missingKinds(inputs) ?? gitOpsOwned(inputs) ?? conflicting(inputs) ?? unordered(inputs);
}

/** Returns a note if apply writes the objects in another order than usual. */
export function orderNotes({ writeOrder: { parts, isSafe, early } }: Question): readonly string[] {
  return isSafe && early.length > 0 ? [`apply writes in the order ${listed(parts, 'and')}: ${earlyText(early)}`] : [];
}

/** Returns the refusal as a note of plan and diff, else the note on the order of the writes. */
export function refusalNotes(inputs: Question): readonly string[] {
  const refusal = refusalOf(inputs);
  if (refusal === undefined) return orderNotes(inputs);
  return [[`apply refuses this: ${refusal.what}`, refusal.why, refusal.todo].filter((part) => part !== undefined).join('; ')];
}

/** Returns the failure for kinds that are not installed. To apply only the rest would silently omit policies. */
function missingKinds({ desiredObjects }: Question): FailureDetails | undefined {
  const missing = desiredObjects.filter(({ resource }) => resource === undefined).map(({ manifest }) => manifest);
  if (missing.length === 0) return undefined;
  const kinds = [...new Set(missing.map(({ kind }) => String(kind)))];
  const ours = missing.find(({ apiVersion }) => String(apiVersion).startsWith('rollout-group.dev/'));
  return {
    exitCode: exitCodes.notFound,
    what: `${kinds.join(', ')} ${kinds.length === 1 ? 'is' : 'are'} not installed in this cluster`,
    todo:
      ours === undefined
        ? 'install the CRDs of these kinds first'
        : `kubectl rollout-group schema ${String(ours['kind'])} -o crd | kubectl apply -f -`,
  };
}

/** Returns the failure for objects that a GitOps tool owns: the tool, or the next upgrade of the Helm release, would revert the change. */
function gitOpsOwned({ ready }: Question): FailureDetails | undefined {
  const owned = ready.flatMap(({ live }) => {
    const owner = live === undefined ? undefined : gitOpsOwner(live);
    return live === undefined || owner === undefined ? [] : [{ object: nameOf(live), owner }];
  });
  const [first] = owned;
  if (first === undefined) return undefined;
  const { owner } = first;
  const isHelm = owner.tool === 'Helm';
  const others = owned.length === 1 ? '' : ` and ${counted(owned.length - 1, 'other object')}`;
  return {
    exitCode: exitCodes.refused,
    what: `${owner.tool} owns ${first.object}${others}`,
    why: `${owner.evidence}${owner.of === undefined ? '' : ` names ${owner.of}`}; ${isHelm ? 'the next upgrade' : 'the tool'} would revert the change`,
    todo: isHelm ? 'change the chart or the values of the release' : `commit the change to the Git repository that ${owner.tool} applies`,
  };
}

/** Returns the failure for a change for which no order of the writes is safe. */
function unordered({ writeOrder: { isSafe, early } }: Question): FailureDetails | undefined {
  if (isSafe) return undefined;
  const groups = [...new Set(early.map(({ group }) => group))];
  const run = (verb: string): string => groups.map((group) => `kubectl rollout-group ${verb} ${group}`).join('; ');
  return {
    exitCode: exitCodes.refused,
    what: `in every order of the writes, the agent would act on a part of the change of ${groups.join(', ')}`,
    why: earlyText(early),
    todo: `${run('pause')}; then apply, and ${run('resume')}; or apply one part, and the next one after the agent has carried it out`,
  };
}

/** Returns `with only the new policies, the agent of shop/cache would act on pod cache-a-1`. */
function earlyText(early: Question['writeOrder']['early']): string {
  const parts = early.map(
    ({ group, after, actions }) => `with only the new ${listed(after, 'and')}, the agent of ${group} would act on ${firstOf(actions, 3)}`,
  );
  return firstOf(parts, 4, '; ');
}

function conflicting({ ready, forceConflicts }: Question): FailureDetails | undefined {
  const all = ready.flatMap(({ object, trouble }) => conflictsOf(trouble).map((one) => ({ ...one, object: nameOf(object) })));
  const conflicts = forceConflicts ? all.filter((one) => !isOfKubectl(one)) : all;
  const [first] = conflicts;
  if (first === undefined) return undefined;
  const [fields, belong, them] = conflicts.length === 1 ? ['field', 'belongs', 'the field'] : ['fields', 'belong', 'the fields'];
  const named = conflicts.map(({ object, manager, field }) => `${object} ${field} (${manager})`);
  return {
    exitCode: exitCodes.refused,
    what: `${conflicts.length} ${fields} ${belong} to another field manager`,
    why: firstOf(named, 5),
    todo: conflicts.every(isOfKubectl)
      ? `take over the fields of kubectl with --force-conflicts, or remove ${them} from the manifests`
      : `remove ${them} from the manifests, or change them in ${(conflicts.find((one) => !isOfKubectl(one)) ?? first).manager}`,
  };
}
