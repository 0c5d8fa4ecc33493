// Reads an answer of the Prometheus API to an instant query as a reading of a gate.
import { formatDuration } from '../../policies/duration.ts';
import type { GateReading } from '../snapshot.ts';
import { fieldAt } from './raw.ts';

/** An answer of `/api/v1/query` as it came. */
interface PrometheusAnswer {
  readonly status: number;
  readonly body: string;
}

interface ReadOptions {
  /** When the question was asked, in milliseconds since 1970; the reading's own instant. */
  readonly atMs: number;
  /** Maximum distance between `atMs` and the evaluation time of the provider, in milliseconds. */
  readonly toleranceMs: number;
  /** `evaluatedMs` of the reading before. */
  readonly beforeMs?: number | undefined;
}

interface PrometheusReading {
  readonly reading: GateReading;
  /** The instant for which the provider evaluated the query; absent when the answer has no sample. */
  readonly evaluatedMs?: number;
}

/**
 * Reads an answer. One number is the value, as a vector of one series or as a scalar; it may be not finite. An empty vector is no data.
 * Anything else is an error: a status other than 200, several series, text, ranges and histograms, an answer with warnings (it may be
 * partial), a sample that is too old or of the future, and one of the same instant as the reading before, which a cache has repeated. What the
 * body says in words is never repeated. `infos` of the answer say nothing about its value.
 */
export function readPrometheus(answer: PrometheusAnswer, options: ReadOptions): PrometheusReading {
  const { atMs } = options;
  const failed = (message: string): PrometheusReading => ({ reading: { atMs, result: 'error', message } });
  if (answer.status !== 200) return failed(refusal(answer));
  const body = parsed(answer.body);
  if (body === undefined) return failed('the answer is not JSON');
  const status = fieldAt(body, ['status']);
  if (status !== 'success') return failed(`the query failed${kindOfError(body)}`);
  const warnings = fieldAt(body, ['warnings']);
  if (warnings !== undefined && !isEmptyList(warnings)) return failed('the answer has warnings, so it may be partial');
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
  return `the provider answered HTTP ${status}${kindOfError(parsed(body))}`;
}

/** https://prometheus.io/docs/prometheus/latest/querying/api/ and web/api/v1/api.go. Every other value is free text. */
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

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

interface Sample {
  readonly evaluatedMs: number;
  readonly value: number | 'NaN' | '+Inf' | '-Inf';
}

/** The one sample of a result; undefined without one; text when it is no single number. */
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

/** As Go writes finite numbers (strconv.FormatFloat). */
const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

/** `[1768478400.123, "0.5"]`: seconds since 1970, and the value as text. */
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
  if (evaluatedMs > atMs + toleranceMs) return `the sample is ${lengthOf(evaluatedMs - atMs)} ahead of the clock here`;
  return evaluatedMs === beforeMs ? 'the answer is the one before it again' : undefined;
}

/** To the second: a fact that counts milliseconds is another one each time. */
function lengthOf(durationMs: number): string {
  return formatDuration(Math.round(durationMs / 1000) * 1000);
}
