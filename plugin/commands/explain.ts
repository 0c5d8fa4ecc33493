// The verb explain: shows the next decision about one group, rule by rule.
import { decideGroup } from '../../engine/decide/decide.ts';
import { readPlanSnapshots, requestedWorld } from '../../engine/plan/world.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, notFoundFailure } from '../failure.ts';
import { writeErrors } from '../output/findings.ts';
import { writeResult } from '../output/formats.ts';
import { type FilePlanInputs, type InputErrors, isLive, type PlanInputOptions, readPlanInputs } from '../source/plan-inputs.ts';
import { located, locateIn } from '../source/plan-notes.ts';
import type { LiveExplainOptions } from './explain-live.ts';

export type ExplainOptions = Omit<PlanInputOptions, 'group'> & LiveExplainOptions;

/** Explains a denial if the argument is `decision/ID`. Else explains a group, from manifests if flags name them, or from the cluster. */
export async function run(context: CommandContext, options: ExplainOptions): Promise<ExitCode> {
  const { current, desired, filename: file = [], set = [], at } = options;
  if (options.group.startsWith('decision/')) {
    const { decisionNamed, explainDecision } = await import('./explain-live.ts');
    const id = decisionNamed(options.group);
    if (id !== undefined) return explainDecision(context, id, options);
  }
  const isRequested = current !== undefined || desired !== undefined || file.length > 0 || set.length > 0 || at !== undefined;
  if (!isRequested) return (await import('./explain-live.ts')).explainLive(context, options);
  const planOptions = { ...options, group: [options.group] };
  if (!isLive(planOptions)) return explainRequested(context, options, await readPlanInputs(context, planOptions));
  const [{ withCluster }, { readLiveInputs }] = await Promise.all([import('../connection.ts'), import('../source/cluster/live-plan.ts')]);
  return withCluster(context, planOptions, 'read', async (cluster) => {
    const inputs = await readLiveInputs(context, planOptions, cluster);
    return explainRequested(context, options, 'errors' in inputs ? inputs : { ...inputs, manifests: [] });
  });
}

/** Explains the state of the manifests, or that of the cluster after a change, as the verb plan reads it. */
async function explainRequested(
  context: CommandContext,
  { group: name, ...options }: ExplainOptions,
  inputs: Pick<FilePlanInputs, 'input' | 'manifests' | 'notes'> | InputErrors,
): Promise<ExitCode> {
  if ('errors' in inputs) return writeErrors(context, inputs.errors);
  const { input, manifests } = inputs;
  const [group, ...others] = input.groups;
  if (group === undefined || others.length > 0) {
    throw notFoundFailure(`${name} matches ${others.length + 1} groups`, {
      why: input.groups.map((one) => `${one.namespace}/${one.name}`).join(', '),
      todo: 'give the name with its namespace',
    });
  }
  const snapshots = readPlanSnapshots(input);
  const { world, refused, group: desired } = requestedWorld(input, snapshots, group, { hasMetrics: false });
  const decision = located(decideGroup(world.snapshot, desired), locateIn(manifests));
  if (options.output === 'table') {
    const nowMs = snapshots.usesCalendar ? snapshots.nowMs : undefined;
    const { renderExplanation } = await import('../output/explain.ts');
    context.stdout.write(renderExplanation({ decision, refused, nowMs, showsAllRules: options.allRules === true }, context.stdout));
  } else await writeResult(context, options.output, { kind: 'Explanation', decision, refused });
  const source = options.current ?? options.desired;
  const ofSource = source === undefined ? '' : ` --current ${source}`;
  if (decision.outcome === 'act') suggestNext(context, `plan${ofSource} --group ${decision.namespace}/${decision.group}`);
  return exitCodes.done;
}
