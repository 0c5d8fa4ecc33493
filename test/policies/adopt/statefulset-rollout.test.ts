// StatefulsetRollouts of bedrock.operator.slack.com: what each field becomes, and what is said about those that become nothing.
import { describe, expect, it } from 'vitest';
import { waveTarget } from '../../../engine/amount.ts';
import { lintPolicies } from '../../../policies/lint/lint.ts';
import { manifestText, writeDocument } from '../../../policies/write.ts';
import { converted, convertedRollout, rollout, said, statefulSetText } from './foreign-kit.ts';

const budgetNotice =
  'RG7003 6:5 the PodDisruptionBudget of queue limits how many pods are unavailable at once; without a budget, the limit is one pod';

describe('a StatefulsetRollout', () => {
  it('becomes a group of its StatefulSet, with the pace of the budget of its pods', () => {
    const { groups, documents, findings } = convertedRollout();
    expect(said({ findings })).toEqual([budgetNotice]);
    expect(groups[0]?.metadata).toEqual({ name: 'queue', namespace: 'shop' });
    expect(groups[0]?.spec).toMatchObject({
      members: { zones: [{ name: 'queue', statefulSet: 'queue' }] },
      rollout: { strategy: 'onDelete', rotateBy: 'evict', maxUnavailable: 'fromBudget', minInterval: '0s' },
    });
    expect([groups[0]?.spec.rollout.waves, groups[0]?.spec.gates, groups[0]?.spec.notify, documents]).toEqual([
      undefined,
      undefined,
      undefined,
      [],
    ]);
  });

  it('has the StatefulSet as a separate manifest, without server fields', () => {
    const { statefulSets } = convertedRollout('', { set: 'updateStrategy: { type: OnDelete }, serviceName: q' });
    expect(statefulSets).toEqual([
      {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { name: 'queue', namespace: 'shop' },
        spec: { replicas: 4, updateStrategy: { type: 'OnDelete' }, serviceName: 'q', template: { metadata: { labels: { app: 'queue' } } } },
      },
    ]);
  });

  it.each([
    [100, undefined],
    [120, undefined],
    [
      50,
      [
        { name: 'percent-50', percent: 50 },
        { name: 'rest', percent: 100, before: { approval: { count: 1 } } },
      ],
    ],
    [
      1,
      [
        { name: 'percent-1', percent: 1 },
        { name: 'rest', percent: 100, before: { approval: { count: 1 } } },
      ],
    ],
    [0, [{ name: 'rest', percent: 100, before: { approval: { count: 1 } } }]],
    [-3, [{ name: 'rest', percent: 100, before: { approval: { count: 1 } } }]],
  ])('of %i percent stops there until the rest is approved', (percent, waves) => {
    const written = convertedRollout(`\n  percent: ${percent}`).groups[0]?.spec.rollout.waves;
    if (waves === undefined) expect(written).toBeUndefined();
    else expect(written).toMatchObject(waves);
    expect(written?.length).toBe(waves?.length);
  });

  it.each([
    [1, [1, 1, 1, 1, 1, 1, 1, 1]],
    [2, [1, 1, 1, 1, 1, 1, 1, 2]],
    [3, [1, 1, 1, 1, 2, 2, 2, 3]],
    [4, [1, 1, 1, 2, 2, 3, 3, 4]],
    [5, [1, 1, 2, 2, 3, 4, 4, 5]],
    [7, [1, 1, 2, 3, 4, 6, 6, 7]],
    [10, [1, 1, 3, 4, 5, 8, 9, 10]],
    [33, [1, 4, 9, 11, 17, 25, 32, 33]],
    [100, [1, 10, 25, 33, 50, 75, 99, 100]],
    [1000, [10, 100, 250, 330, 500, 750, 990, 1000]],
  ])('of %i pods is the rounded-up percentage, and below 100 percent at most all pods except one', (replicas, targets) => {
    const percents = [1, 10, 25, 33, 50, 75, 99, 100];
    const written = percents.map((percent) => {
      const wave = convertedRollout(`\n  percent: ${percent}`, { replicas }).groups[0]?.spec.rollout.waves?.[0];
      return waveTarget({ percent: wave?.percent ?? 100 }, replicas);
    });
    expect(written).toEqual(targets);
  });

  it('keeps its interval and its pause', () => {
    const { groups, findings } = convertedRollout('\n  minPodEvictionIntervalSeconds: 90\n  pauseRequested: true');
    expect(groups[0]?.spec.rollout.minInterval).toBe('1m30s');
    expect(groups[0]?.spec.members.zones?.[0]?.paused).toBe(true);
    expect(said({ findings })).toContain('RG7003 6:19 spec.pauseRequested is written as paused: true of the zone');
  });

  it('queries Consul about each of its services, at an address that a user must set', () => {
    const { groups, documents, findings } = convertedRollout('\n  serviceDiscovery: { dc: eu1, serviceNames: [queue, queue_api] }');
    expect(groups[0]?.spec.gates).toMatchObject([
      { name: 'queue', consul: { source: 'consul', service: 'queue', datacenter: 'eu1', passing: 4 }, noData: 'pass', failureLimit: 0 },
      { name: 'queue-api', consul: { service: 'queue_api', passing: 4 } },
    ]);
    expect(groups[0]?.spec.rollout.waves).toEqual([
      { name: 'all', zones: ['queue'], percent: 100, after: { gates: ['queue', 'queue-api'] } },
    ]);
    expect(documents).toMatchObject([{ kind: 'MetricSource', spec: { consul: { url: 'https://consul.invalid:8501' } } }]);
    expect(said({ findings })).toContain(
      'RG7005 5:46 the object has no Consul address; the MetricSource has the placeholder https://consul.invalid:8501',
    );
  });

  it('notifies the Slack channel of its ID, and reports a name that gets no message', () => {
    const byId = convertedRollout('\n  channel: C0123456789');
    expect(byId.groups[0]?.spec.notify).toEqual([{ channel: 'slack-c0123456789', events: ['started', 'waiting', 'failed', 'completed'] }]);
    expect(byId.documents).toMatchObject([{ spec: { slack: { channel: 'C0123456789', token: { name: 'slack', key: 'token' } } } }]);
    const byName = convertedRollout("\n  channel: '#deploys'");
    expect([byName.groups[0]?.spec.notify, byName.documents]).toEqual([undefined, []]);
    expect(said(byName)).toContain(
      'RG7005 5:12 the Slack channel #deploys is a name, but a NotificationChannel needs a channel ID; no Slack message is sent',
    );
  });

  it('sends a signed callback at its end, and only with encryption', () => {
    const { groups, documents } = convertedRollout('\n  bapi: { bapiUrl: https://user:hunter2@api.example.com/done?x=1, stageId: a }');
    expect(groups[0]?.spec.notify).toEqual([{ channel: 'api-example-com', events: ['failed', 'completed'] }]);
    expect(documents).toMatchObject([
      { spec: { callback: { url: 'https://api.example.com/done', signingKey: { name: 'bedrock-callback', key: 'signing-key' } } } },
    ]);
    const open = convertedRollout('\n  bapi: { bapiUrl: http://api.example.com/done }');
    expect([open.groups[0]?.spec.notify, open.documents]).toEqual([undefined, []]);
    expect(said(open)).toContain('RG7005 5:20 spec.bapi.bapiUrl is not an https address; no callback is sent');
  });

  it('reports every omitted field', () => {
    const spec =
      '\n  bapi: { bapiUrl: https://user:hunter2@api.example.com/, stageId: a, extra: 1 }\n  rolloutIdentity: x\n  percent: 10\n  window: night';
    const conversion = convertedRollout(spec, {
      status: 'status: { phase: RolloutFailed }\n',
      set: 'updateStrategy: { type: RollingUpdate }',
    });
    expect(JSON.stringify(conversion)).not.toContain('hunter2');
    expect(conversion.findings.map(({ code, pointer }) => `${code} ${pointer}`)).toEqual([
      'RG7002 /spec/bapi/bapiUrl',
      'RG7004 /spec/bapi/bapiUrl',
      'RG7003 /spec/bapi/stageId',
      'RG7002 /spec/bapi/extra',
      'RG7003 /spec/rolloutIdentity',
      'RG7003 /spec/percent',
      'RG7002 /spec/window',
      'RG7003 /spec/statefulset',
      'RG7002 /spec/statefulset/spec/updateStrategy/type',
      'RG7007 /status/phase',
    ]);
    expect(said(convertedRollout('', { status: 'status: { phase: RolloutDone }\n' }))).toEqual([budgetNotice]);
  });

  it('without a StatefulSet, or with the StatefulSet of another object, becomes no group', () => {
    const without = converted([{ name: 'a.yaml', text: rollout().replace(/ {2}statefulset:[\s\S]*/, '  percent: 1\n') }]);
    expect([without.groups, without.statefulSets]).toEqual([[], []]);
    expect(said(without)[0]).toBe('RG7001 4:1 the object is not converted: spec.statefulset is missing');
    const other = rollout().replace('name: queue, namespace', 'name: other, namespace');
    const twice = converted([
      { name: 'a.yaml', text: rollout() },
      { name: 'b.yaml', text: other },
    ]);
    expect([twice.groups, twice.statefulSets]).toEqual([[], []]);
    expect(said(twice).filter((text) => text.startsWith('RG7001'))).toHaveLength(2);
  });

  it('does not use the name of another group', () => {
    const sameName = statefulSetText({ metadata: ', labels: { rollout-group: queue }', strategy: 'OnDelete' });
    const { groups, findings } = converted([
      { name: 'a.yaml', text: rollout() },
      { name: 'b.yaml', text: sameName },
    ]);
    expect(groups).toEqual([]);
    expect(said({ findings })[0]).toBe('RG7001 3:19 the object is not converted: another group has the name queue');
  });

  it('becomes documents that lint accepts', () => {
    const spec =
      '\n  percent: 25\n  channel: C0123456789\n  bapi: { bapiUrl: https://api.example.com }\n  serviceDiscovery: { serviceNames: [queue] }';
    const { groups, documents, statefulSets } = convertedRollout(spec);
    const texts = [...[...groups, ...documents].map((document) => writeDocument(document)), ...statefulSets.map(manifestText)];
    expect(lintPolicies(texts.map((text, index) => ({ name: `${index}.yaml`, text }))).findings).toEqual([]);
  });
});
