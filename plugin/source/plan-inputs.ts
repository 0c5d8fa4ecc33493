// Reads the inputs of plan, diff, explain and simulate: current and desired manifests, policies and assumptions.
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import { withRevisions } from '../../engine/observe/revisions.ts';
import { type Assumptions, defaultAssumptions } from '../../engine/plan/document.ts';
import { groupsToPlan } from '../../engine/plan/groups.ts';
import type { PlanInput } from '../../engine/plan/plan.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { policyDigest } from '../../policies/digest.ts';
import type { Finding } from '../../policies/findings/finding.ts';
import { instantMs } from '../../policies/instant.ts';
import { resolveFiles } from '../../policies/lint/lint.ts';
import type { LoadedDocument, Manifest, PolicyFile } from '../../policies/load.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { defined } from '../../policies/values/defined.ts';
import type { KnownTexts } from '../../policies/yaml/document.ts';
import type { CommandContext } from '../context.ts';
import { memberNames, objectChanges } from '../difference.ts';
import { notFoundFailure, usageFailure } from '../failure.ts';
import { isNamed } from '../live/target.ts';
import { readPolicyFiles } from '../policy-files.ts';
import { readInput, readInputs } from './input.ts';
import { absentMembers, notesOf, type PlanSources, refuseOtherNamespace } from './plan-notes.ts';
import { applyWhatIf, parseWhatIf, readAssumptions, type WhatIf } from './what-if.ts';

export interface PlanInputOptions {
  readonly current?: string;
  readonly desired?: string;
  readonly filename?: readonly string[];
  readonly set?: readonly string[];
  readonly assumptions?: string;
  readonly at?: string;
  readonly group?: readonly string[];
  readonly namespace?: string;
  /** The agent's namespace; default `usualAgentNamespace`, or on a cluster the namespace of its Lease. */
  readonly agentNamespace?: string;
  readonly mayHaveNoGroup?: boolean;
  /** The namespaces of objects without one, before and after the change; default `default`. */
  readonly objectNamespaces?: { readonly current: string | undefined; readonly desired: string | undefined };
  readonly knownTexts?: KnownTexts;
}

export interface PlanInputs {
  readonly input: PlanInput;
  /** The documents of our kinds, before and after the change. */
  readonly documents: { readonly current: readonly ObjectContent[]; readonly desired: readonly ObjectContent[] };
  /** The notes for the reader of the plan, each as a part of a sentence. */
  readonly notes: readonly string[];
}

export interface FilePlanInputs extends PlanInputs {
  /** Every desired document of our kinds, including --filename. */
  readonly policies: readonly ObjectContent[];
  readonly manifests: readonly Manifest[];
  readonly manifestsBefore: readonly Manifest[];
}

/** The errors of files. With such errors nothing is planned. */
export interface InputErrors {
  readonly errors: readonly Finding[];
  readonly notes: readonly string[];
}

/**
 * Reads every file of the options. Without `--desired`, the desired manifests are the current manifests with `--set`. Throws Failure with
 * exit code 10 for unreadable files and unknown names, 3 for invalid options, 4 for invalid assumptions.
 */
export async function readPlanInputs(context: CommandContext, options: PlanInputOptions): Promise<FilePlanInputs | InputErrors> {
  const { current, desired } = options;
  if (current === undefined && desired === undefined) {
    throw usageFailure(
      'neither --current nor --desired is given',
      'name the running manifests with --current, and the desired ones with --desired',
    );
  }
  const scenario = await readScenario(context, options);
  const currentFiles = current === undefined ? [] : await readInput(current, context);
  const desiredFiles = desired === undefined ? currentFiles : await readInput(desired, context);
  const policyFiles = await readInputs(options.filename ?? [], context);
  return planInputsOf({ current: currentFiles, desired: desiredFiles, policies: policyFiles }, scenario, options);
}

interface PlanFiles {
  readonly current: readonly PolicyFile[];
  readonly desired: readonly PolicyFile[];
  /** Policies beyond those among the desired files. */
  readonly policies: readonly PolicyFile[];
}

type Scenario = Awaited<ReturnType<typeof readScenario>>;

/** Parses the files and returns the inputs of a plan. Throws Failure as `readPlanInputs` does. */
export function planInputsOf(
  files: PlanFiles,
  { changes, nowMs, assumptions }: Scenario,
  options: PlanInputOptions,
): FilePlanInputs | InputErrors {
  const { agentNamespace = usualAgentNamespace, desired, objectNamespaces } = options;
  const { current: currentFiles, desired: desiredFiles, policies: policyFiles } = files;
  // Parsing takes much of the time of a large plan, so equal files are parsed once.
  const { knownTexts = new Map() } = options;
  const isSame = desiredFiles === currentFiles && policyFiles.length === 0;
  const after = readPolicyFiles(unique([...desiredFiles, ...policyFiles]), {
    agentNamespace,
    knownTexts,
    ...defined({ objectNamespace: objectNamespaces?.desired }),
  });
  const before = isSame ? after : resolveFiles(currentFiles, { knownTexts, ...defined({ objectNamespace: objectNamespaces?.current }) });
  // Manifests among the policies, such as examples, are not desired.
  const desiredNames = new Set(desiredFiles.map(({ name }) => name));
  const isDesired = ({ file }: { readonly file: string }): boolean => desiredNames.has(file);
  const manifests = after.loaded.manifests.filter(isDesired);
  refuseRepeats('--current', before.loaded.manifests);
  refuseRepeats(desired === undefined ? '--current' : '--desired', manifests);
  // The change may repair the current manifests, so only the findings of loading count for them.
  const errors = distinctErrors([...before.loaded.findings, ...after.findings]);
  if (errors.length > 0) return { errors, notes: [] };

  const { groups: groupsBefore } = before.resolution.bundle;
  const { bundle } = after.resolution;
  const sources: PlanSources = {
    groups: groupsToPlan(bundle.groups, groupsBefore),
    files: after,
    current: before.loaded.manifests,
    desired: manifests,
  };
  if (changes.length > 0) refuseOtherNamespace(sources);
  const groups = selectGroups(sources.groups, options);
  const absent = absentMembers(sources, groups);
  const currentObjects = sources.current.map(({ value }) => value);
  const given = manifests.map(({ value }) => value);
  const desiredObjects = applyWhatIf(given, groups, changes);
  const documents = { current: before.loaded.documents.map(contentOf), desired: after.loaded.documents.filter(isDesired).map(contentOf) };
  const members = isPartial(options) ? undefined : memberNames(sources.groups);
  return {
    documents,
    policies: after.loaded.documents.map(contentOf),
    manifests,
    manifestsBefore: before.loaded.manifests,
    notes: isPartial(options) ? [] : notesOf(sources, absent),
    input: {
      ...bundle,
      groups,
      groupsBefore,
      desiredGroups: bundle.groups,
      policyDigest: policyDigest(bundle),
      agentNamespace,
      current: currentObjects,
      // Manifests that were exported from a cluster contain the running revision, but a new template gets another revision.
      desired: withRevisions(desiredObjects, currentObjects),
      assumptions,
      before: before.resolution.bundle,
      ...objectChanges(documents, { current: currentObjects, desired: given }, members),
      absent,
      nowMs,
    },
  };
}

/** Reports whether --group limits the plan to some groups. */
export function isPartial({ group = [] }: Pick<PlanInputOptions, 'group'>): boolean {
  return group.length > 0;
}

function contentOf({ value }: LoadedDocument): ObjectContent {
  return { ...value };
}

export function distinctErrors(findings: readonly Finding[]): readonly Finding[] {
  const errors = findings.filter(({ severity }) => severity === 'error');
  return [...new Map(errors.map((error) => [canonicalJson(error), error])).values()];
}

export async function readScenario(
  context: CommandContext,
  { set = [], at, assumptions: path }: PlanInputOptions,
): Promise<{ readonly changes: readonly WhatIf[]; readonly nowMs: number; readonly assumptions: Assumptions }> {
  const changes = set.map(parseWhatIf);
  const nowMs = at === undefined ? context.nowMs() : instantMs(at);
  if (nowMs === undefined)
    throw usageFailure(`--at ${at} is not an instant`, 'write an instant with an offset, such as 2026-01-15T10:00:00Z');
  if (path === undefined) return { changes, nowMs, assumptions: defaultAssumptions };
  const [file, ...others] = await readInput(path, context);
  if (file === undefined || others.length > 0) throw usageFailure(`--assumptions ${path} is not one file`);
  return { changes, nowMs, assumptions: readAssumptions(file) };
}

/** Throws Failure for two versions of one object. The usual cause is a flag that names the parent folder of both. */
export function refuseRepeats(flag: string, manifests: readonly Manifest[]): void {
  const first = new Map<string, Manifest>();
  for (const manifest of manifests) {
    const name = `${manifest.kind} ${manifest.namespace}/${manifest.name}`;
    const before = first.get(name);
    if (before !== undefined) {
      throw usageFailure(`${flag} holds ${name} twice`, `it is in ${before.file} and in ${manifest.file}: name the folder of one of them`);
    }
    first.set(name, manifest);
  }
}

export function unique(files: readonly PolicyFile[]): readonly PolicyFile[] {
  return [...new Map(files.map((file) => [file.name, file])).values()];
}

export function selectGroups(
  groups: readonly GroupDefinition[],
  { group: names = [], namespace, mayHaveNoGroup = false }: PlanInputOptions,
): readonly GroupDefinition[] {
  const selected = groups.filter(
    (group) =>
      (namespace === undefined || group.namespace === namespace) && (names.length === 0 || names.some((name) => isNamed(group, name))),
  );
  const missing = names.find((name) => !selected.some((group) => isNamed(group, name)));
  if (missing === undefined && (selected.length > 0 || mayHaveNoGroup)) return selected;
  throw notFoundFailure(
    `there is no group${missing === undefined ? '' : ` ${missing}`}${namespace === undefined ? '' : ` in namespace ${namespace}`}`,
    {
      why:
        groups.length === 0
          ? 'no StatefulSet is adopted, and no policy defines a group'
          : `known are ${groups.map((one) => `${one.namespace}/${one.name}`).join(', ')}`,
      todo:
        groups.length === 0
          ? 'name policies with -f, or label StatefulSets with rollout-group, or have groups proposed: kubectl rollout-group init --help'
          : 'name one of these',
    },
  );
}

export interface LivePlanOptions extends PlanInputOptions {
  readonly live?: boolean;
  readonly allNamespaces?: boolean;
  readonly forceConflicts?: boolean;
  /** Names the objects in the files that are neither planned nor applied. By default, these are the changed objects that the plan does not show. */
  readonly omitted?: readonly string[];
  /** Replaces the namespaces that the files name; empty for all. */
  readonly namespaces?: readonly string[];
}

/** The contents of the files, so that a saved plan can be checked without the files. */
export interface GivenFiles {
  readonly manifests: readonly PolicyFile[];
  readonly policies: readonly PolicyFile[];
}

/** Reports whether the plan is on a cluster: with --live, or without --current and --desired. */
export function isLive({ live, current, desired }: LivePlanOptions): boolean {
  return live === true || (current === undefined && desired === undefined);
}
