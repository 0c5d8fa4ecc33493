// The policies of a plan on a cluster: files over live objects, with the findings of the files.

import type { ObjectContent } from '../../../engine/diff/field-diff.ts';
import type { GroupDefinition, PolicyBundle } from '../../../policies/definition.ts';
import type { Finding } from '../../../policies/findings/finding.ts';
import { loadObjects } from '../../../policies/live/objects.ts';
import { blockInsteadOf, excludeInvalidPolicies } from '../../../policies/live/sources.ts';
import type { PolicyFile, UnusableDocument } from '../../../policies/load.ts';
import { isRecord } from '../../../policies/values/is-record.ts';
import { parseDocuments } from '../../../policies/yaml/document.ts';
import { nameOf } from '../../difference.ts';
import { readPolicyFiles } from '../../policy-files.ts';
import { distinctErrors } from '../plan-inputs.ts';
import { type ManifestObject, overlaid } from './desired-objects.ts';

interface PolicyQuestion {
  readonly files: readonly PolicyFile[];
  /** Names of the files with the desired manifests. */
  readonly desiredFiles: ReadonlySet<string>;
  readonly desiredObjects: readonly ManifestObject[];
  readonly live: readonly ObjectContent[];
  /** The namespace of objects without a namespace. */
  readonly namespace: string;
  /** Policies there may name other namespaces. */
  readonly agentNamespace: string;
}

interface PoliciesOver {
  readonly bundle: PolicyBundle;
  /** The groups as they are without the files. */
  readonly groupsBefore: readonly GroupDefinition[];
  /** Errors of the files. Errors of live objects do not block a plan. */
  readonly errors: readonly Finding[];
}

/** Returns the policies of the files over those of the cluster. An error in a partial manifest counts only if the applied object has it. */
export function policiesOver({ files, desiredFiles, desiredObjects, live, ...options }: PolicyQuestion): PoliciesOver {
  const desiredNames = new Set(desiredObjects.map(({ manifest }) => nameOf(manifest)));
  const kept = live.filter((object) => !desiredNames.has(nameOf(object)));
  const unusable = unusablePolicies(kept);
  const isUsable = (object: ObjectContent): boolean =>
    !unusable.some(({ kind, namespace, name }) => nameOf(object) === `${kind} ${namespace}/${name}`);
  const others = kept.filter(isUsable).map(asFile);
  const written = readPolicyFiles([...files, ...others], options);
  // Manifests in a file with policies stay unchanged: findings quote that file.
  const isManifestFile = (file: PolicyFile): boolean => desiredFiles.has(file.name) && documentsOf([file]).length === 0;
  const policyFiles = files.filter((file) => !isManifestFile(file));
  const inKept = new Set(readPolicyFiles(policyFiles, options).loaded.manifests.map(({ value }) => nameOf(value)));
  const applied = desiredObjects.filter(({ manifest }) => !isOurs(manifest) && !inKept.has(nameOf(manifest)));
  const whole = applied.map(({ manifest, live }) => asFile(overlaid(live, manifest)));
  const effective = whole.length === 0 ? written : readPolicyFiles([...policyFiles, ...whole, ...others], options);
  const remaining = keysOfFindings(effective.findings);
  const unreadable = new Set(written.loaded.findings);
  const namesIn = (file: string): readonly string[] =>
    written.loaded.manifests.filter((manifest) => manifest.file === file).map(({ value }) => nameOf(value));
  const isReplaced = new Set(files.filter(isManifestFile).map(({ name }) => name));
  const errors = written.findings.filter((one) => {
    if (one.severity !== 'error' || isLiveFile(one.file)) return false;
    if (unreadable.has(one) || effective === written) return true;
    return isReplaced.has(one.file) ? namesIn(one.file).some((name) => remaining.has(`${one.code} ${name}`)) : remaining.has(placeOf(one));
  });
  const bundle = withLiveSources(effective.resolution.bundle);
  const blocking = unusable.flatMap((policy) => blockInsteadOf(policy, bundle.groups, options.agentNamespace));
  return {
    bundle: { ...bundle, policies: [...bundle.policies, ...blocking] },
    groupsBefore: readPolicyFiles(live.map(asFile), options).resolution.bundle.groups,
    errors: distinctErrors(errors),
  };
}

/** Returns the live policies that cannot be used. As in the agent, such a policy blocks everything it may target. */
function unusablePolicies(live: readonly ObjectContent[]): readonly UnusableDocument[] {
  return excludeInvalidPolicies(loadObjects(live.filter(({ kind }) => kind === 'RolloutPolicy'))).unusable;
}

/** Returns the keys of the findings: by place, and by object for findings about an object. */
function keysOfFindings(findings: readonly Finding[]): ReadonlySet<string> {
  const ofObject = ({ code, file, object }: Finding): readonly string[] =>
    isLiveFile(file) || object !== undefined ? [`${code} ${object ?? file.slice(livePrefix.length)}`] : [];
  return new Set(findings.flatMap((one) => [placeOf(one), ...ofObject(one)]));
}

function placeOf({ code, file, line, column }: Finding): string {
  return `${code} ${file}:${line}:${column}`;
}

/** Reports whether the object is of one of our kinds. */
export function isOurs(object: ObjectContent): boolean {
  return String(object['apiVersion']).startsWith('rollout-group.dev/');
}

/** Replaces sources in live objects by the object's name. */
function withLiveSources(bundle: PolicyBundle): PolicyBundle {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    if ('file' in value && typeof value.file === 'string' && isLiveFile(value.file)) return { object: value.file.slice(livePrefix.length) };
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, walk(part)]));
  };
  return walk(bundle) as PolicyBundle;
}

const livePrefix = 'cluster:';

/** Turns a live object into a file, so that both kinds of policies are read alike. Leaves out fields of the API server. */
export function asFile(object: ObjectContent): PolicyFile {
  const { apiVersion, kind, metadata, spec } = object;
  const { name, namespace, labels, annotations } = (metadata ?? {}) as Readonly<Record<string, unknown>>;
  return {
    name: `${livePrefix}${nameOf(object)}`,
    text: JSON.stringify({ apiVersion, kind, metadata: { name, namespace, labels, annotations }, spec }),
  };
}

/** Reports whether a finding is about a live object, not about a file. */
function isLiveFile(file: string): boolean {
  return file.startsWith(livePrefix);
}

/** Kinds that exist only in files. */
const fileKinds: ReadonlySet<unknown> = new Set(['PolicyTest', 'PolicySet']);

/** Returns our documents as written, without the defaults that loading adds. */
export function documentsOf(files: readonly PolicyFile[]): readonly ObjectContent[] {
  return files
    .flatMap((file) => parseDocuments(file.name, file.text).documents)
    .flatMap(({ value }) => (isRecord(value) && Array.isArray(value['items']) ? value['items'] : [value]))
    .filter(isRecord)
    .filter((value) => isOurs(value) && !fileKinds.has(value['kind']));
}
