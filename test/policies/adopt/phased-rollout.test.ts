// PhasedRollouts of sts.plus: what each field becomes, and what is said about those that become nothing.
import { describe, expect, it } from 'vitest';
import { lintPolicies } from '../../../policies/lint/lint.ts';
import { writeDocument } from '../../../policies/write.ts';
import { converted, convertedPhased, phased, said, statefulSetText } from './foreign-kit.ts';

const usualNotice = 'RG7003 5:14 the gate is read before each of the 3 pods; pods of a later scale-up belong to the last wave';

describe('a PhasedRollout', () => {
  it('becomes a group of one StatefulSet with pods that are replaced one by one, each after its gate', () => {
    const { groups, findings } = convertedPhased();
    expect(said({ findings })).toEqual([usualNotice]);
    expect(groups[0]?.metadata).toEqual({ name: 'db', namespace: 'shop' });
    expect(groups[0]?.spec.members.zones).toEqual([{ name: 'db', statefulSet: 'db' }]);
    expect(groups[0]?.spec.rollout).toMatchObject({ strategy: 'partition', order: 'descending', maxUnavailable: 1, onFailure: 'pause' });
    expect(groups[0]?.spec.rollout.waves).toEqual([
      { name: 'pod-1', zones: ['db'], pods: 1, before: { gates: ['check'] } },
      { name: 'pod-2', zones: ['db'], pods: 2, before: { gates: ['check'] } },
      { name: 'pod-3', zones: ['db'], percent: 100, before: { gates: ['check'] } },
    ]);
  });

  it('has the waits, queries and counts of the object, and the values of the original webhook if they are missing or 0', () => {
    const numbers = (check?: string) => {
      const [gate] = convertedPhased(check === undefined ? {} : { check }).groups[0]?.spec.gates ?? [];
      return [gate?.initialDelay, gate?.every, gate?.consecutive];
    };
    expect(numbers()).toEqual(['1m', '1m', 3]);
    expect(numbers('\n    initialDelaySeconds: 90\n    periodSeconds: 5\n    successThreshold: 7')).toEqual(['1m30s', '5s', 7]);
    expect(numbers('\n    initialDelaySeconds: 0\n    periodSeconds: 0\n    successThreshold: 0')).toEqual(['1m', '1m', 3]);
    expect(said(convertedPhased({ check: '\n    periodSeconds: 0' }))).toContain(
      'RG7003 10:20 spec.check.periodSeconds is 0; the operator uses its default 60',
    );
  });

  it('takes any series as a success and none as a failure, and never fails for failures', () => {
    const [gate] = convertedPhased({ expr: 'rate(errors[5m]) < 0.1' }).groups[0]?.spec.gates ?? [];
    expect(gate).toMatchObject({
      prometheus: { source: 'prom', query: 'count(rate(errors[5m]) < 0.1)' },
      pass: { '>=': [{ var: 'value' }, 1] },
      noData: 'fail',
      onError: 'hold',
      failureLimit: 0,
      mode: 'enforce',
    });
  });

  it('queries as often as its object, also if that is more often than a source usually allows', () => {
    const limitsOf = (period: number) => convertedPhased({ check: `\n    periodSeconds: ${period}` }).documents[0]?.spec;
    expect(limitsOf(5)).toMatchObject({ limits: { minInterval: '5s' } });
    expect(limitsOf(30)).toMatchObject({ limits: { minInterval: '15s' } });
  });

  it('with standardRollingUpdate has a gate in mode observe', () => {
    const { groups, findings } = convertedPhased({ spec: '\n  standardRollingUpdate: true' });
    expect(groups[0]?.spec.gates?.[0]?.mode).toBe('observe');
    expect(said({ findings })).toContain(
      'RG7003 6:26 spec.standardRollingUpdate turns the check off; the gate is written with mode: observe, which records results and blocks nothing',
    );
  });

  it('of more than a hundred pods has a gate at each hundredth', () => {
    const { groups, findings } = convertedPhased({}, statefulSetText({ replicas: 250 }));
    const waves = groups[0]?.spec.rollout.waves ?? [];
    expect([waves.length, waves[0]?.percent, waves[98]?.percent, waves[99]?.percent]).toEqual([100, 1, 99, 100]);
    expect(said({ findings })[0]).toBe(
      'RG7003 5:14 the gate is read before each hundredth of the 250 pods, not before each pod: a group has at most 100 waves',
    );
  });

  it.each([
    [0, [100]],
    [1, [100]],
    [2, [undefined, 100]],
    [100, [...Array.from({ length: 99 }, () => undefined), 100]],
  ])('of %i pods ends with all pods', (replicas, percents) => {
    const { groups } = convertedPhased({}, statefulSetText({ replicas }));
    expect(groups[0]?.spec.rollout.waves?.map(({ percent }) => percent)).toEqual(percents);
  });

  it('during a rollout must complete first', () => {
    expect(said(convertedPhased({ rest: 'status: { phase: Rolling, updateRevision: db-6f }\n' }))).toContain(
      'RG7007 10:18 the object is rolling to db-6f',
    );
    expect(said(convertedPhased({ rest: 'status: { phase: Updated }\n' }))).toEqual([usualNotice]);
  });

  it('names every omitted field, label and annotation', () => {
    const text = phased({ spec: '\n  paused: true', query: '\n      timeout: 3s' }).replace(
      'namespace: shop }',
      'namespace: shop, labels: { team: a }, annotations: { note: b, meta.helm.sh/release-name: c } }',
    );
    const { findings } = converted([
      { name: 'a.yaml', text },
      { name: 'b.yaml', text: statefulSetText() },
    ]);
    expect(said({ findings })).toEqual([
      'RG7003 3:40 the labels team stay with the object; the group does not have them',
      'RG7003 3:61 the annotations note stay with the object; the group does not have them',
      usualNotice,
      'RG7002 6:3 spec.paused is an unknown field and is omitted',
      'RG7002 11:7 spec.check.query.timeout is an unknown field and is omitted',
    ]);
  });

  it('becomes documents that lint accepts without a finding', () => {
    const { groups, documents } = convertedPhased({ query: '\n      secretRef: auth' }, statefulSetText(), { 'shop/auth': ['token'] });
    const files = [...groups, ...documents].map((document, index) => ({ name: `${index}.yaml`, text: writeDocument(document) }));
    const { findings } = lintPolicies([...files, { name: 'set.yaml', text: statefulSetText() }]);
    expect(findings).toEqual([]);
  });
});

describe('a PhasedRollout that cannot be converted', () => {
  const left = (conversion: ReturnType<typeof converted>) => {
    expect([conversion.groups, conversion.documents]).toEqual([[], []]);
    return said(conversion).filter((text) => text.startsWith('RG7001'));
  };

  it('leaves no group without its gate', () => {
    expect(left(convertedPhased({ url: 'prom:9090/xx' }))).toEqual([
      'RG7001 9:12 the object is not converted: spec.check.query.url is not an http or https address, so no query ever succeeded',
    ]);
    expect(left(convertedPhased({ expr: "'# nothing'" }))).toEqual([
      'RG7001 8:13 the object is not converted: spec.check.query.expr is empty',
    ]);
    expect(left(convertedPhased({ expr: `'up < ${'1'.repeat(5000)}'` }))).toEqual([
      'RG7001 8:13 the object is not converted: spec.check.query.expr is longer than 4096 characters',
    ]);
    expect(left(convertedPhased({ expr: 'sum(up < 1' }))).toEqual([
      'RG7001 8:13 the object is not converted: spec.check.query.expr is not valid PromQL',
    ]);
  });

  it('has a finding with the value, the valid values, and the next step', () => {
    const check = (text: string) => convertedPhased({ check: `\n    ${text}` });
    expect(left(check('periodSeconds: -1'))).toEqual([
      'RG7001 10:20 the object is not converted: spec.check.periodSeconds is -1; at least 0 is needed',
    ]);
    expect(left(check('successThreshold: often'))).toEqual([
      'RG7001 10:23 the object is not converted: spec.check.successThreshold is "often"; it takes a number',
    ]);
    expect(left(convertedPhased({ expr: '7' }))).toEqual([
      'RG7001 8:13 the object is not converted: spec.check.query.expr is 7; it takes text',
    ]);
    expect(left(convertedPhased({ url: "''" }))).toEqual([
      'RG7001 9:12 the object is not converted: spec.check.query.url has 0 characters; at least 1 is needed',
    ]);
    const hints = [check('periodSeconds: -1'), convertedPhased({ expr: '7' })].map(({ findings }) => findings[0]?.hint);
    expect(hints).toEqual(['fix the cause and run init again, or write the group by hand', 'quote it, and run init again']);
  });

  it('needs its StatefulSet, with RollingUpdate', () => {
    expect(left(converted([{ name: 'a.yaml', text: phased() }]))).toEqual([
      'RG7001 5:14 the object is not converted: the StatefulSet db was not found, so the number of waves is unknown',
    ]);
    expect(left(convertedPhased({}, statefulSetText({ strategy: 'OnDelete' })))).toEqual([
      'RG7001 5:14 the object is not converted: the StatefulSet db has the update strategy OnDelete, which the operator does not manage',
    ]);
  });

  it('needs the number of pods', () => {
    for (const replicas of ['-1', '1.5', 'many']) {
      expect(left(convertedPhased({}, statefulSetText().replace('replicas: 3', `replicas: ${replicas}`)))).toEqual([
        'RG7001 5:14 the object is not converted: the StatefulSet db has invalid replicas',
      ]);
    }
    const silent = convertedPhased({}, statefulSetText().replace('  replicas: 3\n', ''));
    expect(silent.groups[0]?.spec.rollout.waves).toHaveLength(1);
  });

  it('takes no StatefulSet from an existing group', () => {
    const set = statefulSetText({ metadata: ', labels: { rollout-group: db }' });
    expect(left(convertedPhased({}, set))).toEqual([
      'RG7001 5:14 the object is not converted: the StatefulSet db is already a member of the group db',
    ]);
  });

  it('does not share its StatefulSet: the object in its annotation has it, and no object without the annotation', () => {
    const two = (set: string) =>
      converted([
        { name: 'a.yaml', text: phased({ name: 'one' }) },
        { name: 'b.yaml', text: phased({ name: 'two' }) },
        { name: 'c.yaml', text: set },
      ]);
    const marked = two(statefulSetText({ metadata: ', annotations: { sts.plus/phasedRollout: two }' }));
    expect(marked.groups.map(({ metadata }) => metadata.name)).toEqual(['two']);
    expect(said(marked)).toContain('RG7001 5:14 the object is not converted: the StatefulSet db is also named by PhasedRollout shop/two');
    expect(left(two(statefulSetText()))).toHaveLength(2);
  });
});

describe('the credentials of a PhasedRollout', () => {
  const secret = '\n      secretRef: auth';
  const settingsOf = (keys: readonly string[]) =>
    convertedPhased({ query: secret }, statefulSetText(), { 'shop/auth': keys }).documents[0]?.spec;

  it('are named in the namespace of the agent, and a finding requires the copy', () => {
    expect(settingsOf(['token'])).toMatchObject({ prometheus: { bearerToken: { name: 'shop-auth', key: 'token' } } });
    expect(settingsOf(['username', 'password'])).toMatchObject({
      prometheus: { basicAuth: { username: { name: 'shop-auth', key: 'username' }, password: { name: 'shop-auth', key: 'password' } } },
    });
    const { findings } = convertedPhased({ query: secret }, statefulSetText(), { 'shop/auth': ['token'] });
    expect(findings.find(({ code }) => code === 'RG7004')).toMatchObject({
      line: 10,
      column: 18,
      message: 'the agent reads only Secrets of its namespace: the MetricSource names shop-auth there',
      hint: "copy the Secret shop/auth as shop-auth into the agent's namespace",
    });
  });

  it('are assumed to be a token without read access, with a finding', () => {
    const { documents, findings } = convertedPhased({ query: secret });
    expect(documents[0]?.spec).toMatchObject({ prometheus: { bearerToken: { key: 'token' } } });
    expect(said({ findings }).at(-1)).toContain('its keys are unknown, so token is assumed');
  });

  it.each([[['username']], [['password']], [['username', 'token']], [['username', 'password', 'token']], [[]]])(
    'that the original rejects (%j) omit the object',
    (keys) => {
      const { groups, findings } = convertedPhased({ query: secret }, statefulSetText(), { 'shop/auth': keys });
      expect([groups.length, findings.filter(({ code }) => code === 'RG7001').length]).toEqual([0, 1]);
    },
  );

  it('in an address are neither written nor shown', () => {
    const url = 'https://gate:hunter2@prom:9090/base/?x=1';
    for (const query of ['', secret, '\n      insecureSkipVerify: true']) {
      const conversion = convertedPhased({ url, query }, statefulSetText(), { 'shop/auth': ['token'] });
      expect(JSON.stringify(conversion)).not.toContain('hunter2');
      expect(conversion.documents[0]?.spec).toMatchObject({ prometheus: { url: 'https://prom:9090/base' } });
    }
    expect(said(convertedPhased({ url })).slice(1)).toEqual([
      'RG7002 9:12 the query and fragment of the address are omitted: the operator never sends them',
      'RG7004 9:12 the address contains a user, which is omitted; the MetricSource names the Secret shop-db-prometheus instead',
    ]);
  });

  it('are only sent with verified certificates', () => {
    expect(said(convertedPhased({ query: '\n      insecureSkipVerify: true' })).at(-1)).toBe(
      'RG7002 10:27 insecureSkipVerify is omitted: the agent always verifies certificates',
    );
  });
});

describe('the servers of several PhasedRollouts', () => {
  const of = (namespace: string, url: string) =>
    phased({ url }).replaceAll('shop', namespace).concat('---\n', statefulSetText().replaceAll('shop', namespace));

  it('are one source if they are equal, for all the namespaces', () => {
    const { documents } = converted([{ name: 'a.yaml', text: `${of('b', 'https://prom:9090')}---\n${of('a', 'https://prom:9090/')}` }]);
    expect(documents.map(({ metadata, spec }) => [metadata.name, spec.usableFrom.namespaces])).toEqual([['prom', ['a', 'b']]]);
  });

  it('have distinct names if they differ', () => {
    const { documents, groups } = converted([
      { name: 'a.yaml', text: `${of('b', 'https://prom:9090')}---\n${of('a', 'https://prom:9091')}` },
    ]);
    const names = documents.map(({ metadata }) => metadata.name);
    expect(new Set(names).size).toBe(2);
    expect(names.every((name) => /^prom-[0-9a-f]{8}$/.test(name))).toBe(true);
    expect(groups.map(({ spec }) => spec.gates?.[0]?.prometheus?.source).sort()).toEqual([...names].sort());
  });
});
