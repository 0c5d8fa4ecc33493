// The verb init: policy files for the groups that exist as labels and annotations, or as objects of other operators.
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
import { type ExitCode, exitCodes } from '../exit-code.ts';
import { Failure, usageFailure } from '../failure.ts';
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
  /** Below the output directory, with slashes. */
  readonly path: string;
  readonly text: string;
  /** What is in it, in words for people. */
  readonly content: string;
}

export async function run(context: CommandContext, options: InitOptions): Promise<ExitCode> {
  const { out, force = false } = options;
  const { stdout, stderr, cwd } = context;
  const reading = await read(context, options);
  const { groups, findings, source, statefulSets, notes } = reading;
  const guesses = guessGroups(reading.guessable);
  // What cannot be read may be what says how one of the StatefulSets is to roll.
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
  if (fromCluster && fromDir !== undefined)
    throw usageFailure('--from-dir and --from-cluster are both given', 'groups come from one of them');
  if (fromDir !== undefined) return readFromFiles(context, fromDir);
  if (!fromCluster) throw usageFailure('neither --from-dir nor --from-cluster is given', 'say where the groups are read from');
  const { withCluster } = await import('../connection.ts');
  return withCluster(context, options, 'read', (cluster) =>
    readFromCluster(cluster, options.allNamespaces === true ? undefined : [cluster.namespace]),
  );
}

/** What stands for the running cluster in a plan. StatefulSets that stood in other objects are manifests only now. */
function currentOf({ fromDir, out }: InitOptions, hasManifests: boolean): string {
  if (fromDir === undefined) return '--live ';
  return `--current ${hasManifests ? join(out, manifestFolder) : fromDir} `;
}

const agentFolder = 'agent';
const manifestFolder = 'manifests';

/** One file per document; groups and StatefulSets below a folder per namespace when there are several namespaces. */
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

/** What nobody has said stands in the file as a guess, with how it was made. */
function guessedPage({ group, comment, because }: GuessedGroup, place: (namespace: string, name: string) => string): Page {
  const page = groupPage(group, place);
  return { ...page, text: writeDocuments([group], { comment }), content: `${page.content}, guessed: ${because}` };
}

function leftOutNotes({ leftOut }: Guesses): readonly string[] {
  return leftOut.map(({ namespace, name, why }) => `StatefulSet ${namespace}/${name} is left out: ${why}`);
}

/** Beside groups that somebody has named, the others are nobody's to guess about unless that is asked. */
function passedOverNotes({ groups }: Guesses): readonly string[] {
  const names = groups.flatMap(
    ({ group }) => group.spec.members.zones?.map(({ statefulSet }) => `${group.metadata.namespace}/${statefulSet}`) ?? [],
  );
  if (names.length === 0) return [];
  const some = names.slice(0, 5).join(', ');
  const more = names.length > 5 ? ` and ${names.length - 5} more` : '';
  return [
    `${plural(names.length, 'StatefulSet')} without labels ${names.length === 1 ? 'is' : 'are'} left out: ${some}${more}; --guess proposes groups for them`,
  ];
}

function agentPage(document: MetricSource | NotificationChannel): Page {
  const { kind, metadata, spec } = document;
  const prefix = kind === 'MetricSource' ? 'source' : 'channel';
  const path = `${agentFolder}/${prefix}-${metadata.name}.yaml`;
  return { path, text: writeDocuments([document]), content: `${kind} ${metadata.name}, for ${spec.usableFrom.namespaces.join(', ')}` };
}

/** Before anything is written, so that a refusal leaves everything as it was. A file that would not change is in nobody's way. */
function refuseOverwriting(pages: readonly Page[], out: string, cwd: string): void {
  const inTheWay = pages.filter(({ path, text }) => {
    const file = join(resolve(cwd, out), path);
    return existsSync(file) && readFileSync(file, 'utf8') !== text;
  });
  const [first] = inTheWay;
  if (first === undefined) return;
  throw new Failure({
    exitCode: exitCodes.usage,
    what: `${join(out, first.path)} exists and would change`,
    why: `${plural(inTheWay.length, 'file')} of ${pages.length} would lose what is in them`,
    todo: 'name another directory with --out, or overwrite them with --force',
  });
}

function write(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new Failure({ exitCode: exitCodes.notAllowed, what: `${file} cannot be written`, why });
  }
}

function noGroup(source: string, findings: readonly Finding[], { members, leftOut }: Guesses): Failure {
  if (members.length > 0 && leftOut.length === 0 && countFindings(findings).error === 0) {
    const more = members.length > 5 ? ` and ${members.length - 5} more` : '';
    return new Failure({
      exitCode: exitCodes.notFound,
      what: `every StatefulSet of ${source} is in a group already, so there is none to propose`,
      why: `members are ${members.slice(0, 5).join(', ')}${more}`,
      todo: 'look at the groups with kubectl rollout-group get, or name another namespace or directory',
    });
  }
  const { error } = countFindings(findings);
  return new Failure({
    exitCode: exitCodes.notFound,
    what: `${source} has no StatefulSet that a group could be made of, and no object of another operator that can be converted`,
    ...(error === 0 ? {} : { why: `${plural(error, 'error')} above may hide one` }),
    todo: 'name the directory with the rendered manifests, or the namespace of the StatefulSets',
  });
}
