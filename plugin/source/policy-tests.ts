// Finds PolicyTests among files, each with the policies and manifests that it names.
import { posix } from 'node:path';
import type { Finding } from '../../policies/findings/finding.ts';
import { type Loaded, loadPolicies } from '../../policies/load.ts';
import { ofKind } from '../../policies/resolve/resolve.ts';
import { Failure } from '../failure.ts';
import { type PolicyFiles, readPolicyFiles } from '../policy-files.ts';
import { type InputAccess, type InputFile, readInputs } from './input.ts';

export interface PolicyTestFile {
  readonly test: Loaded<'PolicyTest'>;
  /** The sources in its `files`, relative to the current directory. */
  readonly sources: readonly string[];
  /** The content of the sources, or one sentence if they cannot be read. */
  readonly content: PolicyFiles | string;
}

export interface PolicyTests {
  readonly tests: readonly PolicyTestFile[];
  /** Errors of files with a PolicyTest. Other files count only if a test names them. */
  readonly errors: readonly Finding[];
}

/** Finds and reads all tests. Files that several tests name are read once. */
export async function readPolicyTests(specs: readonly string[], access: InputAccess, agentNamespace: string): Promise<PolicyTests> {
  const inputs = (await readInputs(specs, access)).filter(({ text }) => /^\s*["']?kind["']?\s*:\s*["']?PolicyTest\b/m.test(text));
  const { documents, findings } = loadPolicies(inputs);
  const contents = new Map<string, Promise<PolicyFiles | string>>();
  const tests: PolicyTestFile[] = [];
  for (const test of ofKind(documents, 'PolicyTest')) {
    const sources = test.value.spec.files.map((path) => relativeTo(test.file, path));
    const key = sources.join('\0');
    const content = contents.get(key) ?? readContent(sources, access, agentNamespace);
    contents.set(key, content);
    tests.push({ test, sources, content: await content });
  }
  return { tests, errors: findings.filter(({ severity }) => severity === 'error') };
}

/** Returns `path` relative to the folder of `file`; a path in a revision stays in that revision. */
function relativeTo(file: string, path: string): string {
  const [, revision = '', name = file] = /^(git:[^:]*:)(.*)$/s.exec(file) ?? [];
  if (revision === '' && posix.isAbsolute(path)) return path;
  return `${revision}${posix.join(posix.dirname(name), path)}`;
}

async function readContent(sources: readonly string[], access: InputAccess, agentNamespace: string): Promise<PolicyFiles | string> {
  try {
    const files: readonly InputFile[] = await readInputs(sources, access);
    return readPolicyFiles(files, { agentNamespace });
  } catch (error) {
    if (error instanceof Failure) return error.message;
    throw error;
  }
}
