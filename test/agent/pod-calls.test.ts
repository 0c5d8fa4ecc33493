import { describe, expect, it } from 'vitest';
import type { AgentEnv, PodRequest } from '../../agent/env.ts';
import { askToPrepare, cancelPreparation } from '../../agent/turn/pod-calls.ts';
import { virtualEnv } from '../kit/virtual-env.ts';

const silent = () => undefined;
const pod = { ordinal: 0, uid: 'u0', name: 'store-0', url: () => 'http://store-0:80/prepare' };

describe.each([
  ['asked to prepare', askToPrepare],
  ['told to stay', cancelPreparation],
])('a pod that is %s', (_, ask) => {
  it.each([
    ['for its whole time while nobody else can act', 60_000, Number.POSITIVE_INFINITY, [60_000]],
    ['for no longer than the Lease is certain', 60_000, 8000.5, [8000]],
    ['for its own time where that is shorter', 500, 700, [500]],
    ['not at all when too little time is left', 60_000, 900, []],
    ['not at all when another one may act', 60_000, -5, []],
  ])('is asked %s', async (_what, timeoutMs, leftMs, expected) => {
    const asked: PodRequest[] = [];
    const env: AgentEnv = {
      ...virtualEnv(),
      pods: {
        call: async (request) => {
          asked.push(request);
          return { status: 200, body: '' };
        },
      },
      log: { debug: silent, info: silent, warn: silent, error: silent },
    };
    await ask(env, [pod], { call: 'prepare', timeoutMs, leftMs: () => leftMs });
    expect(asked.map((request) => request.timeoutMs)).toEqual(expected);
  });
});
