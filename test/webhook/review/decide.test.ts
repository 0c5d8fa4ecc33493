import { describe, expect, it } from 'vitest';
import type { LogFields } from '../../../cluster/env.ts';
import { clientGone, decide } from '../../../webhook/review/decide.ts';
import { readReview } from '../../../webhook/review/read-review.ts';
import type { Answer, Endpoint, Review } from '../../../webhook/review/review.ts';
import { reviewText } from './reviews.ts';

function review(): Review {
  const read = readReview(Buffer.from(reviewText()), { maxDepth: 256, maxValues: 1000 });
  if ('refused' in read) throw new Error(read.refused.message);
  return read.review;
}

interface Asked {
  readonly handle: Endpoint['handle'];
  readonly onFailure?: Answer;
  readonly isOverloaded?: boolean;
  readonly signal?: AbortSignal;
}

async function decided({ handle, onFailure = { allowed: false, code: 500 }, isOverloaded = false, signal }: Asked) {
  const errors: LogFields[] = [];
  const silent = (): void => undefined;
  const log = { debug: silent, info: silent, warn: silent, error: (_: string, fields: LogFields = {}) => errors.push(fields) };
  const endpoint: Endpoint = { path: '/admission/test', handle, onFailure: (_, problem) => ({ ...onFailure, message: problem }) };
  const call = { deadlineMs: 1000, signal: signal ?? new AbortController().signal };
  const { answer, failure, text } = await decide(review(), { endpoint, call, isOverloaded, log });
  expect(JSON.parse(text)).toMatchObject({ response: { uid: review().uid, allowed: answer.allowed } });
  return { answer, failure, errors };
}

const never = (): Promise<Answer> => new Promise(() => undefined);

describe('a decision', () => {
  it('is the answer of the endpoint', async () => {
    const answer = { allowed: false, code: 403, message: 'no' };
    expect(await decided({ handle: async () => answer })).toEqual({ answer, failure: undefined, errors: [] });
  });

  it('is the answer to a failure if the endpoint rejects or throws; only the log has the reason', async () => {
    const throwing = (): Promise<Answer> => {
      throw new TypeError('token abc at 10.0.0.1');
    };
    for (const handle of [throwing, () => Promise.reject(new TypeError('token abc at 10.0.0.1'))]) {
      const { answer, failure, errors } = await decided({ handle });
      expect(answer).toEqual({
        allowed: false,
        code: 500,
        message: `the webhook failed to decide; its log has the cause under the uid ${review().uid}`,
      });
      expect(failure).toBe('error');
      expect(errors).toEqual([{ path: '/admission/test', uid: review().uid, error: 'TypeError: token abc at 10.0.0.1' }]);
    }
  });

  it('is the answer to a failure if the answer of the endpoint cannot be written', async () => {
    const patch = Array.from({ length: 11 }, () => ({ op: 'remove', path: '/a' }) as const);
    expect(await decided({ handle: async () => ({ allowed: true, patch }) })).toMatchObject({
      failure: 'error',
      answer: { allowed: false },
    });
  });

  it('is temporary at the deadline, which aborts the endpoint', async () => {
    const controller = new AbortController();
    let heard: AbortSignal | undefined;
    const handle = (_: Review, { signal }: { signal: AbortSignal }): Promise<Answer> => {
      heard = signal;
      controller.abort('the deadline has passed');
      return never();
    };
    const { answer, failure } = await decided({ handle, signal: controller.signal });
    expect(heard?.aborted).toBe(true);
    expect(failure).toBe('deadline');
    expect(answer).toEqual({
      allowed: false,
      code: 429,
      reason: 'TooManyRequests',
      retryAfterSeconds: 1,
      message: 'the webhook did not decide in time',
    });
  });

  it('is dropped if the client has gone', async () => {
    expect(await decided({ handle: never, signal: AbortSignal.abort(clientGone) })).toMatchObject({ failure: 'client-gone' });
  });

  it('is temporary under overload, without a call of the endpoint', async () => {
    const handle = (): Promise<Answer> => {
      throw new Error('asked');
    };
    const { answer, failure, errors } = await decided({ handle, isOverloaded: true });
    expect({ failure, errors }).toEqual({ failure: 'overload', errors: [] });
    expect(answer).toMatchObject({ allowed: false, code: 429, message: 'the webhook is overloaded' });
  });

  it('counts as unread if the endpoint allows a request because a read failed', async () => {
    const handle = () => Promise.resolve({ allowed: true, isUnjudged: true as const });
    expect(await decided({ handle })).toMatchObject({ answer: { allowed: true }, failure: 'unread' });
  });

  it('is kept if a failure allows', async () => {
    const allowed = { allowed: true };
    const { answer } = await decided({ handle: never, onFailure: allowed, isOverloaded: true });
    expect(answer).toEqual({ allowed: true, message: 'the webhook is overloaded' });
  });

  it('rejects if a failure has no answer either', async () => {
    const endpoint: Endpoint = {
      path: '/',
      handle: never,
      onFailure: () => {
        throw new Error('defect');
      },
    };
    const silent = (): void => undefined;
    const options = { endpoint, isOverloaded: true, log: { debug: silent, info: silent, warn: silent, error: silent } };
    const call = { deadlineMs: 0, signal: new AbortController().signal };
    await expect(decide(review(), { ...options, call })).rejects.toThrow('defect');
  });
});
