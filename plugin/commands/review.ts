// The verb review: shows what a change between two revisions does to rollouts and to the decisions of the policies.

import { mkdirSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { stringify } from 'yaml';
import { contextOf } from '../../engine/context.ts';
import { approvedPlanAnnotation } from '../../engine/observe/objects.ts';
import type { Plan } from '../../engine/plan/document.ts';
import type { PlanInput } from '../../engine/plan/plan.ts';
import { approvedPlans } from '../../engine/run/approved-plan.ts';
import { emptySnapshot } from '../../engine/snapshot.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import type { KnownTexts } from '../../policies/yaml/document.ts';
import { countEffects, type EnvironmentReview, type Review } from '../../review/document.ts';
import { setEngineFlags } from '../../simulation/engine-flags.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, mostSevere, notFoundFailure, unwritable, usageFailure } from '../failure.ts';
import { writeErrors, writeFindings } from '../output/findings.ts';
import { writeDocument } from '../output/formats.ts';
import { type Environment, environmentsFile, readEnvironments } from '../source/environments.ts';
import { Renderer } from '../source/render.ts';
import {
  countGroups,
  type EnvironmentSides,
  type ReviewOptions as InputOptions,
  readAllAhead,
  readEnvironment,
  readFiles,
  reviewEnvironment,
} from '../source/review-inputs.ts';
import { computeHere, startThreads, type Threads } from '../threads.ts';

export type ReviewFormat = 'table' | 'json' | 'yaml' | 'markdown' | 'sarif' | 'junit' | 'github';

export interface ReviewOptions extends InputOptions {
  readonly policies?: readonly string[];
  readonly manifests?: readonly string[];
  readonly tests?: readonly string[];
  readonly environment?: readonly string[];
  readonly failOn?: readonly string[];
  readonly out?: string;
  readonly output: ReviewFormat;
}

/** The minimum number of groups for which threads save time. A thread needs as long to start as the review of a few groups takes. */
const groupsForThreads = 10;

/** Each thread compares some groups, so that no thread waits long for the last one. Each part gets a copy of all manifests. */
const partsOfPolicies = 6;

/** The plan, and the comparisons of the policies. */
const tasksOfEnvironment = 1 + partsOfPolicies;

export async function run(context: CommandContext, options: ReviewOptions): Promise<ExitCode> {
  setEngineFlags();
  const reviews: Promise<EnvironmentReview>[] = [];
  const approved: (readonly [name: string, documents: readonly object[]])[] = [];
  const renderer = new Renderer(context);
  const knownTexts: KnownTexts = new Map();
  let threads: Threads | undefined;
  let environments: readonly EnvironmentReview[];
  try {
    const all = await environmentsOf(context, options);
    await readAllAhead(context, all, options);
    for (const sides of all) {
      const files = await readFiles(renderer, sides, options);
      // The threads start while this thread reads documents.
      if (countGroups(files) >= groupsForThreads) threads ??= startThreads(tasksOfEnvironment * all.length, ['plan', 'policies'], 1);
      const one = await readEnvironment(context, files, { ...options, knownTexts });
      if ('errors' in one) return writeErrors(context, one.errors);
      const { input } = one.inputs;
      if (options.out !== undefined) approved.push([sides.head.name, approvedDocuments(input)]);
      // The threads compute while this thread reads the next environment.
      const review = reviewEnvironment(one, threads?.compute ?? computeHere, threads === undefined ? 1 : partsOfPolicies);
      // A failure is thrown after the last environment is read.
      review.catch(() => undefined);
      reviews.push(review);
    }
    await threads?.help();
    environments = await Promise.all(reviews);
  } finally {
    await Promise.all([renderer.close(), threads?.end()]);
  }
  if (options.out !== undefined) for (const [name, documents] of approved) writeApprovedPlans(options.out, name, documents, context.cwd);
  const review: Review = { base: options.base, head: options.head, environments };
  const exitCode = exitCodeOf(review, options.failOn ?? []);
  await writeReview(context, options, { review, exitCode });
  return exitCode;
}

/** Returns the environments of both sides, paired by name; one environment from the flags if there is no file or if flags name directories. */
async function environmentsOf(context: CommandContext, options: ReviewOptions): Promise<readonly EnvironmentSides[]> {
  const { policies = [], manifests = [], tests = [], base, head, environment: names = [] } = options;
  if (policies.length + manifests.length > 0) {
    const one: Environment = { name: 'default', policies, manifests, tests, values: [] };
    return [{ base: one, head: one, isRemoved: false }];
  }
  const [before = [], after = []] = await Promise.all([base, head].map((revision) => readEnvironments(revision, context)));
  const all = [...new Set([...after, ...before].map(({ name }) => name))];
  if (all.length === 0) {
    throw usageFailure(
      'no directory is given',
      `name directories with --policies and --manifests, or write ${environmentsFile} into the root of the repository`,
    );
  }
  const missing = names.find((name) => !all.includes(name));
  if (missing !== undefined) throw notFoundFailure(`there is no environment ${missing}`, { why: `known are ${all.join(', ')}` });
  return all
    .filter((name) => names.length === 0 || names.includes(name))
    .flatMap((name) => {
      const [old, next] = [before, after].map((list) => list.find((one) => one.name === name));
      const either = next ?? old;
      return either === undefined ? [] : [{ base: old ?? either, head: next ?? either, isRemoved: next === undefined }];
    });
}

/** Returns the most severe exit code of the environments: blocked, failed tests, and what --fail-on names. */
export function exitCodeOf({ environments }: Pick<Review, 'environments'>, failOn: readonly string[]): ExitCode {
  const codes = environments.flatMap(({ plan, policies, tests, isRemoved }): readonly ExitCode[] => [
    ...(plan.outcome === 'blocked' ? [exitCodes.refused] : []),
    ...((tests?.head.failed ?? 0) > 0 ? [exitCodes.findings] : []),
    // Later reviews would not show what is loosened in a removed environment.
    ...(failOn.includes('loosened') && (isRemoved === true || countEffects(policies, 'loosened') > 0) ? [exitCodes.findings] : []),
    ...(failOn.includes('approval') && plan.groups.some(({ totals }) => totals.approvals > 0) ? [exitCodes.waiting] : []),
  ]);
  return mostSevere(codes);
}

/** Returns the outcome of an environment for its commit status: that of the exit code, else that of the plans that the review shows. */
function outcomeOf(one: EnvironmentReview, failOn: readonly string[], ofPlans: Plan['outcome']): Plan['outcome'] {
  const exitCode = exitCodeOf({ environments: [one] }, failOn);
  if (exitCode === exitCodes.waiting) return 'waits';
  return exitCode === exitCodes.done ? ofPlans : 'blocked';
}

async function writeReview(
  { stdout }: CommandContext,
  { output, failOn = [] }: ReviewOptions,
  { review, exitCode }: { readonly review: Review; readonly exitCode: ExitCode },
): Promise<void> {
  switch (output) {
    case 'json':
    case 'yaml':
      return writeDocument(stdout, output, { kind: 'Review', exitCode, ...review });
    case 'table':
      return stdout.write((await import('../output/review/table.ts')).renderReviewTable(review, stdout));
    case 'markdown': {
      const { renderReviewMarkdown } = await import('../output/review/markdown.ts');
      const { sha256 } = await import('../../policies/values/hash.ts');
      const { worstOutcome } = await import('../output/plan/markdown.ts');
      const { plannedGroups } = await import('../output/review/review-text.ts');
      const outcomes = review.environments.map((one) => {
        // A group that waits without this change, for example for a missing ReplicaTemplate, is not shown.
        return outcomeOf(one, failOn, worstOutcome({ outcome: 'unchanged', groups: plannedGroups(one.plan) }));
      });
      return stdout.write(renderReviewMarkdown(review, { digest: sha256(canonicalJson(review)), outcomes }));
    }
    case 'sarif':
    case 'junit':
    case 'github': {
      const { reviewFindings } = await import('../output/review/findings.ts');
      const findings = reviewFindings(review);
      const files = [...new Set(findings.map(({ file }) => file))].filter((file) => file !== '');
      return writeFindings(stdout, output, { findings, files, failsFrom: failOn.includes('loosened') ? 'warning' : 'error', exitCode });
    }
  }
}

/** Returns one StatefulSet document for each member of a group: its name, and the annotation. Groups without a change keep their annotation. */
function approvedDocuments(input: PlanInput): readonly object[] {
  const { policies, exceptions, agentNamespace } = input;
  const groups = input.desiredGroups ?? input.groups;
  const snapshot = {
    ...emptySnapshot(input.nowMs),
    groups,
    policies,
    exceptions,
    ...(agentNamespace === undefined ? {} : { agentNamespace }),
  };
  return groups
    .flatMap((group) => [...approvedPlans(contextOf(snapshot, group), input.written ?? input.desired)])
    .map(([key, text]) => {
      const [namespace, name] = key.split('/');
      return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name, namespace, annotations: { [approvedPlanAnnotation]: text } } };
    });
}

/** Writes `ENVIRONMENT.yaml` into the directory, and creates the directory. A file without documents shows that nothing rolls. */
function writeApprovedPlans(directory: string, environment: string, documents: readonly object[], cwd: string): void {
  const path = resolve(cwd, directory, `${environment}.yaml`);
  try {
    mkdirSync(resolve(cwd, directory), { recursive: true });
    writeFileSync(path, documents.map((document) => stringify(document, { lineWidth: 0 })).join('---\n'));
  } catch (error) {
    throw unwritable(path, error);
  }
}
