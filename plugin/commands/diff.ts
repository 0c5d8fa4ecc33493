// The verb diff: shows the differences by zone with their effects. The exit code is 1 if there are differences.
import type { ObjectContent } from '../../engine/diff/field-diff.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import { defined } from '../../policies/values/defined.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import type { ConnectionFlags } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import {
  comparedPairs,
  type Difference,
  type GroupDifference,
  groupDifferences,
  isDifferent,
  memberNames,
  nameOf,
  objectDifferences,
} from '../difference.ts';
import { type ExitCode, exitCodes, usageFailure } from '../failure.ts';
import { writeErrors } from '../output/findings.ts';
import { withInstants, writeDocument } from '../output/formats.ts';
import { isLive, isPartial, type LivePlanOptions, type PlanInputs, readPlanInputs } from '../source/plan-inputs.ts';
import { absenceNotes } from '../source/plan-notes.ts';

export interface DiffOptions extends LivePlanOptions, ConnectionFlags {
  readonly zones?: boolean;
  /** `live`, or the source of the running state. */
  readonly against?: string;
  readonly output: 'table' | 'json' | 'yaml' | 'markdown' | 'external';
}

export async function run(context: CommandContext, given: DiffOptions): Promise<ExitCode> {
  const options = withAgainst({ ...given, mayHaveNoGroup: given.zones !== true });
  if (!isLive(options)) {
    const inputs = await readPlanInputs(context, options);
    if ('errors' in inputs) return writeErrors(context, inputs.errors);
    for (const note of absenceNotes(inputs.input.absent)) context.stderr.write(`note: ${note}\n`);
    return show(context, options, inputs);
  }
  if (options.current !== undefined) throw usageFailure('--live and --current exclude each other', 'give only one of them');
  const [{ withCluster }, { readLiveInputs }, { refusalNotes }] = await Promise.all([
    import('../connection.ts'),
    import('../source/cluster/live-plan.ts'),
    import('../source/cluster/refusal.ts'),
  ]);
  const inputs = await withCluster(context, options, 'read', (cluster) => readLiveInputs(context, options, cluster));
  for (const note of inputs.notes) context.stderr.write(`note: ${note}\n`);
  if ('errors' in inputs) return writeErrors(context, inputs.errors);
  for (const note of refusalNotes(inputs)) context.stderr.write(`note: ${note}\n`);
  // Without a requested change, --zones compares the running zones.
  const hasRequest = inputs.desiredObjects.length > 0 || (options.set ?? []).length > 0;
  return show(context, options, hasRequest ? inputs : { ...inputs, input: { ...inputs.input, desired: inputs.input.current } });
}

function withAgainst(options: DiffOptions): DiffOptions {
  const { against, current } = options;
  if (against === undefined) return options;
  if (current !== undefined) throw usageFailure('--against and --current exclude each other', 'give only one of them');
  return against === 'live' ? { ...options, live: true } : { ...options, current: against };
}

async function show(context: CommandContext, options: DiffOptions, inputs: PlanInputs): Promise<ExitCode> {
  if (options.zones === true) return showSiblings(context, options, inputs);
  if (options.output === 'external') {
    const { externalDiff } = await import('../output/diff.ts');
    return externalDiff(context, comparedPairs(...objectsOf(inputs, options), scopeOf(inputs, options)));
  }
  const plan = planGroups(inputs.input);
  const objects = objectDifferences(...objectsOf(inputs, options), scopeOf(inputs, options));
  const groups = groupDifferences(plan, inputs.input).filter((group) => isPartial(options) || isConcerned(group, inputs.input.written));
  return showDifference(context, options, { groups, objects, ...defined({ denied: plan.denied }) });
}

/**
 * Reports whether the change concerns the group: its objects differ, or the manifests for a cluster contain one of them. Without manifests,
 * every group is concerned.
 */
function isConcerned({ namespace, group, parts, kept, zones }: GroupDifference, written: readonly unknown[] = []): boolean {
  const names = [`RolloutGroup ${namespace}/${group}`, ...zones.map(({ statefulSet }) => `StatefulSet ${namespace}/${statefulSet}`)];
  const hasObject = written.some((object) => isRecord(object) && names.includes(nameOf(object)));
  return written.length === 0 || hasObject || parts.length > 0 || kept !== undefined;
}

/** Returns the objects before and after the change. With --group: the groups and their members, and on a cluster also all other kinds. */
function objectsOf(
  { input: { groups, current, desired }, documents }: PlanInputs,
  options: DiffOptions,
): [readonly ObjectContent[], readonly ObjectContent[]] {
  const names = new Set([...memberNames(groups), ...groups.map(({ namespace, name }) => `RolloutGroup ${namespace}/${name}`)]);
  const isWanted = (object: ObjectContent): boolean =>
    !isPartial(options) || names.has(nameOf(object)) || (isLive(options) && !/^(?:StatefulSet|RolloutGroup) /.test(nameOf(object)));
  return [
    [...documents.current, ...current.filter(isRecord)].filter(isWanted),
    [...documents.desired, ...desired.filter(isRecord)].filter(isWanted),
  ];
}

function scopeOf({ input }: PlanInputs, { namespace }: DiffOptions) {
  return { members: memberNames(input.groups), namespace };
}

async function showDifference({ stdout }: CommandContext, { output }: DiffOptions, difference: Difference): Promise<ExitCode> {
  if (output === 'json' || output === 'yaml') await writeDocument(stdout, output, { kind: 'Difference', ...dated(difference) });
  else {
    const { renderDifference } = await import('../output/diff.ts');
    await writeText(stdout, output, (look) => renderDifference(difference, look));
  }
  return isDifferent(difference) ? exitCodes.differences : exitCodes.done;
}

/** Converts the times of writes to instants. The compared values stay, also if a manifest has a field whose name ends in `Ms`. */
function dated({ groups, objects, ...rest }: Difference): object {
  const inChange = <Change extends { readonly writers?: readonly object[] }>(change: Change): object =>
    change.writers === undefined ? change : { ...change, writers: change.writers.map(withInstants) };
  return {
    groups: groups.map((group) => ({
      ...group,
      parts: group.parts.map((part) => ({ ...part, changes: part.changes.map(inChange) })),
      ...defined({ kept: group.kept?.map(withInstants) }),
    })),
    objects: objects.map((object) => ({ ...object, changes: object.changes.map(inChange) })),
    ...rest,
  };
}

async function showSiblings({ stdout }: CommandContext, { output }: DiffOptions, { input }: PlanInputs): Promise<ExitCode> {
  const [{ siblingDifferences }, { renderSiblings }] = await Promise.all([import('../difference.ts'), import('../output/diff.ts')]);
  const groups = siblingDifferences(input.desired.filter(isRecord), input.groups);
  if (output === 'json' || output === 'yaml') await writeDocument(stdout, output, { kind: 'SiblingDifference', groups });
  else await writeText(stdout, output, (look) => renderSiblings(groups, look));
  return groups.some(({ siblings, missing }) => siblings.length + missing.length > 0) ? exitCodes.differences : exitCodes.done;
}

type Stdout = CommandContext['stdout'];

/** Writes the text; in Markdown as a code block of the language diff, so that the signs are coloured. */
async function writeText(stdout: Stdout, output: DiffOptions['output'], render: (look: Stdout) => string): Promise<void> {
  if (output !== 'markdown') return stdout.write(render(stdout));
  const { markdownBlock } = await import('../output/markdown.ts');
  const plain: Stdout = { ...stdout, columns: undefined, paint: (_style, text) => text };
  stdout.write(`${markdownBlock(render(plain), 'diff')}\n`);
}
