import { afterEach, describe, expect, it } from 'vitest';
import type { Answer, Call, Review } from '../../../webhook/review/review.ts';
import { allowedMs } from '../../../webhook/server/exchange.ts';
import { reviewText } from '../review/reviews.ts';
import { ask, closeAll, endpoint, gate, keepAliveAgent, rawConnection, responseOf, serve, until } from './served.ts';

afterEach(closeAll);

const never = (): Promise<Answer> => new Promise(() => undefined);

describe('the time of a request', () => {
  it('is the minimum of the setting, the endpoint and the timeout of the API server', () => {
    const time = { configuredMs: 9000 };
    expect(allowedMs('/admission/test', time)).toBe(9000);
    expect(allowedMs('/admission/test', { ...time, endpointMs: 4000 })).toBe(4000);
    expect(allowedMs('/admission/test', { ...time, endpointMs: 20_000 })).toBe(9000);
    expect(allowedMs('/admission/test?timeout=10s', time)).toBe(9000);
    expect(allowedMs('/admission/test?timeout=30s', time)).toBe(9000);
    expect(allowedMs('/admission/test?timeout=5s', time)).toBe(4000);
    expect(allowedMs('/admission/test?x=1&timeout=2s', time)).toBe(1600);
    expect(allowedMs('/admission/test?timeout=1s&x=1', { ...time, endpointMs: 4000 })).toBe(800);
  });

  it('is not read from a query that no API server sends', () => {
    for (const query of [
      'timeout=0s',
      'timeout=31s',
      'timeout=999s',
      'timeout=1m',
      'timeout=-1s',
      'timeout=1.5s',
      'timeout=',
      'mytimeout=1s',
      'timeout=1sx',
    ]) {
      expect(allowedMs(`/admission/test?${query}`, { configuredMs: 9000 })).toBe(9000);
    }
  });
});

describe('at the deadline', () => {
  it('the request gets the failure answer of the endpoint, and its signal is aborted', async () => {
    let call: Call | undefined;
    const hanging = (_: Review, given: Call): Promise<Answer> => {
      call = given;
      return never();
    };
    const denying = endpoint(hanging, { withinMs: 150 });
    const forgiving = endpoint(hanging, {
      path: '/admission/kind',
      withinMs: 150,
      onFailure: () => ({ allowed: true, warnings: ['not decided'] }),
    });
    const { port, decided, lines } = await serve({ endpoints: [denying, forgiving] });
    expect(responseOf(await ask(port))).toMatchObject({
      allowed: false,
      status: {
        code: 429,
        reason: 'TooManyRequests',
        details: { retryAfterSeconds: 1 },
        message: 'the webhook did not decide in time',
      },
    });
    expect(call?.signal.aborted).toBe(true);
    expect(responseOf(await ask(port, { path: '/admission/kind' }))).toEqual({
      uid: '705ab4f5-6393-11e8-b7cc-42010a800002',
      allowed: true,
      warnings: ['not decided'],
    });
    expect(decided).toMatchObject([
      { allowed: false, failure: 'deadline' },
      { allowed: true, failure: 'deadline' },
    ]);
    expect(lines.slice(1).map(({ level, fields }) => `${level} ${fields['failure']}`)).toEqual(['warn deadline', 'warn deadline']);
  });

  it('a later answer or error of a handler is ignored', async () => {
    const { passed, open } = gate();
    let calls = 0;
    const late = async (): Promise<Answer> => {
      const isFirst = calls++ === 0;
      await passed;
      if (isFirst) return { allowed: true };
      throw new Error('late');
    };
    const { port } = await serve({ endpoints: [endpoint(late, { withinMs: 100 })] });
    const replies = await Promise.all([ask(port), ask(port)]);
    open();
    for (const reply of replies) expect(responseOf(reply)).toMatchObject({ allowed: false });
    await passed;
  });
});

describe('a client that disconnects', () => {
  it('ends the work for its request', async () => {
    let call: Call | undefined;
    const hanging = (_: Review, given: Call): Promise<Answer> => {
      call = given;
      return never();
    };
    const { port, answered, decided } = await serve({ endpoints: [endpoint(hanging)] });
    const { socket } = await rawConnection(port);
    const body = reviewText();
    socket.write(
      `POST /admission/test HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    await until(() => call !== undefined);
    expect(call?.signal.aborted).toBe(false);
    socket.destroy();
    await until(() => answered.length === 1);
    expect(call?.signal.aborted).toBe(true);
    expect(decided).toMatchObject([{ failure: 'client-gone' }]);
  });
});

describe('an endpoint that fails', () => {
  it('gets its failure answer, without a trace of the error', async () => {
    const failing = endpoint(async () => {
      throw new Error('secret at 10.1.2.3');
    });
    const { port, lines } = await serve({ endpoints: [failing] });
    const reply = await ask(port);
    expect(responseOf(reply)).toMatchObject({ allowed: false, status: { code: 500 } });
    expect(reply.body).not.toMatch(/secret|10\.1|\bat |\.ts/);
    expect(JSON.stringify(lines)).toContain('secret at 10.1.2.3');
    expect(JSON.stringify(lines)).not.toMatch(/\bat .*\.ts/);
  });

  it('leaves the answer to the failure policy if the failure has no answer either', async () => {
    const failing = endpoint(
      async () => {
        throw new Error('one');
      },
      {
        onFailure: () => {
          throw new Error('two');
        },
      },
    );
    const { port } = await serve({ endpoints: [failing] });
    expect(await ask(port)).toMatchObject({ status: 500, body: 'internal error\n' });
  });
});

describe('too many requests', () => {
  it('get the failure answer of their endpoint as temporary, and others continue', async () => {
    const { passed, open } = gate();
    let asked = 0;
    const holding = async (): Promise<Answer> => {
      asked++;
      await passed;
      return { allowed: true };
    };
    const endpoints = [endpoint(holding), endpoint(holding, { path: '/admission/kind', onFailure: () => ({ allowed: true }) })];
    const { port, decided } = await serve({ endpoints, limits: { maxInHandling: 3 } });
    const agent = keepAliveAgent(10);
    const held = Array.from({ length: 3 }, () => ask(port, { agent }));
    await until(() => asked === 3);
    const refused = await Promise.all(Array.from({ length: 5 }, () => ask(port, { agent })));
    for (const reply of refused) {
      expect(responseOf(reply)).toMatchObject({
        allowed: false,
        status: { code: 429, message: 'the webhook is overloaded', details: { retryAfterSeconds: 1 } },
      });
    }
    expect(responseOf(await ask(port, { path: '/admission/kind', agent }))).toMatchObject({ allowed: true });
    open();
    for (const reply of await Promise.all(held)) expect(responseOf(reply)).toMatchObject({ allowed: true });
    expect(responseOf(await ask(port, { agent }))).toMatchObject({ allowed: true });
    agent.destroy();
    expect(asked).toBe(4);
    expect(decided.filter(({ failure }) => failure === 'overload')).toHaveLength(6);
  });
});
