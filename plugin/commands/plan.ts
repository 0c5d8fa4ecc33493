// The verb plan: shows the rollout plan in the requested format and returns an exit code for pipelines.
import type { Plan } from '../../engine/plan/document.ts';
import { planGroups } from '../../engine/plan/plan.ts';
import { counted } from '../../policies/wording.ts';
import type { ConnectionFlags } from '../connection.ts';
import { type CommandContext, type OutputStream, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, mostSevere, usageFailure } from '../failure.ts';
import { writeErrors } from '../output/findings.ts';
import { writeDocument } from '../output/formats.ts';
import { isLive, type LivePlanOptions, type PlanInputOptions, readPlanInputs } from '../source/plan-inputs.ts';
import { located, locateIn } from '../source/plan-notes.ts';
import { shortDigest, writePlanFile } from '../source/saved-plan.ts';

export type PlanFormat = 'table' | 'wide' | 'json' | 'yaml' | 'markdown' | 'html';

export interface PlanOptions extends LivePlanOptions, ConnectionFlags {
  readonly fromReport?: string;
  readonly out?: string;
  readonly detailedExitcode?: boolean;
  readonly output: PlanFormat;
}

export async function run(context: CommandContext, options: PlanOptions): Promise<ExitCode> {
  if (isLive(options)) return runLive(context, options);
  const inputs = await readPlanInputs(context, options);
  if ('errors' in inputs) return writeErrors(context, inputs.errors);
  for (const note of inputs.notes) context.stderr.write(`note: ${note}\n`);
  const plan = located(planGroups(inputs.input), locateIn(inputs.manifests));
  if (options.out !== undefined) writePlanFile(plan, options.out, context.cwd);
  return showPlan(context, options, plan);
}

/** Plans against the cluster. A saved plan records the objects on which it depends, so that `apply` can compare them. */
async function runLive(context: CommandContext, options: PlanOptions): Promise<ExitCode> {
  if (options.current !== undefined) throw usageFailure('--live and --current exclude each other', 'give only one of them');
  if (options.out !== undefined && (options.set ?? []).length > 0) {
    throw usageFailure('a plan of the cluster with --set cannot be saved', 'put the change into manifests to apply it');
  }
  const [{ withCluster }, { readAndPlan, refuseSecrets, savedOf }, { refusalNotes }] = await Promise.all([
    import('../connection.ts'),
    import('../source/cluster/live-plan.ts'),
    import('../source/cluster/refusal.ts'),
  ]);
  return withCluster(context, options, 'read', async (cluster) => {
    const planned = await readAndPlan(context, options, cluster);
    if ('errors' in planned) return writeErrors(context, planned.errors);
    const notes = [...planned.notes, ...refusalNotes(planned)];
    for (const note of notes) context.stderr.write(`note: ${note}\n`);
    if (options.out !== undefined) {
      refuseSecrets(planned);
      const saved = await savedOf(cluster, planned, context.nowMs());
      writePlanFile(saved, options.out, context.cwd);
      context.stderr.write(
        `saved ${options.out} (sha256 ${shortDigest(saved.metadata.digest)}), valid until one of ${counted(saved.basis.length, 'object')} changes\n`,
      );
    }
    return showPlan(context, options, notes.length === 0 ? planned.plan : { ...planned.plan, notes });
  });
}

async function showPlan(context: CommandContext, options: PlanOptions, plan: Plan): Promise<ExitCode> {
  await writePlan(context.stdout, options.output, plan);
  if (isLive(options) && options.out !== undefined && plan.outcome !== 'blocked') suggestNext(context, `apply ${options.out}`);
  else suggest(context, options, plan);
  return exitCodeOf(plan, options.detailedExitcode === true);
}

/** Writes the plan. Loads only the requested format. */
export async function writePlan(stream: OutputStream, format: PlanFormat, plan: Plan): Promise<void> {
  switch (format) {
    case 'table':
    case 'wide': {
      const { renderPlanTable } = await import('../output/plan/table.ts');
      return stream.write(renderPlanTable(plan, { ...stream, isWide: format === 'wide' }));
    }
    case 'json':
    case 'yaml':
      return writeDocument(stream, format, { ...plan });
    case 'markdown':
      return stream.write((await import('../output/plan/markdown.ts')).renderPlanMarkdown(plan));
    case 'html':
      return stream.write((await import('../output/plan/html.ts')).renderPlanHtml(plan));
  }
}

/** Returns the exit code. A blocked plan fails. A plan that waits does not fail. */
export function exitCodeOf({ outcome: ofPlan, groups }: Pick<Plan, 'outcome' | 'groups'>, isDetailed: boolean): ExitCode {
  return mostSevere(
    // Policies can change although no group changes.
    [ofPlan, ...groups.map(({ outcome }) => outcome)].map((outcome) => {
      if (outcome === 'blocked') return exitCodes.refused;
      return isDetailed && outcome !== 'unchanged' ? exitCodes.changes : exitCodes.done;
    }),
  );
}

function suggest(context: CommandContext, options: PlanOptions, plan: Plan): void {
  if (options.output !== 'table' && options.output !== 'wide') return;
  const command = (...words: readonly string[]): string => [words[0], ...inputWords(options), ...words.slice(1)].join(' ');
  const stopped = plan.groups.find((group) => group.outcome === 'blocked' || group.outcome === 'waits');
  if (plan.outcome === 'unchanged') suggestNext(context, command('plan', '--set image=...'));
  else if (stopped !== undefined) suggestNext(context, command(`explain ${stopped.namespace}/${stopped.group}`));
  else {
    // `simulate` reads only files.
    const simulated = isLive(options) ? [] : [command('simulate')];
    suggestNext(context, ...simulated, command('plan', '-o html > plan.html'));
  }
}

/** Returns the flags that name the same inputs, for a suggested command. */
export function inputWords({
  current,
  desired,
  filename,
  set,
  live,
  fromReport,
}: PlanInputOptions & { readonly live?: boolean; readonly fromReport?: string }): readonly string[] {
  return [
    ...(live === true ? ['--live'] : []),
    ...flagWords('--from-report', fromReport),
    ...[...flagWords('--current', current), ...flagWords('--desired', desired)],
    ...[...flagWords('-f', filename), ...flagWords('--set', set)],
  ];
}

/** Returns the words of a flag, once for each value, quoted for a shell where necessary. */
export function flagWords(flag: string, values: string | number | undefined | readonly string[] = []): readonly string[] {
  const quoted = [values].flat().map((value) => {
    const text = String(value);
    return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
  });
  return quoted.flatMap((value) => [flag, value]);
}
