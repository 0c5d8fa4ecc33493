// Records what verbs read from a cluster, writes it to a report, and answers from a report instead of the API server.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { processEnv } from '../../cluster/connection/process-env.ts';
import type { ClusterEnv, KubernetesHttp, KubernetesRequest, KubernetesResponse } from '../../cluster/env.ts';
import { isJsonObject, type JsonObject } from '../../cluster/request/json.ts';
import { messageOf } from '../../policies/error-message.ts';
import { instantMs } from '../../policies/instant.ts';
import { compareText } from '../../policies/values/compare-text.ts';
import { defined } from '../../policies/values/defined.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import type { Cluster, ConnectionFlags } from '../connection.ts';
import type { CommandContext } from '../context.ts';
import { exitCodes, Failure, notFoundFailure, usageFailure } from '../failure.ts';
import { unreadable } from '../source/input.ts';
import { connectionOptions, flagNames } from '../verbs/verb.ts';
import { version } from '../version.ts';
import type { RecordedAnswer } from './redact.ts';
import { compress, type TarFile, tar, untar } from './tar.ts';

export interface ReportSubject {
  readonly createdMs: number;
  readonly namespace: string;
  readonly group: string;
  /** The value of the flag --agent-namespace, if it was given. */
  readonly agentNamespace?: string;
}

/** The files of a report that are read back. All other files are for people. */
const subjectFile = 'report.json';
const answersFile = 'snapshot.json';

/** The format as `major.minor`. A newer minor version adds fields. */
const format = '1.0';

/** The maximum size of an unpacked report: 20,000 pods have about 100 MiB. */
const maxBytes = 512 * 1_048_576;

/** Returns the archive of a report. The same values give the same bytes. */
export function encodeReport(subject: ReportSubject, answers: readonly RecordedAnswer[], views: readonly TarFile[]): Promise<Buffer> {
  const { createdMs, ...rest } = subject;
  const about = { format, createdAt: new Date(createdMs).toISOString(), ...rest, plugin: version };
  const folder = `report-${subject.namespace}-${subject.group}`.slice(0, 60);
  const files = [{ path: subjectFile, data: jsonText(about) }, { path: answersFile, data: answersText(answers) }, ...views];
  return compress(tar(files.map((file) => ({ ...file, path: `${folder}/${file.path}` }))));
}

export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Writes one answer per line, so that a diff of two reports shows the answers that differ. */
function answersText(answers: readonly RecordedAnswer[]): string {
  return `[\n${answers.map((one) => JSON.stringify(one)).join(',\n')}\n]\n`;
}

/** Returns a cluster that sends each request once and keeps its answer, and a function that returns the answers in a fixed order. */
export function recordCluster(
  cluster: Cluster,
  nowMs: number,
): { readonly cluster: Cluster; readonly answers: () => Promise<readonly RecordedAnswer[]> } {
  const { env } = cluster;
  const kept = new Map<string, Promise<KubernetesResponse>>();
  const kubernetes: KubernetesHttp = {
    request: (request) => {
      const key = keyOf(request);
      const answer = kept.get(key) ?? env.kubernetes.request(request);
      kept.set(key, answer);
      return answer;
    },
    stream: refuseWatch,
  };
  const answers = async (): Promise<readonly RecordedAnswer[]> => {
    const all = await Promise.allSettled([...kept].map(async ([request, answer]) => recordedAnswer(request, await answer)));
    return all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])).sort((a, b) => compareText(a.request, b.request));
  };
  return { cluster: { ...cluster, env: { ...env, clock: stoppedClock(env, nowMs), kubernetes }, close: () => undefined }, answers };
}

function recordedAnswer(request: string, { status, headers, body }: KubernetesResponse): RecordedAnswer {
  return { request, status, ...defined({ date: headers['date'] }), answer: tryParseJson(body) ?? body };
}

/** Returns a clock that always shows the time of the report, so that every verb shows the same ages. */
function stoppedClock({ clock }: Pick<ClusterEnv, 'clock'>, nowMs: number): ClusterEnv['clock'] {
  return { ...clock, nowMs: () => nowMs };
}

function keyOf({ method, path, body = '' }: KubernetesRequest): string {
  return `${method} ${path}${body && ` ${body}`}`;
}

async function refuseWatch(): Promise<never> {
  throw usageFailure('a report does not change, so it cannot be watched', 'omit --watch');
}

/** Returns a cluster that answers as the API server did at the time of the report. It rejects every request that the report lacks. */
export function replayCluster(subject: ReportSubject, answers: readonly RecordedAnswer[]): Cluster {
  const { namespace, group, createdMs, agentNamespace } = subject;
  const known = new Map(answers.map((one) => [one.request, one]));
  const request: KubernetesHttp['request'] = async (asked) => {
    const found = known.get(keyOf(asked));
    if (found === undefined) throw absentFailure(subject, asked);
    const { status, date, answer } = found;
    return { status, headers: defined({ date }), body: typeof answer === 'string' ? answer : JSON.stringify(answer) };
  };
  const env = processEnv({ request, stream: refuseWatch });
  return {
    env: { ...env, clock: stoppedClock(env, createdMs) },
    namespace,
    ...defined({ agentNamespace }),
    server: `the report of ${namespace}/${group}`,
    contextName: '',
    timeoutMs: 1_000,
    close: () => undefined,
  };
}

function absentFailure({ namespace, group }: ReportSubject, { method, path }: KubernetesRequest): Failure {
  return notFoundFailure(`the report does not contain the answer to ${method} ${path}`, {
    why: `it contains what the verbs read about ${namespace}/${group} in namespace ${namespace}`,
    todo: `omit flags that read more, such as -A, -f or another --namespace, or use the version that wrote the report`,
  });
}

/** The flags that choose another cluster, or replace what the verbs read. */
const excluded: readonly string[] = [
  ...connectionOptions.map((option) => flagNames(option).at(-1) ?? ''),
  ...['--current', '--desired', '--out'],
];

/** Returns a context with the cluster and the time of the report of --from-report. Throws Failure if the file is not such a report. */
export async function withReport(context: CommandContext, path: string, options: ConnectionFlags): Promise<CommandContext> {
  const given = excluded.find((flag) => isGiven(options, flag));
  if (given !== undefined) throw usageFailure(`--from-report and ${given} exclude each other`, 'give only one of them');
  const bytes = await readFile(resolve(context.cwd, path)).catch((error: NodeJS.ErrnoException) => {
    throw unreadable(path, error);
  });
  const { subject, answers } = await decodeReport(bytes, path);
  return { ...context, cluster: replayCluster(subject, answers), nowMs: () => subject.createdMs };
}

function isGiven(options: object, flag: string): boolean {
  const value: unknown = Reflect.get(
    options,
    flag.slice(2).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
  );
  return value !== undefined && !(Array.isArray(value) && value.length === 0);
}

async function decodeReport(
  bytes: Buffer,
  path: string,
): Promise<{ readonly subject: ReportSubject; readonly answers: readonly RecordedAnswer[] }> {
  const files = await unpack(bytes, path);
  const textOf = (name: string): string | undefined => files.find((file) => file.path.split('/').at(-1) === name)?.data.toString();
  const about = tryParseJson(textOf(subjectFile));
  if (!isJsonObject(about) || typeof about['format'] !== 'string') throw damaged(path, `it has no ${subjectFile} with a format`);
  refuseOtherFormat(about, path);
  const answers = tryParseJson(textOf(answersFile));
  const { namespace, group, agentNamespace, createdAt } = about;
  const createdMs = typeof createdAt === 'string' ? instantMs(createdAt) : undefined;
  if (typeof namespace !== 'string' || typeof group !== 'string' || createdMs === undefined)
    throw damaged(path, `${subjectFile} lacks the group or the time`);
  if (!Array.isArray(answers) || !answers.every(isAnswer)) throw damaged(path, `it has no ${answersFile} with answers`);
  const subject = { namespace, group, createdMs, ...(typeof agentNamespace === 'string' ? { agentNamespace } : {}) };
  return { subject, answers };
}

async function unpack(bytes: Buffer, path: string): Promise<readonly { readonly path: string; readonly data: Buffer }[]> {
  try {
    return untar(await promisify(gunzip)(bytes, { maxOutputLength: maxBytes }));
  } catch (error) {
    throw damaged(path, messageOf(error));
  }
}

function refuseOtherFormat({ format: found, plugin }: JsonObject, path: string): void {
  const major = (text: unknown): string => String(text).split('.')[0] ?? '';
  if (major(found) === major(format)) return;
  throw new Failure({
    exitCode: exitCodes.findings,
    what: `the report ${path} has the format ${found}`,
    why: `this version (${version}) reads the format ${format}`,
    todo: `use the version that wrote the report: ${plugin}`,
  });
}

function isAnswer(value: unknown): value is RecordedAnswer {
  if (!isJsonObject(value)) return false;
  const { request, status, date } = value;
  return typeof request === 'string' && typeof status === 'number' && (date === undefined || typeof date === 'string') && 'answer' in value;
}

function damaged(path: string, why: string): Failure {
  return new Failure({
    exitCode: exitCodes.findings,
    what: `${path} is damaged or not a report`,
    why,
    todo: 'write it again: kubectl rollout-group report GROUP',
  });
}
