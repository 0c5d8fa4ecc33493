// Reads the environments of a review from rollout-group.yaml in the root of a revision: the directories of each cluster.
import { parseDocument } from 'yaml';
import { defined } from '../../policies/values/defined.ts';
import { isRecord } from '../../policies/values/is-record.ts';
import { exitCodes, Failure } from '../failure.ts';
import { readGitPath } from './git.ts';
import type { InputAccess } from './input.ts';

export const environmentsFile = 'rollout-group.yaml';

/** The sources of one environment. Every path starts at the root of the repository. */
export interface Environment {
  readonly name: string;
  readonly cluster?: string;
  readonly policies: readonly string[];
  readonly manifests: readonly string[];
  /** Directories with policy tests, besides the policies. */
  readonly tests: readonly string[];
  /** Values files of Helm charts. */
  readonly values: readonly string[];
  /** Name of the release of Helm charts. */
  readonly release?: string;
  /** Namespace of objects without one, and of the release. */
  readonly namespace?: string;
  readonly assumptions?: string;
  readonly agentNamespace?: string;
}

/** Returns the environments of a revision; undefined without the file. Throws Failure with exit code 4 for an invalid file. */
export async function readEnvironments(revision: string, access: InputAccess): Promise<readonly Environment[] | undefined> {
  const spec = `git:${revision}:${environmentsFile}`;
  const [file] = (await readGitPath(spec, access)) ?? [];
  if (file === undefined) return undefined;
  const document = parseDocument(file.text, { uniqueKeys: true });
  const [syntaxError] = document.errors;
  if (syntaxError !== undefined) throw invalid(spec, [`it is not valid YAML: ${syntaxError.message.split('\n')[0]?.replace(/:$/, '')}`]);
  const problems: string[] = [];
  const environments = environmentsOf(document.toJS({ maxAliasCount: 0 }), problems);
  if (problems.length > 0) throw invalid(spec, problems);
  return environments;
}

function invalid(spec: string, problems: readonly string[]): Failure {
  return new Failure({
    exitCode: exitCodes.findings,
    what: `${spec} holds no valid environments`,
    why: problems.join('; '),
    todo: 'kubectl rollout-group docs review',
  });
}

function environmentsOf(value: unknown, problems: string[]): readonly Environment[] {
  const list = isRecord(value) ? value['environments'] : undefined;
  if (!Array.isArray(list) || list.length === 0) problems.push('environments is not a list with an entry');
  const found = (Array.isArray(list) ? list : []).map((one, index) => environmentOf(one, `environments[${index}]`, problems));
  const repeated = found.find(({ name }, index) => found.findIndex((one) => one.name === name) !== index);
  if (repeated !== undefined) problems.push(`the name ${repeated.name} is used twice`);
  return found;
}

const texts = ['name', 'cluster', 'release', 'namespace', 'assumptions', 'agentNamespace'] as const;
const lists = ['policies', 'manifests', 'tests', 'values'] as const;

/** A name that Kubernetes accepts for a namespace. A release has at most 53 characters, which Helm checks. */
const dnsLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

function environmentOf(value: unknown, path: string, problems: string[]): Environment {
  const fields = isRecord(value) ? value : {};
  if (!isRecord(value)) problems.push(`${path} is not a mapping`);
  const known: readonly string[] = [...texts, ...lists];
  for (const key of Object.keys(fields))
    if (!known.includes(key)) problems.push(`${path}.${key} is unknown; known are ${known.join(', ')}`);
  const text = (key: (typeof texts)[number]): string | undefined => {
    const found = fields[key];
    if (found !== undefined && typeof found !== 'string') problems.push(`${path}.${key} is not a text`);
    return typeof found === 'string' ? found : undefined;
  };
  const list = (key: (typeof lists)[number]): readonly string[] => {
    const found = [fields[key] ?? []].flat();
    if (found.some((one) => typeof one !== 'string')) problems.push(`${path}.${key} is neither a path nor a list of paths`);
    return found.map(String);
  };
  const [name, cluster, release, namespace, assumptions, agentNamespace] = texts.map(text);
  if (name === undefined || !/^[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/.test(name))
    problems.push(`${path}.name is not a name such as production`);
  for (const [key, value] of Object.entries({ release, namespace }))
    if (value !== undefined && !dnsLabel.test(value)) problems.push(`${path}.${key} is not a name such as mimir`);
  const environment = {
    name: name ?? '',
    policies: list('policies'),
    manifests: list('manifests'),
    tests: list('tests'),
    values: list('values'),
  };
  problems.push(...pathProblems(path, [...lists.flatMap((key) => environment[key]), assumptions]));
  if (environment.policies.length + environment.manifests.length === 0) problems.push(`${path} has neither policies nor manifests`);
  return {
    ...environment,
    ...defined({ cluster, release, namespace, assumptions, agentNamespace }),
  };
}

/** Refuses paths that leave the repository, or of which a tool could read a part as a flag. */
function pathProblems(environment: string, paths: readonly (string | undefined)[]): readonly string[] {
  const isRefused = (path = ''): boolean => path.startsWith('/') || path.split('/').some((part) => part === '..' || part.startsWith('-'));
  return paths
    .filter(isRefused)
    .map((path) => `${environment} has the path ${path}; a path is relative to the root, and no part of it is .. or starts with -`);
}
