// Resolves the policies of a plan on a cluster: the files replace live objects of the same name.

import type { ObjectContent } from '../../../engine/diff/field-diff.ts';
import type { GroupDefinition, PolicyBundle, Source } from '../../../policies/definition.ts';
import type { Finding } from '../../../policies/findings/finding.ts';
import { loadObjects } from '../../../policies/live/objects.ts';
import { blockInsteadOf, excludeInvalidPolicies } from '../../../policies/live/sources.ts';
import type { ObjectName, PolicyFile } from '../../../policies/load.ts';
import { isRecord } from '../../../policies/values/is-record.ts';
import { tryParseJson } from '../../../policies/values/try-parse-json.ts';
import { parseDocuments } from '../../../policies/yaml/document.ts';
import { nameOf } from '../../difference.ts';
import { readPolicyFiles } from '../../policy-files.ts';
import { distinctErrors } from '../plan-inputs.ts';
import { withManifestPartition } from './desired-objects.ts';

interface PolicyQuestion {
  readonly files: readonly PolicyFile[];
  readonly desiredObjects: readonly { readonly manifest: ObjectContent; readonly object: ObjectContent }[];
  /** The live objects whose documents in the files are not applied. These documents count as absent; the live objects are used instead. */
  readonly omitted?: readonly string[];
  readonly live: readonly ObjectContent[];
  readonly namespace: string;
  /** The namespace of the agent. Policies in it may apply to other namespaces. */
  readonly agentNamespace: string;
}

interface PoliciesOver {
  readonly bundle: PolicyBundle;
  readonly groupsBefore: readonly GroupDefinition[];
  readonly desiredGroups: readonly GroupDefinition[];
  /** The errors of the files. Errors of live objects do not block a plan. */
  readonly errors: readonly Finding[];
}

/** Returns the policies of the files and the cluster; files have precedence. Each desired object counts as it is after the apply. */
export function policiesOver({ files, desiredObjects, omitted = [], live, ...options }: PolicyQuestion): PoliciesOver {
  const stored = new Map(
    desiredObjects.map(({ manifest, object }) => [nameOf(manifest), contentOf(withManifestPartition(object, manifest))]),
  );
  const kept = live.filter((object) => !stored.has(nameOf(object)));
  // As in the agent, a live policy that cannot be used blocks every group that it may target.
  const { unusable } = excludeInvalidPolicies(loadObjects(kept.filter(({ kind }) => kind === 'RolloutPolicy')));
  const textOf = ({ kind, namespace, name }: ObjectName): string => `${kind} ${namespace}/${name}`;
  const others = kept.filter((object) => !unusable.some((one) => nameOf(object) === textOf(one))).map(asFile);
  const storedForm = (name: ObjectName): ObjectContent | undefined => stored.get(textOf(name));
  const isOmitted = (name: ObjectName, file: string): boolean => omitted.includes(textOf(name)) && !file.startsWith(livePrefix);
  const { findings, resolution } = readPolicyFiles([...files, ...others], { ...options, storedForm, isOmitted });
  const isWritten = ({ file }: Source): boolean => file?.startsWith(livePrefix) === false;
  // RG2102: two groups have the same StatefulSet. The agent blocks both, so it is an error of the files even if one group is live.
  const errors = findings.filter(({ severity, code, related = [], file }) => {
    if (severity !== 'error') return false;
    return code === 'RG2102' ? [{ file }, ...related].some(isWritten) : isWritten({ file }) && omitted.length === 0;
  });
  const bundle = withLiveSources(resolution.bundle);
  const blocking = unusable.map((policy) => blockInsteadOf(policy, bundle.groups, options.agentNamespace));
  return {
    bundle: { ...bundle, policies: [...bundle.policies, ...blocking] },
    desiredGroups: bundle.groups,
    groupsBefore: readPolicyFiles(live.map(asFile), options).resolution.bundle.groups,
    errors: distinctErrors(errors),
  };
}

export function isOurs(object: ObjectContent): boolean {
  return String(object['apiVersion']).startsWith('rollout-group.dev/');
}

/** Replaces the file name of a source in a live object by the name of the object. */
function withLiveSources(bundle: PolicyBundle): PolicyBundle {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    if ('file' in value && typeof value.file === 'string' && value.file.startsWith(livePrefix))
      return { object: value.file.slice(livePrefix.length) };
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, walk(part)]));
  };
  return walk(bundle) as PolicyBundle;
}

const livePrefix = 'cluster:';

/** Returns a live object as a file, so that one reader handles both files and objects. */
export function asFile(object: ObjectContent): PolicyFile {
  return { name: `${livePrefix}${nameOf(object)}`, text: JSON.stringify(contentOf(object)) };
}

function contentOf({ apiVersion, kind, metadata, spec }: ObjectContent): ObjectContent {
  const { name, namespace, labels, annotations } = (metadata ?? {}) as Readonly<Record<string, unknown>>;
  return tryParseJson(JSON.stringify({ apiVersion, kind, metadata: { name, namespace, labels, annotations }, spec })) as ObjectContent;
}

/** Returns our documents as written, without the defaults that loading adds. Leaves out the kind PolicyTest, which exists only in files. */
export function documentsOf(files: readonly PolicyFile[]): readonly ObjectContent[] {
  return files
    .flatMap((file) => parseDocuments(file.name, file.text).documents)
    .flatMap(({ value }) => (isRecord(value) && Array.isArray(value['items']) ? value['items'] : [value]))
    .filter(isRecord)
    .filter((value) => isOurs(value) && value['kind'] !== 'PolicyTest');
}
