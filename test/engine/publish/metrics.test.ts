import { describe, expect, it } from 'vitest';
import { decideGroup } from '../../../engine/decide/decide.ts';
import { publishedDecision, samePublished } from '../../../engine/publish/decision.ts';
import { boundInputs, metricsOf } from '../../../engine/publish/metrics.ts';
import { type PublishedDecision, publishedByteLimit } from '../../../engine/publish/published.ts';
import { readPublished } from '../../../engine/publish/read.ts';
import type { MetricView } from '../../../engine/snapshot.ts';
import type { PolicyDefinition } from '../../../policies/definition.ts';
import { group } from '../../kit/groups.ts';
import { kitNowMs } from '../../kit/objects.ts';
import { minuteMs, policy, policyRule } from '../../kit/questions.ts';
import { snapshotOf } from '../../kit/snapshots.ts';

const ingester = group();
const queue = { source: 'prod', query: 'max(queue)', noData: 'unknown', maxAgeMs: 2 * minuteMs } as const;
const busy = policyRule({ when: { '>': [{ var: 'inputs.metrics.queue' }, 100] } });
const safety = policy({ metrics: { queue, idle: queue }, rules: [busy] });
const reading: MetricView = { namespace: 'mimir', policy: 'safety', input: 'queue', value: 12, atMs: kitNowMs - minuteMs };

function publish(metrics: readonly MetricView[], policies: readonly PolicyDefinition[] = [safety]): PublishedDecision {
  const snapshot = snapshotOf({ groups: [ingester], metrics, policies });
  return publishedDecision({ group: ingester, decision: decideGroup(snapshot, ingester), snapshot, atMs: kitNowMs });
}

/** As somebody reads it who judges by it. */
function taken(published: PublishedDecision, policies: readonly PolicyDefinition[] = [safety], nowMs = kitNowMs): readonly MetricView[] {
  const stored = readPublished(JSON.stringify(published));
  if ('unknown' in stored) throw new Error(stored.unknown);
  return metricsOf(stored, boundInputs(policies, ingester, undefined), nowMs);
}

describe('published readings of metric inputs', () => {
  it('are the readings of rules that apply to the group, with source and age', () => {
    expect(publish([reading]).metrics).toEqual([
      {
        namespace: 'mimir',
        policy: 'safety',
        input: 'queue',
        source: 'prod',
        question: expect.stringMatching(/^[0-9a-f]{16}$/),
        maxAgeMs: 2 * minuteMs,
        value: 12,
        atMs: kitNowMs - minuteMs,
      },
    ]);
    expect(publish([reading], [policy({ ...safety, targets: { groups: ['store'] } })]).metrics).toBeUndefined();
    expect(publish([reading], [policy({ ...safety, rules: [] })]).metrics).toBeUndefined();
  });

  it.each<[string, readonly MetricView[]]>([
    ['a value', [reading]],
    ['no data', [{ ...reading, value: { unknown: 'no data' } }]],
    ['a value with what failed since', [{ ...reading, problem: 'the provider refuses connections' }]],
  ])('are the same after writing and reading: %s', (_name, metrics) => {
    expect(taken(publish(metrics))).toEqual(metrics);
  });

  it('are absent without a reading, for another query, and from the future', () => {
    expect(taken(publish([]))).toEqual([]);
    expect(publish([]).metrics).toHaveLength(1);
    const other = policy({ ...safety, metrics: { queue: { ...queue, query: 'min(queue)' } } });
    expect(taken(publish([reading]), [other])).toEqual([]);
    expect(taken(publish([reading]), [policy({ ...safety, name: 'other' })])).toEqual([]);
    expect(taken(publish([reading]), [safety], kitNowMs - minuteMs - 30_000)).toHaveLength(1);
    expect(taken(publish([reading]), [safety], kitNowMs - minuteMs - 30_001)).toEqual([]);
  });

  it('change the decision if the value changes, or if they are newer by a third of their age', () => {
    const before = publish([reading]);
    const later = (ms: number, value = 12) => publish([{ ...reading, atMs: reading.atMs + ms, value }]);
    expect(samePublished(before, later(39_999))).toBe(true);
    expect(samePublished(before, later(40_000))).toBe(false);
    expect(samePublished(before, later(0, 13))).toBe(false);
    expect(samePublished(publish([]), before)).toBe(false);
    expect(samePublished(before, publish([{ ...reading, problem: 'no answer came' }]))).toBe(false);
  });

  it('are at most fifty, and are omitted last if a decision is too long', () => {
    const names = Array.from({ length: 60 }, (_, index) => `metric${String(index).padStart(2, '0')}`);
    const rules = names.map((name) =>
      policyRule({ name, when: { '>': [{ var: `inputs.metrics.${name}` }, 1] }, message: 'm'.repeat(400) }),
    );
    const many = policy({ metrics: Object.fromEntries(names.map((name) => [name, queue])), rules });
    const published = publish(
      names.map((input) => ({ ...reading, input })),
      [many],
    );
    expect(published.metrics).toHaveLength(50);
    expect(new TextEncoder().encode(JSON.stringify(published)).length).toBeLessThanOrEqual(publishedByteLimit);
  });
});
