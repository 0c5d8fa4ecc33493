// The verb report: records what the other verbs read about a group, hides what may be secret, and writes one file.
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Writable } from 'node:stream';
import { defined } from '../../policies/values/defined.ts';
import { itemsOf } from '../cluster-snapshot/listing.ts';
import { ledgerOf } from '../cluster-snapshot/snapshot.ts';
import { type ConnectionFlags, withCluster } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { type ExitCode, exitCodes, Failure, failureLines, unwritable } from '../failure.ts';
import { readObjects, readSnapshot, scopeOf } from '../live/groups.ts';
import { findGroup } from '../live/named-group.ts';
import { nameOf } from '../live/target.ts';
import { outputStream } from '../output/terminal.ts';
import { encodeReport, jsonText, type ReportSubject, recordCluster, replayCluster } from '../report/recorded-cluster.ts';
import { redactAnswers } from '../report/redact.ts';
import type { TarFile } from '../report/tar.ts';
import { programName } from '../verbs/verb.ts';

export interface ReportOptions extends ConnectionFlags {
  readonly group: string;
  /** The file to write. */
  readonly output?: string;
}

export function run(context: CommandContext, options: ReportOptions): Promise<ExitCode> {
  return withCluster(context, options, 'read', async (connected) => {
    const { agentNamespace } = options;
    const createdMs = context.nowMs();
    const { cluster, answers } = recordCluster(connected, createdMs);
    const name = await findGroup(cluster, options.group);
    const subject = { ...name, createdMs, ...defined({ agentNamespace }) };
    const inNamespace = { ...cluster, namespace: name.namespace };
    // Without the group, or without an answer of the API server, there is nothing to report.
    await readSnapshot(inNamespace, scopeOf([name]));
    await viewsOf({ ...context, cluster: inNamespace }, subject);
    const redacted = redactAnswers(await answers());
    // The views show the redacted answers, so they contain only what --from-report shows.
    const views = await viewsOf({ ...context, cluster: replayCluster(subject, redacted) }, subject);
    const archive = await encodeReport(subject, redacted, views);
    const { output: path = `rollout-group-report-${name.namespace}-${name.group}.tar.gz` } = options;
    await writeFile(resolve(context.cwd, path), archive, { mode: 0o600 }).catch((error: unknown) => {
      throw unwritable(path, error);
    });
    context.stdout.write(`wrote ${path} (${Math.ceil(archive.length / 1024)} KiB) about ${nameOf(name)}\n`);
    context.stderr.write(
      'note: the file names namespaces, objects, images, nodes and users, and has the texts of policies and Events; look through it before you share it\n',
    );
    if (!context.quiet) context.stderr.write(`read it: ${programName} explain ${name.group} --from-report ${path}\n`);
    return exitCodes.done;
  });
}

type View = readonly [file: string, show: (context: CommandContext) => Promise<ExitCode>];

/** Runs each verb on the cluster of the context, and returns what the verb prints, by file. */
async function viewsOf(context: CommandContext, subject: ReportSubject): Promise<readonly TarFile[]> {
  const files: TarFile[] = [];
  for (const [path, show] of documents(subject)) {
    const { result, notes } = await printed(context, show);
    files.push({ path, data: result || notes });
  }
  for (const [path, show] of texts(subject)) {
    const { result, notes } = await printed(context, show);
    files.push({ path, data: `${result}${notes}` });
  }
  return files;
}

function documents({ namespace, group, agentNamespace }: ReportSubject): readonly View[] {
  const flags = { output: 'json', ...defined({ agentNamespace }) } as const;
  const name = `${namespace}/${group}`;
  return [
    ['decision.json', async (context) => (await import('./explain.ts')).run(context, { ...flags, group: name })],
    ['plan.json', async (context) => (await import('./plan.ts')).run(context, flags)],
    ['events.json', async (context) => (await import('./events.ts')).run(context, { ...flags, groups: [name] })],
    ['runs.json', async (context) => (await import('./history.ts')).run(context, { ...flags, group: name })],
    ['doctor.json', async (context) => (await import('./doctor.ts')).run(context, flags)],
    ['version.json', async (context) => (await import('./version.ts')).run(context, flags)],
    ['ledger.json', (context) => writeLedger(context, { namespace, group })],
  ];
}

function texts({ namespace, group, agentNamespace }: ReportSubject): readonly View[] {
  const flags = { output: 'table', ...defined({ agentNamespace }) } as const;
  const name = `${namespace}/${group}`;
  return [
    ['explain.txt', async (context) => (await import('./explain.ts')).run(context, { ...flags, group: name })],
    ['plan.txt', async (context) => (await import('./plan.ts')).run(context, { ...flags, group: [name] })],
    ['get.txt', async (context) => (await import('./get.ts')).run(context, { ...flags, groups: [name], pods: 'all', heartbeat: '0' })],
    [
      'status.txt',
      async (context) => (await import('./status.ts')).run(context, { ...flags, groups: [name], for: 'complete', watch: false }),
    ],
    ['doctor.txt', async (context) => (await import('./doctor.ts')).run(context, { ...flags, fixHints: true })],
  ];
}

async function writeLedger(context: CommandContext, { namespace, group }: Pick<ReportSubject, 'namespace' | 'group'>): Promise<ExitCode> {
  return withCluster(context, {}, 'read', async (cluster) => {
    const { listing } = await readObjects(cluster, scopeOf([{ namespace, group }]));
    context.stdout.write(jsonText(ledgerOf(itemsOf(listing.documents), namespace, group)));
    return exitCodes.done;
  });
}

/** Runs a verb, and returns its result, and its notes with its failure. */
async function printed(context: CommandContext, show: View[1]): Promise<{ readonly result: string; readonly notes: string }> {
  const result: string[] = [];
  const notes: string[] = [];
  await show({ ...context, stdout: textStream(result), stderr: textStream(notes), quiet: true }).catch((error: unknown) => {
    if (!(error instanceof Failure)) throw error;
    notes.push(`${failureLines(error.details).join('\n')}\n`);
  });
  return { result: result.join(''), notes: notes.join('') };
}

function textStream(chunks: string[]): CommandContext['stdout'] {
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk.toString());
      done();
    },
  });
  return outputStream(stream, { env: { LANG: 'C.UTF-8' }, color: 'never' });
}
