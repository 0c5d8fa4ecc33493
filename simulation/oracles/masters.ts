// Judges who writes the fields of StatefulSets (S23): an agent writes only its own fields, and the status names each field that is not from Git.
import { field, groupResource, isAgent, listAt, numberAt, statefulSetResource, textAt } from '../objects.ts';
import type { Commit, ModelObject } from '../server/request.ts';
import type { Oracle, Scene } from './oracle.ts';

/** The fields of the spec that an agent writes. */
const agentFields = [/^spec\.replicas$/, /^spec\.updateStrategy\.rollingUpdate\.partition$/];
/** The labels and annotations that an agent writes, as in grafana/rollout-operator. */
const agentMarks = /^metadata\.(?:labels|annotations)\.(?:rollout-group\.dev|grafana\.com)\//;

/** Creates the judge. A run that ended early has no end to judge. */
export function judgeMasters(scene: Scene): Oracle {
  return {
    committed: (commit) => {
      if (commit.resource === statefulSetResource && isAgent(commit.actor, scene.agentUser)) checkWrite(scene, commit);
    },
    ended: () => {
      if (scene.group.kind === 'native' && scene.isGiven !== true) checkDrift(scene);
    },
  };
}

function checkWrite(scene: Scene, { type, before, after, actor }: Commit): void {
  if (type !== 'MODIFIED' || before === undefined) return;
  const contentOf = ({ metadata: { labels, annotations }, ...rest }: ModelObject) => ({
    metadata: { labels, annotations },
    spec: rest['spec'],
  });
  const foreign = changedPaths(contentOf(before), contentOf(after)).filter(
    (path) => ![...agentFields, agentMarks].some((own) => own.test(path)),
  );
  if (foreign.length === 0) return;
  scene.violated('S23', `${actor.process ?? ''} writes ${foreign.join(', ')} of ${after.metadata.name}, which it does not own`);
}

/** Returns the paths of the values that differ. */
function changedPaths(before: unknown, after: unknown, path = ''): readonly string[] {
  if (before === after) return [];
  const isMap = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null;
  const [was, is] = [before ?? {}, after ?? {}];
  if (!isMap(was) || !isMap(is)) return [path];
  const keys = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  return keys.flatMap((key) => changedPaths(was[key], is[key], path === '' ? key : `${path}.${key}`));
}

/** Compares the published number of fields that are not from Git with the managers of the stored StatefulSets. */
function checkDrift(scene: Scene): void {
  for (const group of scene.list(groupResource, scene.namespace)) {
    const members = listAt(group, 'spec', 'members', 'zones').map((zone) => textAt(zone, 'statefulSet') ?? '');
    const foreign = members.flatMap((name) =>
      foreignFields(scene.get(statefulSetResource, scene.namespace, name)).map((path) => `${path} of ${name}`),
    );
    const published = numberAt(group, 'status', 'drift', 'fieldCount') ?? 0;
    if (published === foreign.length) continue;
    const what = foreign.length === 0 ? 'every field is from Git' : `${foreign.join(', ')} are not from Git`;
    scene.violated('S23', `at the end ${what}, and the status of ${group.metadata.name} counts ${published}`);
  }
}

/** Returns the fields of the spec that only programs other than a tool and an agent own. Empty if no tool applied the object. */
function foreignFields(set: ModelObject | undefined): readonly string[] {
  const entries = listAt(set, 'metadata', 'managedFields').map((entry) => ({
    isOfGit: textAt(entry, 'operation') === 'Apply' || textAt(entry, 'manager') === 'before-first-apply',
    isApply: textAt(entry, 'operation') === 'Apply',
    isOfAgent: textAt(entry, 'manager') === 'rollout-group-agent',
    fields: leavesIn(field(entry, 'fieldsV1', 'f:spec')),
  }));
  if (!entries.some(({ isApply }) => isApply)) return [];
  const fromGit = new Set(entries.filter(({ isOfGit }) => isOfGit).flatMap(({ fields }) => fields));
  const others = entries.filter(({ isOfGit, isOfAgent }) => !isOfGit && !isOfAgent).flatMap(({ fields }) => fields);
  // People, autoscalers and `restart` change these on purpose.
  const onPurpose = /f:replicas$|f:partition$|restartedAt$/;
  return [...new Set(others)].filter((path) => !fromGit.has(path) && !onPurpose.test(path));
}

function leavesIn(tree: unknown, path = ''): readonly string[] {
  return Object.entries((tree ?? {}) as Readonly<Record<string, unknown>>).flatMap(([key, inner]) => {
    if (key === '.') return [];
    const own = `${path}/${key}`;
    return Object.keys(inner as object).length === 0 ? [own] : leavesIn(inner, own);
  });
}
