// Compares the pod templates that pods run with a requested template: during a rollout and after a rollback they differ from the StatefulSet.
import { canonicalJson, isSameValue } from '../../policies/values/canonical-json.ts';
import { defined } from '../../policies/values/defined.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { type FieldChange, fieldDiff, type ObjectContent } from '../diff/field-diff.ts';
import { fieldAt } from '../observe/raw.ts';
import { templateOfRevision } from '../observe/revisions.ts';
import { countRevisions } from '../run/revisions.ts';
import type { PodView } from '../snapshot.ts';
import type { RunningValue } from './document.ts';

export interface RunningMember {
  readonly object: ObjectContent;
  readonly updateRevision: string | undefined;
  /** Undefined if the pods could not be read. */
  readonly pods: readonly Pick<PodView, 'revision'>[] | undefined;
  /** The ControllerRevisions that Kubernetes keeps, of any StatefulSet. */
  readonly revisions: readonly unknown[];
}

/** The pods that a change changes, by their present value. */
export interface ChangedPods {
  readonly values: readonly RunningValue[];
  /** The number of all pods. */
  readonly pods: number;
  /** False if the template of a pod could not be read. */
  readonly areKnown: boolean;
}

/** A change of the pod template. `pods`: the StatefulSet does not have this change. */
interface TemplateChange {
  readonly kind: 'template' | 'pods';
  readonly change: FieldChange;
  readonly changedPods: ChangedPods;
}

/**
 * Returns the changes of the StatefulSet's template, then the changes that only pods have, each with its pods. Every template that pods run is
 * compared with the requested one. So a pod without a parent of a field appears at the change of the parent.
 */
export function templateChanges(
  ofObject: readonly FieldChange[],
  after: ObjectContent,
  { pods, ...member }: RunningMember,
): readonly TemplateChange[] {
  const templates = [...countRevisions(pods ?? [])].flatMap(([revision, count]) => {
    const template = templateNamed(revision, member);
    if (template === undefined) return [];
    const changes = fieldDiff(templateOnly(template), templateOnly(templateOf(after)));
    return [{ pods: count, changes: new Map(changes.map((change) => [changeKey(change), change])) }];
  });
  const known = templates.reduce((sum, template) => sum + template.pods, 0);
  const found = new Map(ofObject.map((change) => [changeKey(change), { kind: 'template' as TemplateChange['kind'], change }]));
  for (const [key, { before: _before, ...change }] of templates.flatMap(({ changes }) => [...changes]))
    if (!found.has(key)) found.set(key, { kind: 'pods', change });
  return [...found].map(([key, row]) => {
    const values = templates.flatMap(({ pods: count, changes }): readonly RunningValue[] => {
      const change = changes.get(key);
      return change === undefined ? [] : [{ pods: count, ...defined({ value: change.before }) }];
    });
    return { ...row, changedPods: { values, pods: pods?.length ?? 0, areKnown: known === pods?.length } };
  });
}

/** Returns equal texts for changes of one field. A list is compared as a set, so its changes are equal only if they add the same entries. */
function changeKey({ path, after }: FieldChange): string {
  return canonicalJson([path, Array.isArray(after) ? after : null]);
}

/** Returns the pod template of a revision. A status older than its spec still names the revision before the change of the StatefulSet. */
export function templateNamed(
  revision: string,
  { object, updateRevision, revisions }: Omit<RunningMember, 'pods'>,
): ObjectContent | undefined {
  return templateOfRevision(object, revision, revisions) ?? (revision === updateRevision ? templateOf(object) : undefined);
}

function templateOnly(template: unknown): ObjectContent {
  return { kind: 'StatefulSet', spec: { template } };
}

function templateOf(object: ObjectContent): ObjectContent | undefined {
  const template = fieldAt(object, ['spec', 'template']);
  return isRecord(template) ? template : undefined;
}

/** Joins the pods of two zones that change in the same way. */
export function joinPods(one: ChangedPods, other: ChangedPods): ChangedPods {
  return {
    values: joinValues([...one.values, ...other.values]),
    pods: one.pods + other.pods,
    areKnown: one.areKnown && other.areKnown,
  };
}

/** Reports whether no pod is known to differ from the StatefulSet: every pod has `before`, as without a run. */
export function haveValue(before: unknown, { values, pods, areKnown }: ChangedPods): boolean {
  const changed = values.reduce((sum, value) => sum + value.pods, 0);
  return values.every(({ value }) => isSameValue(value, before)) && (changed === pods || !areKnown);
}

/** Adds the counts of equal values, the most frequent first. */
function joinValues(values: readonly RunningValue[]): readonly RunningValue[] {
  const joined: RunningValue[] = [];
  for (const one of values) {
    const index = joined.findIndex(({ value }) => isSameValue(value, one.value));
    if (index < 0) joined.push(one);
    else joined[index] = { ...one, pods: (joined[index]?.pods ?? 0) + one.pods };
  }
  return joined.sort((a, b) => b.pods - a.pods);
}
