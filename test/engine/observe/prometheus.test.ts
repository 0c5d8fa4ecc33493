import { describe, expect, it } from 'vitest';
import { readPrometheus } from '../../../engine/observe/readings.ts';

const atMs = Date.UTC(2026, 0, 15, 12);
const seconds = atMs / 1000;

interface Told {
  readonly status?: number;
  readonly beforeMs?: number;
}

/** Text is the body itself. */
function read(body: unknown, { status = 200, beforeMs }: Told = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return readPrometheus({ status, body: text }, { atMs, toleranceMs: 30_000, beforeMs });
}

function success(resultType: string, result: unknown, more: object = {}) {
  return { status: 'success', data: { resultType, result }, ...more };
}

const series = (value: unknown, labels: object = {}) => ({ metric: labels, value });
const vector = (...samples: readonly unknown[]) =>
  success(
    'vector',
    samples.map((value) => series(value)),
  );

const isValue = (value: number, evaluatedMs = atMs) => ({ reading: { atMs, result: 'value', value }, evaluatedMs });
const isError = (message: string) => ({ reading: { atMs, result: 'error', message } });

describe('an answer of Prometheus', () => {
  it.each([
    ['0', 0],
    ['0.25', 0.25],
    ['-3', -3],
    ['1e-07', 1e-7],
    ['1.5e+06', 1.5e6],
  ])('the value %s is a number', (text, value) => {
    expect(read(vector([seconds, text]))).toEqual(isValue(value));
    expect(read(success('scalar', [seconds, text]))).toEqual(isValue(value));
  });

  it.each(['NaN', '+Inf', '-Inf'])('the value %s is a text, because JSON has no such number', (value) => {
    const told = { reading: { atMs, result: 'notFinite', value }, evaluatedMs: atMs };
    expect(read(vector([seconds, value]))).toEqual(told);
    expect(read(success('scalar', [seconds, value]))).toEqual(told);
    expect(JSON.parse(JSON.stringify(told))).toEqual(told);
  });

  it.each(['1e999', 'Inf', '', ' ', '1,5', '0x10', '1_000', 'infinity', 'null', '12 pods', 'toString'])(
    'the value "%s" is no reading',
    (text) => {
      expect(read(vector([seconds, text]))).toEqual(isError('the value of the sample is not a number'));
    },
  );

  it('a timestamp with fractions of a second is one in milliseconds', () => {
    expect(read(vector([seconds + 0.123, '1']))).toEqual(isValue(1, atMs + 123));
  });

  it('an empty vector is no data', () => {
    expect(read(vector())).toEqual({ reading: { atMs, result: 'noData' } });
  });

  it.each([
    ['several series', vector([seconds, '0'], [seconds, '1']), 'the query answers with 2 series; a gate needs one number'],
    ['text', success('string', [seconds, '0']), 'the query answers with a string; a gate needs one number'],
    ['a range', success('matrix', []), 'the query answers with a matrix; a gate needs one number'],
    [
      'a histogram',
      success('vector', [{ metric: {}, histogram: [seconds, { count: '1', sum: '1' }] }]),
      'the query answers with a histogram; a gate needs one number',
    ],
    ['another type of result', success('streams', []), 'the answer has no result'],
    ['no result', { status: 'success' }, 'the answer has no result'],
    ['a vector that is none', success('vector', {}), 'the answer has no result'],
    ['a series without a sample', success('vector', [{ metric: {} }]), 'the answer has no sample'],
    ['a sample that is too short', vector([seconds]), 'the answer has no sample'],
    ['a value that is no text', vector([seconds, 0]), 'the sample has no value'],
    ['an instant that is no number', vector([String(seconds), '0']), 'the sample has no instant'],
    ['null', 'null', 'the query failed'],
    ['nothing', '', 'the answer is not JSON'],
    ['a page', '<html><body>It works!</body></html>', 'the answer is not JSON'],
    ['half of it', '{"status":"success","data":{"resultType":"vector","result":[', 'the answer is not JSON'],
    ['an error with status 200', { status: 'error', errorType: 'execution', error: 'x' }, 'the query failed: execution'],
    ['a kind of error that nobody knows', { status: 'error', errorType: 'https://secret', error: 'x' }, 'the query failed'],
  ])('%s is an error', (_what, body, message) => {
    expect(read(body)).toEqual(isError(message));
  });

  it.each([
    [401, 'Unauthorized', 'the provider does not accept the credentials (HTTP 401)'],
    [403, vector([seconds, '0']), 'the provider does not accept the credentials (HTTP 403)'],
    [302, '', 'the provider answered HTTP 302'],
    [204, '', 'the provider answered HTTP 204'],
    [
      400,
      { status: 'error', errorType: 'bad_data', error: 'unexpected token at https://secret' },
      'the provider answered HTTP 400: bad_data',
    ],
    [422, { status: 'error', errorType: 'execution', error: 'x' }, 'the provider answered HTTP 422: execution'],
    [503, { status: 'error', errorType: 'timeout', error: 'x' }, 'the provider answered HTTP 503: timeout'],
    [500, vector([seconds, '0']), 'the provider answered HTTP 500'],
  ])('status %i is an error with any body, and the error does not contain the body', (status, body, message) => {
    expect(read(body, { status })).toEqual(isError(message));
  });

  it('with warnings is an error, because it may be partial; infos and empty lists are ignored', () => {
    const data = [series([seconds, '0'])];
    const partial = isError('the answer has warnings, so it may be partial');
    expect(read(success('vector', data, { warnings: ['No StoreAPIs matched for this query'] }))).toEqual(partial);
    expect(read(success('vector', [], { warnings: ['remote read failed'] }))).toEqual(partial);
    expect(read(success('vector', data, { warnings: 'one' }))).toEqual(partial);
    expect(read(success('vector', data, { warnings: [], infos: ['PromQL info: metric might not be a counter'] }))).toEqual(isValue(0));
    expect(read(success('vector', data, { warnings: null }))).toEqual(isValue(0));
  });

  it('a sample that is too old or in the future is an error', () => {
    expect(read(vector([seconds - 30, '0']))).toEqual(isValue(0, atMs - 30_000));
    expect(read(vector([seconds + 30, '0']))).toEqual(isValue(0, atMs + 30_000));
    expect(read(vector([seconds - 600, '0']))).toEqual({ ...isError('the sample is 10m old'), evaluatedMs: atMs - 600_000 });
    expect(read(vector([seconds + 31, '0']))).toEqual({
      ...isError('the sample is 31s ahead of the clock of the agent'),
      evaluatedMs: atMs + 31_000,
    });
  });

  it('a sample with the time of the previous one is no new reading', () => {
    expect(read(vector([seconds, '0']), { beforeMs: atMs })).toEqual({
      ...isError('the answer repeats the previous sample'),
      evaluatedMs: atMs,
    });
    expect(read(vector([seconds, '0']), { beforeMs: atMs - 1 })).toEqual(isValue(0));
    expect(read(vector([seconds, '0']), { beforeMs: atMs + 1 })).toEqual(isValue(0));
  });
});
