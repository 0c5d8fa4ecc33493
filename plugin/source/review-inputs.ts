// Reads both sides of a review from the object database of Git: policies, manifests and policy tests of each environment.
import { objectKey } from '../../engine/observe/raw.ts';
import type { Plan } from '../../engine/plan/document.ts';
import type { PlanInput } from '../../engine/plan/plan.ts';
import type { Finding } from '../../policies/findings/finding.ts';
import { usualAgentNamespace } from '../../policies/objects/agent-deployment.ts';
import { defined } from '../../policies/values/defined.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { getOrCreate, keptByObject } from '../../policies/values/map.ts';
import { listed } from '../../policies/wording.ts';
import type { KnownTexts } from '../../policies/yaml/document.ts';
import { type EnvironmentReview, joinReviews, type SideTests } from '../../review/document.ts';
import type { CommandContext } from '../context.ts';
import { notFoundFailure } from '../failure.ts';
import { countCases, countCovered } from '../output/policy-tests.ts';
import type { Compute } from '../threads.ts';
import type { Environment } from './environments.ts';
import { readAhead, readGitPath } from './git.ts';
import type { InputFile } from './input.ts';
import { type FilePlanInputs, planInputsOf, readScenario } from './plan-inputs.ts';
import { located, locateIn } from './plan-notes.ts';
import { type RanTests, runTests } from './policy-tests.ts';
import type { Renderer } from './render.ts';

export interface ReviewOptions {
  readonly base: string;
  readonly head: string;
  readonly at?: string;
  readonly assumptions?: string;
  readonly agentNamespace?: string;
}

/** The environment as each side defines it. A side that does not define it uses the definition of the other side. */
export interface EnvironmentSides {
  readonly base: Environment;
  readonly head: Environment;
  /** True if only the base defines the environment. */
  readonly isRemoved: boolean;
}

/** The policies and manifests of an environment on both sides. */
interface EnvironmentFiles {
  readonly sides: EnvironmentSides;
  readonly current: ReadSide;
  readonly desired: ReadSide;
}

/** The documents of an environment on both sides, without errors. */
interface ReadEnvironment {
  readonly sides: EnvironmentSides;
  readonly inputs: FilePlanInputs;
  readonly tests: { readonly base: RanTests; readonly head: RanTests };
  readonly agentNamespaces: { readonly base: string; readonly head: string };
}

/** Reads every path of the environments at once. Reports nothing: the files of each environment are read again, from memory. */
export async function readAllAhead(context: CommandContext, all: readonly EnvironmentSides[], options: ReviewOptions): Promise<void> {
  const pathsOf = ({ policies, manifests, tests }: Environment): readonly string[] => [...policies, ...manifests, ...tests];
  // The second revision has most files of the first one, which are then not read again.
  for (const side of ['base', 'head'] as const) {
    const paths = [...new Set(all.flatMap((sides) => pathsOf(sides[side])))];
    await readAhead(options[side], paths, context).catch(() => undefined);
  }
}

/** Reads the files of one environment. Throws Failure for a path that neither revision has. */
export async function readFiles(renderer: Renderer, sides: EnvironmentSides, options: ReviewOptions): Promise<EnvironmentFiles> {
  const { name } = sides.head;
  const [current, desired] = await Promise.all([
    readSide(renderer, options.base, sides.base),
    readSide(renderer, options.head, sides.head),
  ]);
  refuseMissing(name, [current, desired], options);
  if (current.files.length + desired.files.length === 0) throw nothingRead(name, options);
  return { sides, current, desired };
}

/** Returns about how many groups the head has: the number of their documents. */
export function countGroups({ desired }: EnvironmentFiles): number {
  return desired.files.reduce((sum, { text }) => sum + (text.match(/^\s*["']?kind["']?\s*:\s*["']?RolloutGroup\b/gm)?.length ?? 0), 0);
}

/** Reads the documents of one environment. Returns the errors of the files instead if a side has errors. */
export async function readEnvironment(
  context: CommandContext,
  { sides, current, desired }: EnvironmentFiles,
  { knownTexts, ...options }: ReviewOptions & { readonly knownTexts: KnownTexts },
): Promise<ReadEnvironment | { readonly errors: readonly Finding[] }> {
  const { name } = sides.head;
  const namespaceOf = (side: Environment): string => side.agentNamespace ?? options.agentNamespace ?? usualAgentNamespace;
  const namespaces = { base: namespaceOf(sides.base), head: namespaceOf(sides.head) };
  const assumptions = sides.head.assumptions === undefined ? options.assumptions : `git:${options.head}:${sides.head.assumptions}`;
  const scenario = await readScenario(context, { ...options, ...(assumptions === undefined ? {} : { assumptions }) });
  const inputs = planInputsOf({ current: current.files, desired: desired.files, policies: [] }, scenario, {
    current: options.base,
    desired: options.head,
    agentNamespace: namespaces.head,
    objectNamespaces: { current: sides.base.namespace, desired: sides.head.namespace },
    mayHaveNoGroup: true,
    knownTexts,
  });
  if ('errors' in inputs) return inputs;
  const [base, head] = await Promise.all([
    readTests(context, options.base, sides.base, { agentNamespace: namespaces.base, knownTexts }),
    readTests(context, options.head, sides.head, { agentNamespace: namespaces.head, knownTexts }),
  ]);
  refuseMissing(name, [base, head], options);
  return { sides, inputs, tests: { base, head }, agentNamespaces: namespaces };
}

/** Compares the policies and makes the plan of an environment, both with `compute`. Compares the groups in `partCount` parts. */
export async function reviewEnvironment(
  { sides, inputs, tests: { base, head }, agentNamespaces }: ReadEnvironment,
  compute: Compute,
  partCount: number,
): Promise<EnvironmentReview> {
  const { name, cluster, manifests } = sides.head;
  const { input } = inputs;
  const { current, desired, groups, groupsBefore = [], desiredGroups = groups } = input;
  const { policies, exceptions } = input;
  const old = input.before ?? input;
  const before = {
    bundle: { policies: old.policies, exceptions: old.exceptions, groups: groupsBefore },
    manifests: current,
    agentNamespace: agentNamespaces.base,
  };
  const after = { bundle: { policies, exceptions, groups: desiredGroups }, manifests: desired, agentNamespace: agentNamespaces.head };
  const tests = { cases: head.suites.flatMap(({ cases }) => cases), tests: [...head.tests, ...base.tests] };
  const parts = Array.from({ length: partCount }, (_, index) => ({ index, count: partCount }));
  // The plan takes longer if every group rolls, so it is first.
  const [planned, ...compared] = await Promise.all([
    compute('plan', input),
    ...parts.map((part) => compute('policies', { sides: { before, after }, nowMs: input.nowMs, tests, part })),
  ]);
  const notes = [...inputs.notes, ...memberlessNotes(input, manifests)];
  const plan: Plan = { ...located(planned, locateIn(inputs.manifests)), ...(notes.length > 0 && { notes }) };
  // An effect of a drop-in group has its place in a label or an annotation. An object of both revisions has the place of the head.
  const policiesOf = located(joinReviews(compared), locateIn([...inputs.manifestsBefore, ...inputs.manifests]));
  return withPaths<EnvironmentReview>({
    name,
    plan,
    policies: policiesOf,
    ...(cluster === undefined ? {} : { cluster }),
    ...(sides.isRemoved ? { isRemoved: true } : {}),
    ...(base.suites.length + head.suites.length === 0 ? {} : { tests: { base: sideTests(base), head: sideTests(head) } }),
  });
}

/** Returns a note on each group without a StatefulSet in the manifests. Its plan is empty, for example if a chart has another release. */
function memberlessNotes({ groups, current, desired, absent = [] }: PlanInput, manifests: readonly string[]): readonly string[] {
  if (manifests.length === 0) return [];
  const given = new Set([...current, ...desired].filter((one) => isRecord(one) && one['kind'] === 'StatefulSet').map(objectKey));
  return groups
    .filter(({ namespace, zones }) => zones.every(({ statefulSet }) => !given.has(`${namespace}/${statefulSet}`)))
    .filter(({ namespace, name }) => !absent.some((one) => one.namespace === namespace && one.group === name))
    .map(({ namespace, name, zones }) => {
      const names = listed(zones.slice(0, 3).map(({ statefulSet }) => statefulSet));
      return `${namespace}/${name} has no plan: the manifests contain no StatefulSet ${names}`;
    });
}

/** The paths of an environment that a revision has, and those that it lacks. */
interface FoundPaths {
  readonly present: readonly string[];
  readonly missing: readonly string[];
}

interface ReadSide extends FoundPaths {
  readonly files: readonly InputFile[];
}

/** Reads the policies and manifests of a side. A path that the revision lacks has no document: the change adds or removes it. */
async function readSide(renderer: Renderer, revision: string, environment: Environment): Promise<ReadSide> {
  const { policies, manifests } = environment;
  const paths = [...new Set([...policies, ...manifests])];
  const read = await Promise.all(paths.map((path) => renderer.read(revision, path, environment)));
  const files = read.flatMap((found) => found ?? []);
  return { files: [...new Map(files.map((file) => [file.name, file])).values()], ...foundPaths(paths, read) };
}

function foundPaths(paths: readonly string[], read: readonly unknown[]): FoundPaths {
  const missing = paths.filter((_, index) => read[index] === undefined);
  return { present: paths.filter((path) => !missing.includes(path)), missing };
}

/** Throws Failure for a path that neither revision has: it is misspelled, and the review would show no effect. */
function refuseMissing(name: string, sides: readonly FoundPaths[], { base, head }: ReviewOptions): void {
  const present = new Set(sides.flatMap((side) => side.present));
  const missing = sides.flatMap((side) => side.missing).find((path) => !present.has(path));
  if (missing === undefined) return;
  throw notFoundFailure(`neither ${base} nor ${head} has ${missing}, which the environment ${name} names`, {
    todo: 'write paths from the root of the repository',
  });
}

function nothingRead(name: string, { base, head }: ReviewOptions): Error {
  return notFoundFailure(`the environment ${name} has no document in ${base} and ${head}`, {
    why: 'neither revision has a .yaml, .yml or .json file in these directories',
    todo: 'write paths from the root of the repository',
  });
}

/** The results of policy tests by the arguments of the run. Environments with the same tests share them. */
const ranTests = keptByObject((_context: CommandContext) => new Map<string, Promise<RanTests>>());

/** Runs the policy tests of a side. Reads a path again only if it has a test, because tests read the files that they name. */
async function readTests(
  context: CommandContext,
  revision: string,
  { tests, policies, namespace }: Environment,
  { agentNamespace, knownTexts }: { readonly agentNamespace: string; readonly knownTexts: KnownTexts },
): Promise<RanTests & FoundPaths> {
  const paths = [...new Set([...tests, ...policies])];
  const found = await Promise.all(paths.map((path) => readGitPath(`git:${revision}:${path}`, context)));
  const isTest = ({ text }: InputFile): boolean => /kind["']?\s*:\s*["']?PolicyTest\b/.test(text);
  const withTests = paths.filter((_, index) => found[index]?.some(isTest)).map((path) => `git:${revision}:${path}`);
  const namespaces = { agentNamespace, ...defined({ objectNamespace: namespace }) };
  const ran =
    withTests.length === 0
      ? { tests: [], suites: [], coverage: [] }
      : await getOrCreate(ranTests(context), JSON.stringify([withTests, namespaces]), () =>
          runTests(withTests, context, { ...namespaces, knownTexts }),
        );
  return { ...ran, ...foundPaths(paths, found) };
}

function sideTests({ suites, coverage }: RanTests): SideTests {
  const failures = suites.flatMap(({ file, name: test, cases }) =>
    cases
      .filter(({ passed }) => !passed)
      .map(({ name, problems, source: { line = 1, column = 1 } }) => ({ file, line, column, test, case: name, problems })),
  );
  return { ...countCases(suites), coverage: countCovered(coverage), failures };
}

/** Returns the value with paths of the repository instead of names such as `git:main:policies/ingester.yaml`. */
function withPaths<Value>(value: Value): Value;
function withPaths(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withPaths);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [
      key,
      key === 'file' && typeof part === 'string' ? part.replace(/^git:[^:]*:/, '') : withPaths(part),
    ]),
  );
}
