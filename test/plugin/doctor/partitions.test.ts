import { describe, expect, it } from 'vitest';
import { examine } from '../../../plugin/doctor/all.ts';
import type { Facts } from '../../../plugin/doctor/check.ts';
import { kitNowMs, statefulSet } from '../../kit/objects.ts';
import { facts } from './kit.ts';

/** What is not ok. */
function wrong(overrides: Partial<Facts>): readonly string[] {
  return examine(facts(overrides)).flatMap(({ verdict, check, code, message }) =>
    verdict === 'ok' ? [] : [`${verdict} ${check} ${code ?? '-'} ${message}`],
  );
}

function setNamed(name: string, overrides: object = {}) {
  return { ...statefulSet({ name }), namespace: 'mimir', updateStrategy: 'OnDelete' as const, podLabels: { name }, ...overrides };
}

describe('a StatefulSet with the partition that blocks every pod', () => {
  it('takes a StatefulSet to be of a group of the policy directory while the agent that decided about it is there', () => {
    const sets = [...facts().sets, setNamed('left', { updateStrategy: 'RollingUpdate', partition: 1_000_000 })];
    const other = { namespace: 'mimir', group: 'other', decidedMs: kitNowMs - 5000, leader: 'agent-1', zones: [{ statefulSet: 'left' }] };
    const published = [{ namespace: 'mimir', group: 'ingester', decidedMs: kitNowMs - 3000, leader: 'agent-1' }, other];
    expect(wrong({ sets, published })).toEqual([]);
    expect(wrong({ sets, published, leases: [] }).filter((text) => text.includes('RG6023'))).toHaveLength(1);
    expect(wrong({ sets: [...facts().sets, setNamed('free', { updateStrategy: 'RollingUpdate', partition: 3 })] })).toEqual([]);
  });

  it('is released by the agent while pods are outdated, because the admission policy denies a lower partition then', () => {
    const left = setNamed('left', { updateStrategy: 'RollingUpdate', partition: 1_000_000 });
    const outdated = { ...left, status: { ...left.status, updatedReplicas: 0 } };
    const [text] = wrong({ sets: [...facts().sets, outdated] });
    expect(text).toMatch(
      /^warn partition RG6023 .* do not reach its pods\. Not all its pods .*Define the group again.*onPolicyDeleted: release/,
    );
    expect(text).not.toContain('kubectl patch');
  });
});
