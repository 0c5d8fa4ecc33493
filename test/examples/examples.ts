// The examples as tests read them: their files, their PolicyTests, and what the files of a PolicyTest say together.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type CaseResult, runPolicyTest } from '../../engine/policy-test/policy-test.ts';
import { adoptGroups } from '../../policies/adopt/adopt.ts';
import type { PolicyBundle } from '../../policies/definition.ts';
import { type Loaded, type LoadedDocument, type LoadResult, loadPolicies, type PolicyFile } from '../../policies/load.ts';
import { ofKind, resolvePolicies, statefulSetsOf } from '../../policies/resolve/resolve.ts';

/** Without PolicyTests, which know nothing of a partition that the agent holds; `test/policies/adopt/converted-examples.test.ts` is about it. */
const untested = 'phased-rollout';

/** The folders of examples, by name. */
export const exampleNames: readonly string[] = readdirSync('examples', { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== untested)
  .map((entry) => entry.name)
  .sort();

/** The YAML files of a folder and all below it, or the one file. */
export function filesBelow(path: string): readonly PolicyFile[] {
  if (!statSync(path).isDirectory()) return [{ name: path, text: readFileSync(path, 'utf8') }];
  return readdirSync(path)
    .sort()
    .flatMap((name) => (statSync(join(path, name)).isDirectory() || name.endsWith('.yaml') ? filesBelow(join(path, name)) : []));
}

/** A PolicyTest of an example with the files that it names. */
export interface ExampleTest {
  readonly document: Loaded<'PolicyTest'>;
  readonly load: LoadResult;
}

export function testsOf(example: string): readonly ExampleTest[] {
  return ofKind(loadPolicies(filesBelow(`examples/${example}/tests`)).documents, 'PolicyTest').map((document) => ({
    document,
    load: loadPolicies(document.value.spec.files.flatMap((path) => filesBelow(join(dirname(document.file), path)))),
  }));
}

/** What the documents and the manifests say together. */
export function bundleOf(documents: readonly LoadedDocument[], { manifests }: Pick<LoadResult, 'manifests'>): PolicyBundle {
  const adoption = adoptGroups(manifests.map(({ value }) => value));
  return resolvePolicies(documents, { adoption, statefulSets: statefulSetsOf(manifests) }).bundle;
}

/** Runs a PolicyTest, over other documents than its own when they are given. */
export function runExample({ document, load }: ExampleTest, documents: readonly LoadedDocument[] = load.documents): readonly CaseResult[] {
  const manifests = load.manifests.map(({ value }) => value);
  return runPolicyTest(document.value, { bundle: bundleOf(documents, load), manifests });
}
