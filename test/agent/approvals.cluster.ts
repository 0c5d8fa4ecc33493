// Approvals on a real API server that are none of this run: of another revision, past their end, of a stranger, and of whom no webhook vouches for.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import type { InProcessAgent } from '../control-plane/agent-in-process.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { type Arena, openArena } from './arena.ts';

const namespace = 'approvals';
const apiVersion = 'rollout-group.dev/v1alpha1';
const ours = `/apis/${apiVersion}/namespaces/${namespace}`;

interface Asked {
  readonly runId: string;
  readonly fact: string;
  /** Of what is to be approved. */
  readonly digest?: string | undefined;
}

/** What the last turn says of the approval that it waits for. */
function askedOf(agent: InProcessAgent): Asked | undefined {
  const { run, waits } = agent.turns().at(-1)?.decision ?? {};
  const wait = waits?.find(({ rule }) => rule === 'approval');
  if (run === undefined || wait === undefined) return undefined;
  return { runId: run.id, fact: wait.fact, digest: 'digest' in wait && typeof wait.digest === 'string' ? wait.digest : undefined };
}

describeOnControlPlane('an approval', (controlPlane) => {
  let recorder: HistoryRecorder;
  let arena: Arena;

  beforeAll(async () => {
    for (const kind of ['RolloutGroup', 'RolloutIntent'] as const)
      await controlPlane().client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition(kind) ?? {});
    recorder = await recordHistory(controlPlane());
    arena = await openArena(controlPlane(), recorder, { namespace, zones: ['a', 'b'], replicas: 1 });
    await controlPlane().client.create(`${ours}/rolloutgroups`, {
      apiVersion,
      kind: 'RolloutGroup',
      metadata: { name: 'ingester' },
      spec: {
        members: { zones: ['a', 'b'].map((zone) => ({ name: zone, statefulSet: `ingester-zone-${zone}` })) },
        replicas: { leader: true },
        rollout: {
          strategy: 'onDelete',
          rotateBy: 'delete',
          waves: [
            { name: 'first', zones: ['a'], percent: 100 },
            { name: 'rest', zones: ['b'], percent: 100, before: { approval: { count: 1, from: ['oncall'] } } },
          ],
        },
      },
    });
  });
  afterAll(async () => {
    await arena.close();
    recorder.stop();
  });

  let count = 0;
  const start = (areIntentsStamped = true): Promise<InProcessAgent> =>
    arena.startInside({ name: `agent-${count++}`, config: { areIntentsStamped } });

  async function untilAsked(agent: InProcessAgent, isSo: (asked: Asked) => boolean = () => true): Promise<Asked> {
    for (const endsAt = Date.now() + 60_000; ; await delay(50)) {
      const asked = askedOf(agent);
      if (asked !== undefined && isSo(asked)) return asked;
      if (Date.now() > endsAt) throw new Error(`nobody is asked, or otherwise: ${JSON.stringify(asked)}`);
    }
  }

  /** As the webhook would have written it down: nobody but the engine says that it does not count. */
  async function approve(name: string, { runId, digest }: Asked, more: object = {}, groups: readonly string[] = ['oncall']): Promise<void> {
    const requestedBy = { user: name, groups, at: new Date().toISOString() };
    const said = { group: 'ingester', action: 'approve', runId, wave: 'rest', requestedBy, ...(digest === undefined ? {} : { digest }) };
    await controlPlane().client.create(`${ours}/rolloutintents`, {
      apiVersion,
      kind: 'RolloutIntent',
      metadata: { name },
      spec: { ...said, ...more },
    });
  }

  const images = async (): Promise<string> =>
    (await arena.group.pods()).map((pod) => /server:(\d)/.exec(JSON.stringify(pod))?.[1]).join('');

  it('never counts past its end, from a stranger, for another revision, or without a verified requester; a valid one does', {
    timeout: 200_000,
  }, async () => {
    let agent = await start();
    await arena.group.setImage('example.com/server:2');
    let asked = await untilAsked(agent);
    await approve('stranger', asked, {}, ['dev']);
    await agent.stop();
    await approve('late', asked, { expires: new Date(Date.now() + 1000).toISOString() });
    await delay(1500);
    agent = await start();
    asked = await untilAsked(agent);
    expect([asked.fact, await images()]).toEqual(['0 of 1 approvals from oncall', '21']);

    await agent.stop();
    const before = asked.runId;
    await approve('earlier', asked);
    await arena.group.setImage('example.com/server:3');
    agent = await start();
    asked = await untilAsked(agent, ({ runId }) => runId !== before);
    expect([asked.fact, await images()]).toEqual(['0 of 1 approvals from oncall', '31']);

    await agent.stop();
    agent = await start(false);
    await approve('anna', asked);
    asked = await untilAsked(agent, ({ fact }) => fact.includes('without an identity'));
    expect([asked.fact.split(',')[0], await images()]).toEqual(['0 of 1 approvals from oncall', '31']);

    await agent.stop();
    await start();
    await arena.group.untilRolled(60_000, { isAdopted: false });
    expect(await images()).toBe('33');
    await arena.expectKept();
  });
});
