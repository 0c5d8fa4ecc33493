// Derives the readings of gates and metrics from answers of Prometheus and Consul, and from the pods of a group.
import type { GroupDefinition } from '../../policies/definition.ts';
import { formatDuration } from '../../policies/duration.ts';
import { tryParseJson } from '../../policies/values/try-parse-json.ts';
import { changesZone } from '../run/revisions.ts';
import type { RunState } from '../run/run-state.ts';
import type { GateReading, MetricView, PodView } from '../snapshot.ts';
import { fieldAt } from './raw.ts';
import { type GroupView, isAvailable, type ZoneView } from './view.ts';

/** The HTTP answer of `/api/v1/query`. */
interface PrometheusAnswer {
  readonly status: number;
  readonly body: string;
}

interface ReadOptions {
  /** The time of the query in milliseconds since 1970, which is also the time of the reading. */
  readonly atMs: number;
  /** Maximum distance between `atMs` and the evaluation time of the provider, in milliseconds. */
  readonly toleranceMs: number;
  /** `evaluatedMs` of the previous reading. */
  readonly beforeMs?: number | undefined;
}

interface PrometheusReading {
  readonly reading: GateReading;
  /** The instant for which the provider evaluated the query; absent if no sample was read. */
  readonly evaluatedMs?: number;
}

/**
 * Returns the reading of an answer. A finite number (scalar, or vector of one series) is the value, any other number is `notFinite`, and an
 * empty vector is `noData`. Any other answer is an error, such as several series, warnings or an old sample. No error quotes the body.
 */
export function readPrometheus(answer: PrometheusAnswer, options: ReadOptions): PrometheusReading {
  const { atMs } = options;
  const failed = (message: string): PrometheusReading => ({ reading: { atMs, result: 'error', message } });
  if (answer.status !== 200) return failed(refusal(answer));
  const body = tryParseJson(answer.body);
  if (body === undefined) return failed('the answer is not JSON');
  const status = fieldAt(body, ['status']);
  if (status !== 'success') return failed(`the query failed${kindOfError(body)}`);
  const warnings = fieldAt(body, ['warnings']);
  if (warnings !== undefined && !(Array.isArray(warnings) && warnings.length === 0))
    return failed('the answer has warnings, so it may be partial');
  const sample = sampleOf(fieldAt(body, ['data']));
  if (typeof sample === 'string') return failed(sample);
  if (sample === undefined) return { reading: { atMs, result: 'noData' } };
  const { evaluatedMs, value } = sample;
  const problem = instantProblem(evaluatedMs, options);
  if (problem !== undefined) return { ...failed(problem), evaluatedMs };
  const reading: GateReading = typeof value === 'number' ? { atMs, result: 'value', value } : { atMs, result: 'notFinite', value };
  return { reading, evaluatedMs };
}

function refusal({ status, body }: PrometheusAnswer): string {
  if (status === 401 || status === 403) return `the provider does not accept the credentials (HTTP ${status})`;
  return `the provider answered HTTP ${status}${kindOfError(tryParseJson(body))}`;
}

/** The values of `errorType` (https://prometheus.io/docs/prometheus/latest/querying/api/). Any other value could be free text. */
const kindsOfError: ReadonlySet<unknown> = new Set([
  'timeout',
  'canceled',
  'execution',
  'bad_data',
  'internal',
  'unavailable',
  'not_found',
  'not_acceptable',
]);

function kindOfError(body: unknown): string {
  const kind = fieldAt(body, ['errorType']);
  return typeof kind === 'string' && kindsOfError.has(kind) ? `: ${kind}` : '';
}

interface Sample {
  readonly evaluatedMs: number;
  readonly value: number | 'NaN' | '+Inf' | '-Inf';
}

/** Returns the single sample of a result; undefined without a sample; a message if the result is not a single number. */
function sampleOf(data: unknown): Sample | string | undefined {
  const type = fieldAt(data, ['resultType']);
  const result = fieldAt(data, ['result']);
  if (type === 'scalar') return pairOf(result);
  if (type === 'string' || type === 'matrix') return `the query answers with a ${type}; a gate needs one number`;
  if (type !== 'vector' || !Array.isArray(result)) return 'the answer has no result';
  if (result.length === 0) return undefined;
  if (result.length > 1) return `the query answers with ${result.length} series; a gate needs one number`;
  const [series]: readonly unknown[] = result;
  if (fieldAt(series, ['histogram']) !== undefined) return 'the query answers with a histogram; a gate needs one number';
  return pairOf(fieldAt(series, ['value']));
}

/** The notation of finite numbers in Go (strconv.FormatFloat). */
const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

/** Returns the sample of a pair such as `[1768478400.123, "0.5"]`: seconds since 1970, and the value as text. */
function pairOf(pair: unknown): Sample | string {
  if (!Array.isArray(pair) || pair.length !== 2) return 'the answer has no sample';
  const [seconds, text]: readonly unknown[] = pair;
  if (typeof seconds !== 'number' || !Number.isFinite(seconds)) return 'the sample has no instant';
  if (typeof text !== 'string') return 'the sample has no value';
  const value = numberOf(text);
  return value === undefined ? 'the value of the sample is not a number' : { evaluatedMs: Math.round(seconds * 1000), value };
}

function numberOf(text: string): Sample['value'] | undefined {
  if (text === 'NaN' || text === '+Inf' || text === '-Inf') return text;
  if (!decimal.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

function instantProblem(evaluatedMs: number, { atMs, toleranceMs, beforeMs }: ReadOptions): string | undefined {
  if (evaluatedMs < atMs - toleranceMs) return `the sample is ${lengthOf(atMs - evaluatedMs)} old`;
  if (evaluatedMs > atMs + toleranceMs) return `the sample is ${lengthOf(evaluatedMs - atMs)} ahead of the clock of the agent`;
  return evaluatedMs === beforeMs ? 'the answer repeats the previous sample' : undefined;
}

/** Returns the text of a duration in whole seconds. With milliseconds, the message would change with every reading. */
function lengthOf(durationMs: number): string {
  return formatDuration(Math.round(durationMs / 1000) * 1000);
}

/** The HTTP answer of `/v1/health/service/NAME`. */
export interface ConsulAnswer {
  readonly status: number;
  readonly body: string;
  /** The names are in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface ReadConsulOptions {
  /** The time of the query in milliseconds since 1970, which is also the time of the reading. */
  readonly atMs: number;
  readonly counts: 'passing' | 'notPassing';
  /** The maximum time since the Consul server last heard from the leader of its datacenter, in milliseconds. */
  readonly toleranceMs: number;
}

/**
 * Returns the reading of an answer. An instance passes if all its checks pass. A service without instances is no data. An answer that may be
 * stale or partial is an error: no leader, no recent contact to the leader, or instances hidden from the token.
 */
export function readConsul(answer: ConsulAnswer, { atMs, counts, toleranceMs }: ReadConsulOptions): GateReading {
  const failed = (message: string): GateReading => ({ atMs, result: 'error', message });
  const { status, headers = {} } = answer;
  if (status === 401 || status === 403) return failed(`the provider does not accept the credentials (HTTP ${status})`);
  if (status !== 200) return failed(`the provider answered HTTP ${status}`);
  if (headers['x-consul-knownleader'] === 'false') return failed('the datacenter has no leader, so the answer may be old');
  if (headers['x-consul-results-filtered-by-acls'] === 'true') return failed('the ACLs hide some instances from the token');
  const silenceMs = Number(headers['x-consul-lastcontact'] ?? 0);
  if (!Number.isFinite(silenceMs)) return failed('the answer does not say how old it is');
  if (silenceMs > toleranceMs) return failed(`the answer is ${formatDuration(Math.round(silenceMs / 1000) * 1000)} old`);
  const instances = instancesOf(answer.body);
  if (typeof instances === 'string') return failed(instances);
  if (instances.length === 0) return { atMs, result: 'noData' };
  const passing = instances.filter((statuses) => statuses.every((one) => one === 'passing')).length;
  return { atMs, result: 'value', value: counts === 'passing' ? passing : instances.length - passing };
}

/** Returns the statuses of the checks of each instance, or why they are unknown. */
function instancesOf(body: string): readonly (readonly string[])[] | string {
  const entries = tryParseJson(body);
  if (entries === undefined) return 'the answer is not JSON';
  if (!Array.isArray(entries)) return 'the answer is not a list of instances';
  const instances: string[][] = [];
  for (const entry of entries as readonly unknown[]) {
    const checks = fieldAt(entry, ['Checks']);
    if (!Array.isArray(checks)) return 'an instance has no checks';
    const statuses = (checks as readonly unknown[]).map((check) => fieldAt(check, ['Status']));
    if (!statuses.every((status) => typeof status === 'string')) return 'a check has no status';
    instances.push(statuses);
  }
  return instances;
}

/** The reason of an unknown input without data. The setting `noData: zero` recognizes the input by this reason. */
export const noData = 'no data';

/** Returns the readings that determine an input: the last reading or, if it failed, the last successful reading and the last reading. */
export function countedInputs(readings: readonly GateReading[]): readonly GateReading[] {
  const last = readings.at(-1);
  if (last === undefined || last.result !== 'error') return readings.slice(-1);
  const answered = readings.findLast(({ result }) => result !== 'error');
  return answered === undefined ? [last] : [answered, last];
}

/** Returns the value of an input from its readings, oldest first. After a failed reading, the previous value counts with its own time. */
export function metricView(
  name: Pick<MetricView, 'namespace' | 'policy' | 'input'>,
  readings: readonly GateReading[],
): MetricView | undefined {
  const counted = countedInputs(readings);
  const last = counted.at(-1);
  const [answered] = counted;
  if (last === undefined || answered === undefined) return undefined;
  const problem = last.result === 'error' ? last.message : undefined;
  return {
    ...name,
    value: knownOf(answered),
    atMs: answered.atMs,
    ...(problem === undefined || answered === last ? {} : { problem }),
  };
}

function knownOf(reading: GateReading): MetricView['value'] {
  switch (reading.result) {
    case 'value':
      return reading.value;
    case 'noData':
      return { unknown: noData };
    case 'notFinite':
      return { unknown: `the value is ${reading.value}` };
    case 'error':
      return { unknown: reading.message };
  }
}

export interface GatedPod {
  readonly pod: PodView;
  /** `spec.serviceName` of its StatefulSet. */
  readonly serviceName: string;
}

/** Returns the updated pods of the run by zone and ordinal, also terminating ones, or why they are unknown. Skips unchanged zones. */
export function updatedPods({ zones }: GroupView, run: Pick<RunState, 'target' | 'previous' | 'from'>): readonly GatedPod[] | string {
  const unknown = zones.find((zone) => zone.unknown !== undefined)?.unknown;
  if (unknown !== undefined) return unknown;
  const changed = zones.filter(({ zone }) => changesZone(run, zone.name));
  return changed.flatMap(({ zone, set, pods }) =>
    pods.filter(({ revision }) => revision === run.target[zone.name]).map((pod) => ({ pod, serviceName: set?.serviceName ?? '' })),
  );
}

/**
 * Returns how many pods of the wave's zones are missing or have not been available for the required time. After the wave, outdated pods do
 * not count, so that a broken outdated pod does not block its own repair. An error if the pods are unknown or no wave is current.
 */
export function podsAvailable(
  view: GroupView,
  run: Pick<RunState, 'wave' | 'waveAvailableMs' | 'target'>,
  { atMs, minReadySeconds }: { readonly atMs: number; readonly minReadySeconds: number },
): GateReading {
  const failed = (message: string): GateReading => ({ atMs, result: 'error', message });
  const { group } = view;
  const wave = group.rollout.waves[run.wave];
  if (wave === undefined) return failed('no wave is under way');
  const zones = view.zones.filter(({ zone }) => wave.zones.includes(zone.name));
  const unknown = zones.find((zone) => zone.unknown !== undefined)?.unknown;
  if (unknown !== undefined) return failed(unknown);
  const counts = (zone: ZoneView, pod: PodView): boolean =>
    run.waveAvailableMs === undefined || pod.revision === run.target[zone.zone.name];
  const value = zones.reduce((sum, zone) => sum + unavailableIn(group, zone, { atMs, minReadySeconds, counts }), 0);
  return { atMs, result: 'value', value };
}

interface Counted {
  readonly atMs: number;
  readonly minReadySeconds: number;
  readonly counts: (zone: ZoneView, pod: PodView) => boolean;
}

function unavailableIn(group: GroupDefinition, zone: ZoneView, { atMs, minReadySeconds, counts }: Counted): number {
  const { set, replicas, pods } = zone;
  const first = set?.firstOrdinal ?? 0;
  const seconds = Math.max(minReadySeconds, set?.minReadySeconds ?? 0);
  const expected = pods.filter(({ ordinal }) => ordinal >= first && ordinal < first + replicas);
  const down = expected.filter((pod) => counts(zone, pod) && !isAvailable(pod, group, seconds, atMs));
  return replicas - expected.length + down.length;
}
