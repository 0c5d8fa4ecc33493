import { expect, it } from 'vitest';
import { logProblems } from '../../agent/process/serve-webhook.ts';
import { virtualEnv } from '../kit/virtual-env.ts';

it('problems of the webhooks are told once when they begin, and their end as well', async () => {
  const env = virtualEnv();
  const told: string[] = [];
  const silent = () => undefined;
  let problems: readonly string[] = [];
  const stop = logProblems(
    {
      timers: env.timers,
      log: {
        debug: silent,
        error: silent,
        info: (message) => void told.push(message),
        warn: (_message, fields) => void told.push(String(fields?.['problem'])),
      },
    },
    () => problems,
  );
  await env.advance(120_000);
  problems = ['the certificate ends soon'];
  await env.advance(180_000);
  problems = ['the certificate ends soon', 'configuration x cannot be written'];
  await env.advance(120_000);
  problems = [];
  await env.advance(120_000);
  expect(told).toEqual(['the certificate ends soon', 'configuration x cannot be written', 'webhook problems resolved']);
  stop();
  expect(env.timerCount()).toBe(0);
});
