import { describe, expect, it } from 'vitest';
import { Ledgers } from '../../agent/turn/ledgers.ts';
import type { Ledger } from '../../engine/snapshot.ts';
import { newCluster } from '../kit/cluster.ts';

const silent = () => undefined;
const group = { namespace: 'mimir', name: 'ingester' };
const empty: Ledger = { namespace: 'mimir', group: 'ingester', claims: [], downscales: [], preparations: [] };
const claimed: Ledger = { ...empty, claims: [{ verb: 'evictPod', zone: 'a', uid: 'u', ordinal: 0, atMs: 1000 }] };

function inMemory() {
  const { env, api } = newCluster();
  const pods = { call: () => Promise.reject(new Error('no pod listens')) };
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const options = { timeoutMs: 1000, mayUseMemory: () => true, mayWrite: () => true, onDegraded: silent };
  api.forbid('* configmaps');
  return { env, ledgers: new Ledgers({ ...env, pods, log }, options) };
}

describe('a ledger in memory', () => {
  it('is kept after its group is gone, if it has entries', async () => {
    const { env, ledgers } = inMemory();
    await env.finish(ledgers.write(group, empty, claimed));
    ledgers.keep([]);
    expect(await env.finish(ledgers.read(group))).toEqual(claimed);
  });

  it('is dropped with its group if it is empty', async () => {
    const { env, ledgers } = inMemory();
    await env.finish(ledgers.write(group, empty, { ...empty, epoch: 7 }));
    ledgers.keep([group]);
    expect(await env.finish(ledgers.read(group))).toMatchObject({ epoch: 7 });
    ledgers.keep([]);
    expect(await env.finish(ledgers.read(group))).toEqual(empty);
  });
});
