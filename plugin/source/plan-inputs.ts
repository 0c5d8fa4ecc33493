// Reads the inputs of plan, diff, explain and simulate: current and desired manifests, policies and assumptions.
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import { instantMs } from '../../engine/observe/raw.ts';
import { withRevisions } from '../../engine/observe/revisions.ts';
import { type Assumptions, defaultAssumptions } from '../../engine/plan/assumptions.ts';
import { groupsToPlan } from '../../engine/plan/groups.ts';
import type { PlanInput } from '../../engine/plan/plan.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { policyDigest } from '../../policies/digest.ts';
import type { Finding } from '../../policies/findings/finding.ts';
import type { Manifest, PolicyFile } from '../../policies/load.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import type { CommandContext } from '../context.ts';
import { exitCodes, Failure, usageFailure } from '../failure.ts';
import { type PolicyFiles, readPolicyFiles } from '../policy-files.ts';
import { readAssumptions } from './assumptions-file.ts';
import { readInput, readInputs } from './input.ts';
import { absentMembers, notesOf, type PlanSources, refuseOtherNamespace } from './plan-notes.ts';
import { applyWhatIf, parseWhatIf } from './what-if.ts';

export interface PlanInputOptions {
  readonly current?: string;
  readonly desired?: string;
  readonly file?: readonly string[];
  readonly set?: readonly string[];
  readonly assumptions?: string;
  readonly at?: string;
  readonly group?: readonly string[];
  readonly namespace?: string;
  /** The agent's namespace; default `usualAgentNamespace`, or on a cluster the namespace of its Lease. */
  readonly agentNamespace?: string;
  /** Without any group the call succeeds. */
  readonly mayHaveNoGroup?: boolean;
}

export interface PlanInputs {
  readonly input: PlanInput;
  /** Documents of our kinds next to the manifests, before and after. */
  readonly documents: { readonly current: readonly ObjectContent[]; readonly desired: readonly ObjectContent[] };
  /** Every desired document of our kinds, including --file; absent on a cluster. */
  readonly policies?: readonly ObjectContent[];
  /** Errors of the files; with any, the input must not be used. */
  readonly errors: readonly Finding[];
  /** The desired manifests with their places; absent on a cluster. */
  readonly manifests?: readonly Manifest[];
  /** Notes for the reader of the plan: StatefulSets in no group or in another namespace than their group. */
  readonly notes?: readonly string[];
}

/**
 * Reads every file of the options. With `--current` alone the desired manifests are the current ones, changed by `--set`. With `--desired`
 * alone nothing runs yet. Policies come from `--file` and from the desired manifests; StatefulSets without a policy are adopted by their
 * annotations.
 *
 * @throws Failure for unreadable files (10), invalid options (3), invalid assumptions (4), and unknown groups or zones (10).
 */
export async function readPlanInputs(context: CommandContext, options: PlanInputOptions): Promise<PlanInputs> {
  const { current, desired, agentNamespace = usualAgentNamespace } = options;
  if (current === undefined && desired === undefined) {
    throw usageFailure(
      'neither --current nor --desired is given',
      'name the running manifests with --current, and the desired ones with --desired',
    );
  }
  const changes = (options.set ?? []).map(parseWhatIf);
  const nowMs = options.at === undefined ? context.nowMs() : instantOf(options.at);
  const assumptions = await assumptionsOf(context, options.assumptions);
  const currentFiles = current === undefined ? [] : await readInput(current, context);
  const desiredFiles = desired === undefined ? currentFiles : await readInput(desired, context);
  const policyFiles = await readInputs(options.file ?? [], context);

  const before = readPolicyFiles(currentFiles, { agentNamespace });
  // Parsing takes a good part of the time of a large plan, so the same files are read once.
  const isSame = desiredFiles === currentFiles && policyFiles.length === 0;
  const after = isSame ? before : readPolicyFiles(unique([...desiredFiles, ...policyFiles]), { agentNamespace });
  const { bundle } = after.resolution;
  // The change may repair the current manifests, so only unreadable files are errors there.
  const errors = [...before.loaded.findings, ...after.findings].filter((finding) => finding.severity === 'error');
  const currentObjects = before.loaded.manifests.map(({ value }) => value);
  // Manifests among the policies, such as examples, are not desired.
  const desiredNames = new Set(desiredFiles.map(({ name }) => name));
  const desiredManifests = after.loaded.manifests.filter(({ file }) => desiredNames.has(file));
  refuseRepeats('--current', before.loaded.manifests);
  refuseRepeats(desired === undefined ? '--current' : '--desired', desiredManifests);
  const desiredObjects = desiredManifests.map(({ value }) => value);
  const documentsOf = (files: PolicyFiles, names: ReadonlySet<string>) =>
    files.loaded.documents.filter(({ file }) => names.has(file)).map(({ value }): ObjectContent => ({ ...value }));
  const groups = groupsToPlan(bundle.groups, before.resolution.bundle.groups);
  const sources: PlanSources = { groups, files: after, current: before.loaded.manifests, desired: desiredManifests };
  if (errors.length === 0 && changes.length > 0) refuseOtherNamespace(sources);
  const selected = errors.length > 0 ? groups : selectGroups(groups, options);
  const absent = absentMembers(sources, selected);
  return {
    documents: {
      current: documentsOf(before, new Set(currentFiles.map(({ name }) => name))),
      desired: documentsOf(after, desiredNames),
    },
    policies: after.loaded.documents.map(({ value }): ObjectContent => ({ ...value })),
    errors: [...new Map(errors.map((error) => [canonicalJson(error), error])).values()],
    manifests: desiredManifests,
    // With --group, other groups are left out on purpose.
    notes: (options.group ?? []).length > 0 ? [] : notesOf(sources, absent),
    input: {
      groups: selected,
      groupsBefore: before.resolution.bundle.groups,
      policies: bundle.policies,
      exceptions: bundle.exceptions,
      policyDigest: policyDigest(bundle),
      agentNamespace,
      current: currentObjects,
      // Manifests exported from a cluster name the running revision; a new template gets another one.
      desired: errors.length > 0 ? desiredObjects : withRevisions(applyWhatIf(desiredObjects, selected, changes), currentObjects),
      assumptions,
      absent,
      nowMs,
    },
  };
}

/** Refuses two versions of one object, often caused by naming a parent folder. */
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

export function instantOf(text: string): number {
  const ms = instantMs(text);
  if (ms === undefined)
    throw usageFailure(`--at ${text} is not an instant`, 'write an instant with an offset, such as 2026-01-15T10:00:00Z');
  return ms;
}

export async function assumptionsOf(context: CommandContext, path: string | undefined): Promise<Assumptions> {
  if (path === undefined) return defaultAssumptions;
  const [file, ...others] = await readInput(path, context);
  if (file === undefined || others.length > 0) throw usageFailure(`--assumptions ${path} is not one file`);
  return readAssumptions(file);
}

/** Returns each file once; a directory may hold both desired manifests and policies. */
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
  throw new Failure({
    exitCode: exitCodes.notFound,
    what: `there is no group${missing === undefined ? '' : ` ${missing}`}${namespace === undefined ? '' : ` in namespace ${namespace}`}`,
    why: groups.length === 0 ? 'no StatefulSet is adopted, and no policy defines a group' : `known are ${groups.map(fullName).join(', ')}`,
    todo:
      groups.length === 0
        ? 'name policies with -f, or label StatefulSets with rollout-group, or have groups proposed: kubectl rollout-group init --help'
        : 'name one of these',
  });
}

/** Reports whether `GROUP` or `NAMESPACE/GROUP` names the group. */
function isNamed(group: Pick<GroupDefinition, 'namespace' | 'name'>, name: string): boolean {
  return group.name === name || fullName(group) === name;
}

function fullName(group: Pick<GroupDefinition, 'namespace' | 'name'>): string {
  return `${group.namespace}/${group.name}`;
}

export interface LivePlanOptions extends PlanInputOptions {
  readonly live?: boolean;
  readonly allNamespaces?: boolean;
  /** Replaces the namespaces that the files name; empty for all. */
  readonly namespaces?: readonly string[];
}

/** Files as read, so that a saved plan can be checked without them. */
export interface GivenFiles {
  readonly manifests: readonly PolicyFile[];
  readonly policies: readonly PolicyFile[];
}

/** Reports whether the plan is on a cluster: with --live, or without --current and --desired. */
export function isLive({ live, current, desired }: LivePlanOptions): boolean {
  return live === true || (current === undefined && desired === undefined);
}
