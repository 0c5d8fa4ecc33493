import { describe, expect, it } from 'vitest';
import type { LogFields } from '../../agent/env.ts';
import { turnLog } from '../../agent/process/turn-log.ts';
import { factsOf } from '../../agent/published/event-facts.ts';
import { group } from '../kit/groups.ts';
import { writersWorld } from './writers-kit.ts';

function setup(one = group({ zones: ['a', 'b'] })) {
  const world = writersWorld([], one);
  const lines: (readonly [string, string, LogFields | undefined])[] = [];
  const at = (level: string) => (message: string, fields?: LogFields) => void lines.push([level, message, fields]);
  const listener = turnLog({ debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') });
  /** What was said since the last look, without the level debug. */
  const said = () => lines.splice(0).filter(([level]) => level !== 'debug');
  return { ...world, listener, said };
}

describe('the log of turns', () => {
  it('has each action with its result', () => {
    const { listener, report, replaced, said } = setup();
    listener.turnEnded(
      report({ updated: [3, 3], target: 'old', performed: [replaced('a', 1), { ...replaced('a', 2), result: 'failed', message: 'no' }] }),
    );
    const fields = { namespace: 'mimir', group: 'ingester', zone: 'a', statefulset: 'ingester-zone-a', reason: 'outdated' };
    expect(said()).toEqual([
      ['info', 'terminating pod', { ...fields, pod: 'ingester-zone-a-1', result: 'done' }],
      ['warn', 'terminating pod', { ...fields, pod: 'ingester-zone-a-2', result: 'failed', err: 'no' }],
    ]);
  });

  it('names the pods that a partition replaces, also in an Event', () => {
    const { listener, report, said } = setup();
    const pods = [2, 1].map((ordinal) => ({ pod: `ingester-zone-a-${ordinal}`, ordinal, uid: `uid-${ordinal}` }));
    const target = { namespace: 'mimir', zone: 'a', statefulSet: 'ingester-zone-a', uid: 'u', resourceVersion: '1' };
    const action = { kind: 'setPartition', ...target, from: 3, to: 1, because: 'outdated', pods } as const;
    const turn = report({ updated: [0, 0], performed: [{ action, result: 'done' }] });
    listener.turnEnded(turn);
    const fields = { namespace: 'mimir', group: 'ingester', zone: 'a', statefulset: 'ingester-zone-a', reason: 'outdated', from: 3, to: 1 };
    expect(said()[0]).toEqual([
      'info',
      'setting the partition',
      { ...fields, pods: 'ingester-zone-a-2,ingester-zone-a-1', result: 'done' },
    ]);
    expect(factsOf(turn, undefined).facts.map(({ reason, note }) => `${reason}: ${note}`)).toContain(
      'PodReplaced: replaced ingester-zone-a-2, ingester-zone-a-1',
    );
    const failed = report({ updated: [0, 0], performed: [{ action, result: 'refused', message: 'forbidden' }] });
    expect(factsOf(failed, undefined).facts.map(({ reason, note }) => `${reason}: ${note}`)).toContain(
      'PodNotReplaced: the partition of ingester-zone-a was not set to 1: forbidden',
    );
  });

  it('reports a rule that blocks a group once, and its end', () => {
    const { listener, report, said } = setup(
      group({
        zones: [
          { name: 'a', paused: true },
          { name: 'b', paused: true },
        ],
      }),
    );
    for (let count = 0; count < 3; count += 1) listener.turnEnded(report({ updated: [0, 0] }));
    expect(said().map(([level, message, fields]) => [level, message, fields?.['rule']])).toEqual([['info', 'group is blocked', 'paused']]);
    listener.turnEnded(report({ updated: [3, 3] }));
    expect(said().map(([, message]) => message)).toEqual(['group is no longer blocked']);
  });

  it('has a failure once until a turn succeeds or another failure occurs', () => {
    const { listener, report, said } = setup();
    const turns = ['first', 'first', 'second', undefined, 'second'];
    for (const error of turns) listener.turnEnded(report({ updated: [3, 3], target: 'old', ...(error === undefined ? {} : { error }) }));
    expect(said().map(([, message, fields]) => [message, fields?.['err']])).toEqual([
      ['reconcile failed', 'first'],
      ['reconcile failed', 'second'],
      ['reconcile failed', 'second'],
    ]);
  });

  it('names a missing part, and reports when it is available', () => {
    const { listener, said } = setup();
    const lease = { id: 'lease', reason: 'forbidden', message: 'no Lease' } as const;
    listener.degraded?.([lease]);
    listener.degraded?.([lease, { ...lease, id: 'events' }]);
    listener.degraded?.([]);
    expect(said().map(([level, message, fields]) => [level, message, fields?.['part']])).toEqual([
      ['warn', 'degraded', 'lease'],
      ['warn', 'degraded', 'events'],
      ['info', 'no longer degraded', 'lease'],
      ['info', 'no longer degraded', 'events'],
    ]);
  });
});
