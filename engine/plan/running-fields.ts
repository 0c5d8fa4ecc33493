// Compares the pod templates that pods run with a requested template: during a rollout and after a rollback they differ from the StatefulSet.
import { isSameValue } from '../../policies/values/canonical-json.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { type FieldChange, fieldDiff, type ObjectContent } from '../diff/field-diff.ts';
import { fieldAt } from '../observe/raw.ts';
import { templateOfRevision } from '../observe/revisions.ts';
import { countRevisions } from '../run/revisions.ts';
import type { PodView } from '../snapshot.ts';
import type { RunningValue } from './document.ts';

interface PodTemplate {
  readonly pods: number;
  /** The differences between the template of the pods and the requested template. */
  readonly changes: readonly FieldChange[];
}

export interface RunningMember {
  readonly object: ObjectContent;
  readonly updateRevision: string | undefined;
  readonly pods: readonly Pick<PodView, 'revision'>[];
  /** The ControllerRevisions that Kubernetes keeps, of any StatefulSet. */
  readonly revisions: readonly unknown[];
}

/** Compares the templates of the pods with the template of `after`. Leaves out pods whose revision Kubernetes no longer keeps. */
export function comparePods(after: ObjectContent, { object, updateRevision, pods, revisions }: RunningMember): readonly PodTemplate[] {
  return [...countRevisions(pods)].flatMap(([revision, count]) => {
    const template = templateNamed(revision, { object, updateRevision, revisions });
    if (template === undefined) return [];
    return [{ pods: count, changes: fieldDiff(templateOnly(template), templateOnly(templateOf(after))) }];
  });
}

/** Returns the pod template of a revision: that of the StatefulSet for its update revision, else that of the ControllerRevision. */
export function templateNamed(
  revision: string,
  { object, updateRevision, revisions }: Omit<RunningMember, 'pods'>,
): ObjectContent | undefined {
  return revision === updateRevision ? templateOf(object) : templateOfRevision(object, revision, revisions);
}

function templateOnly(template: unknown): ObjectContent {
  return { kind: 'StatefulSet', spec: { template } };
}

function templateOf(object: ObjectContent): ObjectContent | undefined {
  const template = fieldAt(object, ['spec', 'template']);
  return isRecord(template) ? template : undefined;
}

/** Returns the values of a field in the pods. A field that the pods do not change has the requested value. A list has no single value. */
export function valuesInPods({ path, before, after }: FieldChange, templates: readonly PodTemplate[]): readonly RunningValue[] {
  const values = templates.map(({ pods, changes }): RunningValue => {
    const change = changes.find((one) => one.path === path);
    const value = change === undefined ? after : change.before;
    return { pods, ...(value === undefined ? {} : { value }) };
  });
  return [before, after, ...values.map(({ value }) => value)].some(Array.isArray) ? [] : values;
}

/** Returns the fields that change in pods although the StatefulSet already has the requested value. */
export function changedOnlyInPods(known: readonly FieldChange[], templates: readonly PodTemplate[]): readonly FieldChange[] {
  const paths = new Set(known.map(({ path }) => path));
  const others = templates.flatMap(({ changes }) =>
    changes.filter(({ path, after, before }) => !paths.has(path) && ![before, after].some(Array.isArray)),
  );
  const first = others.filter(({ path }, index) => others.findIndex((one) => one.path === path) === index);
  return first.map(({ before: _before, ...change }) => ({ ...change, ...('after' in change ? { before: change.after } : {}) }));
}

/** Adds the counts of equal values, the most frequent first. */
export function joinValues(values: readonly RunningValue[]): readonly RunningValue[] {
  const joined: RunningValue[] = [];
  for (const one of values) {
    const index = joined.findIndex(({ value }) => isSameValue(value, one.value));
    if (index < 0) joined.push(one);
    else joined[index] = { ...one, pods: (joined[index]?.pods ?? 0) + one.pods };
  }
  return joined.sort((a, b) => b.pods - a.pods);
}
