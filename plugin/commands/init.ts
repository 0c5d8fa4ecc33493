// The verb init: writes policy files for groups found in labels, annotations and objects of other operators.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type GuessedGroup, type Guesses, guessGroups } from '../../policies/adopt/guess.ts';
import { manifestText } from '../../policies/adopt/manifest-text.ts';
import { countFindings, type Finding } from '../../policies/findings/finding.ts';
import type { MetricSource, NotificationChannel, RolloutGroup } from '../../policies/schema/kinds.ts';
import { valueAt } from '../../policies/schema/schema-walk.ts';
import { writeDocuments } from '../../policies/write.ts';

import type { ConnectionFlags } from '../connection.ts';
import { type CommandContext, suggestNext } from '../context.ts';
import { type ExitCode, exitCodes, Failure, usageFailure } from '../failure.ts';
import { findingBlocks } from '../output/findings/text.ts';
import { plural } from '../output/plural.ts';
import { type InitReading, readFromCluster, readFromFiles } from './init-read.ts';

export interface InitOptions extends ConnectionFlags {
  readonly fromDir?: string;
  readonly fromCluster?: boolean;
  readonly allNamespaces?: boolean;
  readonly out: string;
  readonly force?: boolean;
  readonly guess?: boolean;
}

interface Page {
  /** Path below the output directory, with slashes. */
  readonly path: string;
  readonly text: string;
  /** Description of the content. */
  readonly content: string;
}

export async function run(context: CommandContext, options: InitOptions): Promise<ExitCode> {
  const { out, force = false } = options;
  const { stdout, stderr, cwd } = context;
  const reading = await read(context, options);
  const { groups, findings, source, statefulSets, notes } = reading;
  const guesses = guessGroups(reading.guessable);
  // An unreadable object may define how a StatefulSet is rolled out.
  const isGuessing = options.guess === true || (groups.length === 0 && countFindings(findings).error === 0);
  const guessed = isGuessing ? guesses.groups : [];
  for (const note of [...notes, ...(isGuessing ? leftOutNotes(guesses) : passedOverNotes(guesses))]) stderr.write(`note: ${note}\n`);
  for (const block of findingBlocks(findings, stderr)) stderr.write(`${block}\n`);
  if (groups.length + guessed.length === 0) throw noGroup(source, findings, guesses);
  const pages = pagesOf(reading, guessed);
  if (!force) refuseOverwriting(pages, out, cwd);
  for (const page of pages) {
    write(join(resolve(cwd, out), page.path), page.text);
    stdout.write(`${join(out, page.path)}  ${page.content}\n`);
  }
  suggestNext(context, `lint ${out}`, `plan ${currentOf(options, statefulSets.length > 0)}-f ${out} --set image=...`);
  return countFindings(findings).error > 0 ? exitCodes.findings : exitCodes.done;
}

async function read(context: CommandContext, options: InitOptions): Promise<InitReading> {
  const { fromDir, fromCluster = false } = options;
  if (fromCluster && fromDir !== undefined) throw usageFailure('--from-dir and --from-cluster exclude each other', 'give only one of them');
  if (fromDir !== undefined) return readFromFiles(context, fromDir);
  if (!fromCluster) throw usageFailure('--from-dir or --from-cluster is required', 'give one of them');
  const { withCluster } = await import('../connection.ts');
  return withCluster(context, options, 'read', (cluster) =>
    readFromCluster(cluster, options.allNamespaces === true ? undefined : [cluster.namespace]),
  );
}

/** Returns the flag for the running state in a plan. StatefulSets taken from other objects exist only in the written manifests. */
function currentOf({ fromDir, out }: InitOptions, hasManifests: boolean): string {
  if (fromDir === undefined) return '--live ';
  return `--current ${hasManifests ? join(out, manifestFolder) : fromDir} `;
}

const agentFolder = 'agent';
const manifestFolder = 'manifests';

/** Returns one file per document. With several namespaces, each has its folder. */
function pagesOf({ groups, documents, statefulSets }: InitReading, guessed: readonly GuessedGroup[]): readonly Page[] {
  const namespaces = new Set([...groups, ...guessed.map(({ group }) => group)].map(({ metadata }) => metadata.namespace));
  const place = (namespace: string, name: string) => (namespaces.size > 1 ? `${namespace}/${name}.yaml` : `${name}.yaml`);
  return [
    ...groups.map((group) => groupPage(group, place)),
    ...guessed.map((one) => guessedPage(one, place)),
    ...documents.map(agentPage),
    ...statefulSets.map((set) => {
      const [namespace, name] = (['namespace', 'name'] as const).map((field) => String(valueAt(set, ['metadata', field])));
      const path = `${manifestFolder}/${place(namespace ?? '', name ?? '')}`;
      return { path, text: manifestText(set), content: `StatefulSet ${namespace}/${name}` };
    }),
  ];
}

function groupPage(group: RolloutGroup, place: (namespace: string, name: string) => string): Page {
  const { namespace = 'default', name } = group.metadata;
  const zones = plural(group.spec.members.zones?.length ?? 0, 'zone');
  return { path: place(namespace, name), text: writeDocuments([group]), content: `RolloutGroup ${namespace}/${name}, ${zones}` };
}

/** Returns the file of a guessed group. A comment in the file explains the guess. */
function guessedPage({ group, comment, because }: GuessedGroup, place: (namespace: string, name: string) => string): Page {
  const page = groupPage(group, place);
  return { ...page, text: writeDocuments([group], { comment }), content: `${page.content}, guessed: ${because}` };
}

function leftOutNotes({ leftOut }: Guesses): readonly string[] {
  return leftOut.map(({ namespace, name, why }) => `StatefulSet ${namespace}/${name} is left out: ${why}`);
}

/** Returns notes about StatefulSets without labels, which are left out without --guess. */
function passedOverNotes({ groups }: Guesses): readonly string[] {
  const names = groups.flatMap(
    ({ group }) => group.spec.members.zones?.map(({ statefulSet }) => `${group.metadata.namespace}/${statefulSet}`) ?? [],
  );
  if (names.length === 0) return [];
  const some = names.slice(0, 5).join(', ');
  const more = names.length > 5 ? ` and ${names.length - 5} more` : '';
  return [
    `${plural(names.length, 'StatefulSet')} without labels ${names.length === 1 ? 'is' : 'are'} left out: ${some}${more}. Run init with --guess to propose groups for them`,
  ];
}

function agentPage(document: MetricSource | NotificationChannel): Page {
  const { kind, metadata, spec } = document;
  const prefix = kind === 'MetricSource' ? 'source' : 'channel';
  const path = `${agentFolder}/${prefix}-${metadata.name}.yaml`;
  return { path, text: writeDocuments([document]), content: `${kind} ${metadata.name}, for ${spec.usableFrom.namespaces.join(', ')}` };
}

/** @throws Failure before any file is written, if an existing file would change. */
function refuseOverwriting(pages: readonly Page[], out: string, cwd: string): void {
  const inTheWay = pages.filter(({ path, text }) => {
    const file = join(resolve(cwd, out), path);
    return existsSync(file) && readFileSync(file, 'utf8') !== text;
  });
  const [first] = inTheWay;
  if (first === undefined) return;
  throw new Failure({
    exitCode: exitCodes.usage,
    what: `${join(out, first.path)} already exists with other content`,
    why: `${inTheWay.length} of ${plural(pages.length, 'file')} would be overwritten`,
    todo: 'choose another directory with --out, or overwrite with --force',
  });
}

function write(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new Failure({ exitCode: exitCodes.notAllowed, what: `${file} is not writable`, why });
  }
}

function noGroup(source: string, findings: readonly Finding[], { members, leftOut }: Guesses): Failure {
  if (members.length > 0 && leftOut.length === 0 && countFindings(findings).error === 0) {
    const more = members.length > 5 ? ` and ${members.length - 5} more` : '';
    return new Failure({
      exitCode: exitCodes.notFound,
      what: `every StatefulSet of ${source} already belongs to a group`,
      why: `members: ${members.slice(0, 5).join(', ')}${more}`,
      todo: 'run kubectl rollout-group get to see the groups, or choose another namespace or directory',
    });
  }
  const { error } = countFindings(findings);
  return new Failure({
    exitCode: exitCodes.notFound,
    what: `${source} has no StatefulSet for a group and no convertible object of another operator`,
    ...(error === 0 ? {} : { why: `${plural(error, 'error')} above may hide one` }),
    todo: 'give the directory with the rendered manifests, or the namespace of the StatefulSets',
  });
}
