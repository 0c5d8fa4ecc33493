// Finds policy tests in sources, reads the files that they name, and runs them.
import { posix } from 'node:path';
import { type CaseResult, coverageOf, type RuleCoverage, runPolicyTest } from '../../engine/policy-test/policy-test.ts';
import type { Source } from '../../policies/definition.ts';
import { type Finding, renderFinding, sourceOf } from '../../policies/findings/finding.ts';
import { type Loaded, loadPolicies } from '../../policies/load.ts';
import { ofKind } from '../../policies/resolve/resolve.ts';
import type { PolicyTest } from '../../policies/schema/kinds.ts';
import { defined } from '../../policies/values/defined.ts';
import { groupBy } from '../../policies/values/group-by.ts';
import type { KnownTexts } from '../../policies/yaml/document.ts';
import { Failure } from '../failure.ts';
import type { PlacedCase, TestSuite } from '../output/policy-tests.ts';
import { type PolicyFiles, readPolicyFiles } from '../policy-files.ts';
import { type InputAccess, type InputFile, readInputs } from './input.ts';

interface PolicyTestFile {
  readonly test: Loaded<'PolicyTest'>;
  /** The sources that the test names in `files`, relative to the current directory. */
  readonly sources: readonly string[];
  /** The content of the sources, or one sentence if they cannot be read. */
  readonly content: PolicyFiles | string;
}

interface PolicyTests {
  readonly tests: readonly PolicyTestFile[];
  /** The errors of files with a PolicyTest. Errors of other files count only if a test names the file. */
  readonly errors: readonly Finding[];
}

interface TestOptions {
  readonly agentNamespace: string;
  /** The namespace of objects without one; default `default`. */
  readonly objectNamespace?: string;
  readonly knownTexts?: KnownTexts;
}

/** Finds and reads all tests. Tests with the same list of files share one read. */
export async function readPolicyTests(specs: readonly string[], access: InputAccess, options: TestOptions): Promise<PolicyTests> {
  const inputs = (await readInputs(specs, access)).filter(({ text }) => /^\s*["']?kind["']?\s*:\s*["']?PolicyTest\b/m.test(text));
  const { documents, findings } = loadPolicies(inputs, defined({ knownTexts: options.knownTexts }));
  const contents = new Map<string, Promise<PolicyFiles | string>>();
  const tests: PolicyTestFile[] = [];
  for (const test of ofKind(documents, 'PolicyTest')) {
    const sources = test.value.spec.files.map((path) => relativeTo(test.file, path));
    const key = sources.join('\0');
    const content = contents.get(key) ?? readContent(sources, access, options);
    contents.set(key, content);
    tests.push({ test, sources, content: await content });
  }
  return { tests, errors: findings.filter(({ severity }) => severity === 'error') };
}

/** Resolves `path`, which is relative to the folder of `file`. A path in a revision stays in that revision. */
function relativeTo(file: string, path: string): string {
  const [, revision = '', name = file] = /^(git:[^:]*:)(.*)$/s.exec(file) ?? [];
  if (revision === '' && posix.isAbsolute(path)) return path;
  return `${revision}${posix.join(posix.dirname(name), path)}`;
}

async function readContent(sources: readonly string[], access: InputAccess, options: TestOptions): Promise<PolicyFiles | string> {
  try {
    const files: readonly InputFile[] = await readInputs(sources, access);
    return readPolicyFiles(files, options);
  } catch (error) {
    if (error instanceof Failure) return error.message;
    throw error;
  }
}

export function suitesWithCases(found: PolicyTests, ran: readonly { readonly suite: TestSuite }[]): readonly TestSuite[] {
  return [...unreadable(found), ...ran.map(({ suite }) => suite).filter(({ cases }) => cases.length > 0)];
}

/** Runs every policy test in the sources, for verbs that show the results of tests among others. */
export async function runTests(specs: readonly string[], access: InputAccess, options: TestOptions): Promise<RanTests> {
  const found = await readPolicyTests(specs, access, options);
  const ran = found.tests.map((one) => ({ ...one, suite: suiteOf(one, options.agentNamespace) }));
  return { tests: found.tests.map(({ test }) => test.value), suites: suitesWithCases(found, ran), coverage: coverageIn(ran) };
}

export interface RanTests {
  readonly tests: readonly PolicyTest[];
  readonly suites: readonly TestSuite[];
  readonly coverage: readonly RuleCoverage[];
}

/** Merges the coverage of tests of the same policies: a rule may block in a case of one test and pass in a case of another. */
export function coverageIn(ran: readonly (PolicyTestFile & { readonly suite: TestSuite })[]): readonly RuleCoverage[] {
  const bySources = new Map<string, { readonly file: PolicyTestFile; readonly cases: CaseResult[] }>();
  for (const { suite, ...file } of ran) {
    const key = [...file.sources].sort().join('\0');
    const group = bySources.get(key) ?? { file, cases: [] };
    group.cases.push(...suite.cases);
    bySources.set(key, group);
  }
  return [...bySources.values()].flatMap(({ file, cases }) =>
    typeof file.content === 'string' ? [] : coverageOf(file.content.resolution.bundle, cases),
  );
}

/** Runs the cases of a test, and returns those whose name contains `only`. A later case depends on the clock of the others. */
export function suiteOf({ test, content }: PolicyTestFile, agentNamespace: string, only = ''): TestSuite {
  const { file, name } = test;
  const named = sourceOf(test.place(['spec', 'files']));
  if (typeof content === 'string') return { file, name, cases: [failedCase('the files can be read', [content], named)] };
  const errors = content.findings.filter(({ severity }) => severity === 'error').map((one) => renderFinding(one));
  if (errors.length > 0) return { file, name, cases: [failedCase('the files have no errors', errors, named)] };
  const { resolution, loaded } = content;
  const input = { bundle: resolution.bundle, manifests: loaded.manifests.map(({ value }) => value), agentNamespace };
  const cases = runPolicyTest(test.value, input).map((one, index) => ({ ...one, source: sourceOf(test.place(['spec', 'cases', index])) }));
  return { file, name, cases: cases.filter((one) => one.name.includes(only)) };
}

/** Returns a suite with one failed case for each file with errors, because a PolicyTest with errors does not run. */
function unreadable({ errors }: PolicyTests): readonly TestSuite[] {
  return [...groupBy(errors, ({ file }) => file)].map(([file, own]) => {
    const texts = own.map((one) => renderFinding(one));
    return { file, name: file, cases: [failedCase('the file has no errors', texts, sourceOf(own[0]))] };
  });
}

function failedCase(name: string, problems: readonly string[], source: Source): PlacedCase {
  return { name, passed: false, expected: '', decision: '', rules: [], message: '', results: [], problems, source };
}
