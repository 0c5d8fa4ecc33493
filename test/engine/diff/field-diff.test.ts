import { describe, expect, it } from 'vitest';
import { fieldDiff, withDefaults } from '../../../engine/diff/field-diff.ts';
import { withoutSecrets } from '../../../engine/diff/field-secrets.ts';

type Content = Record<string, unknown>;

function statefulSet(spec: Content, podSpec: Content = {}, metadata: Content = {}): Content {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'ingester-zone-a', ...metadata },
    spec: { ...spec, template: { spec: podSpec } },
  };
}

function withContainer(container: Content): Content {
  return statefulSet({}, { containers: [{ name: 'mimir', image: 'grafana/mimir:2.16.0', ...container }] });
}

describe('the differences between two versions of an object', () => {
  it('name a container by its name, and report that a template change replaces pods', () => {
    expect(fieldDiff(withContainer({}), withContainer({ image: 'grafana/mimir:2.17.1' }))).toEqual([
      {
        path: 'spec.template.spec.containers[mimir].image',
        operation: 'change',
        before: 'grafana/mimir:2.16.0',
        after: 'grafana/mimir:2.17.1',
        consequence: 'restart',
      },
    ]);
  });

  it('match list entries by their key, so an entry at the front is one addition', () => {
    const before = withContainer({ env: [{ name: 'A', value: '1' }], volumeMounts: [{ name: 'data', mountPath: '/data' }] });
    const after = withContainer({
      env: [
        { name: 'B', value: '2' },
        { name: 'A', value: '1' },
      ],
      volumeMounts: [
        { name: 'data', mountPath: '/cache', subPath: 'cache' },
        { name: 'data', mountPath: '/data' },
      ],
    });
    expect(fieldDiff(before, after).map((change) => [change.operation, change.path])).toEqual([
      ['add', 'spec.template.spec.containers[mimir].env[B]'],
      ['add', 'spec.template.spec.containers[mimir].volumeMounts[/cache]'],
    ]);
  });

  it('compare arguments as a set: removed and added', () => {
    const before = withContainer({ args: ['-target=ingester', '-zone=a', '-old=1'] });
    const after = withContainer({ args: ['-new=2', '-target=ingester', '-zone=a'] });
    expect(fieldDiff(before, after)).toEqual([
      {
        path: 'spec.template.spec.containers[mimir].args',
        operation: 'change',
        before: ['-old=1'],
        after: ['-new=2'],
        consequence: 'restart',
      },
    ]);
  });

  it('count a repeated argument', () => {
    expect(fieldDiff(withContainer({ args: ['-x', '-x'] }), withContainer({ args: ['-x'] }))).toMatchObject([
      { operation: 'change', before: ['-x'], after: [] },
    ]);
  });

  it('show a new order of a list in a pod template as one difference, because it replaces pods', () => {
    expect(fieldDiff(withContainer({ args: ['-a', '-b', '-c'] }), withContainer({ args: ['-c', '-a', '-b'] }))).toEqual([
      { path: 'spec.template.spec.containers[mimir].args', operation: 'reorder', consequence: 'restart' },
    ]);
    const env = [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ];
    expect(fieldDiff(withContainer({ env }), withContainer({ env: env.toReversed() }))).toEqual([
      { path: 'spec.template.spec.containers[mimir].env', operation: 'reorder', consequence: 'restart' },
    ]);
  });

  it('ignore the order of a list outside a pod template, and the order of keys', () => {
    const service = (names: readonly string[]) => ({ kind: 'Service', spec: { ports: names.map((name) => ({ name, port: 1 })) } });
    expect(fieldDiff(service(['a', 'b']), service(['b', 'a']))).toEqual([]);
    expect(fieldDiff(withContainer({ a: { x: 1, y: 2 } }), withContainer({ a: { y: 2, x: 1 } }))).toEqual([]);
  });

  it.each([
    ['a scale-up', { replicas: 3 }, { replicas: 5 }, 'scaleUp'],
    ['a scale-down', { replicas: 3 }, { replicas: 2 }, 'scaleDown'],
    ['a scale-down to the default', { replicas: 3 }, {}, 'scaleDown'],
    ['a strategy', { updateStrategy: { type: 'OnDelete' } }, { updateStrategy: { type: 'RollingUpdate' } }, 'none'],
    ['a field that is fixed at creation', { serviceName: 'a' }, { serviceName: 'b' }, 'refused'],
  ])('name the consequence of %s', (_, before, after, consequence) => {
    expect(fieldDiff(statefulSet(before), statefulSet(after)).map((change) => change.consequence)).toEqual([consequence]);
  });

  it('distinguish unset replicas from one replica', () => {
    expect(fieldDiff(statefulSet({}), statefulSet({ replicas: 1 }))).toMatchObject([{ path: 'spec.replicas', operation: 'add', after: 1 }]);
  });

  it('write map keys with other characters in brackets', () => {
    const before = statefulSet({}, {}, { annotations: { 'rollout-max-unavailable': '3', 'grafana.com/x': '1' } });
    const after = statefulSet({}, {}, { annotations: { 'rollout-max-unavailable': '5', 'grafana.com/x': '2' } });
    expect(fieldDiff(before, after).map((change) => [change.path, change.consequence])).toEqual([
      ['metadata.annotations.rollout-max-unavailable', 'none'],
      ['metadata.annotations[grafana.com/x]', 'none'],
    ]);
  });

  it.each([
    ['a default of the workload', statefulSet({ podManagementPolicy: 'OrderedReady', revisionHistoryLimit: 10 }), statefulSet({})],
    ['a default of a container', withContainer({}), withContainer({ imagePullPolicy: 'IfNotPresent', terminationMessagePolicy: 'File' })],
    [
      'a default of a probe',
      withContainer({ livenessProbe: { httpGet: { port: 1 } } }),
      withContainer({ livenessProbe: { httpGet: { port: 1, scheme: 'HTTP' }, periodSeconds: 10 } }),
    ],
    ['null and nothing', withContainer({ securityContext: null }), withContainer({ securityContext: {}, args: [] })],
    [
      'equal quantities',
      withContainer({ resources: { requests: { cpu: 1, memory: '1024Mi' } } }),
      withContainer({ resources: { requests: { cpu: '1000m', memory: '1Gi' } } }),
    ],
    ['what the server writes', statefulSet({}, {}, { uid: 'a', resourceVersion: '1' }), statefulSet({}, {}, { generation: 2 })],
  ])('ignore %s', (_, before, after) => {
    expect(fieldDiff(before, after)).toEqual([]);
    expect(fieldDiff(after, before)).toEqual([]);
  });

  it.each([
    [
      'another notation of a quantity, which the server keeps',
      { resources: { limits: { memory: '1Gi' } } },
      { resources: { limits: { memory: '1073741824' } } },
    ],
    ['another pull policy', {}, { imagePullPolicy: 'Always' }],
    ['another probe period', { readinessProbe: { periodSeconds: 5 } }, { readinessProbe: {} }],
  ])('contain %s', (_, before, after) => {
    expect(fieldDiff(withContainer(before), withContainer(after))).toHaveLength(1);
  });

  it('distinguish an empty selector, which selects everything, from no selector', () => {
    expect(fieldDiff({ kind: 'PodDisruptionBudget', spec: {} }, { kind: 'PodDisruptionBudget', spec: { selector: {} } })).toHaveLength(1);
  });
});

describe('secrets in differences', () => {
  const hidden = 'hunter2';

  it.each([
    ['the data of a Secret', { kind: 'Secret', data: { key: hidden } }, { kind: 'Secret', data: { key: `${hidden}x` } }],
    ['a Secret without data', { kind: 'Secret' }, { kind: 'Secret', stringData: { key: hidden } }],
    [
      'a variable by its name',
      withContainer({ env: [{ name: 'DB_PASSWORD', value: hidden }] }),
      withContainer({ env: [{ name: 'DB_PASSWORD', value: `${hidden}x` }] }),
    ],
    ['a new variable', withContainer({}), withContainer({ env: [{ name: 'API_TOKEN', value: hidden }] })],
    ['a new container', withContainer({}), statefulSet({}, { containers: [{ name: 'new', env: [{ name: 'API_TOKEN', value: hidden }] }] })],
    ['a flag by its name', withContainer({ args: ['-a'] }), withContainer({ args: [`-auth.token=${hidden}`] })],
    ['the argument behind a flag', withContainer({ args: ['--token', 'x'] }), withContainer({ args: ['--token', hidden] })],
    [
      'a line of a configuration file',
      { kind: 'ConfigMap', data: { file: 'user: me\npassword: "x"\n' } },
      { kind: 'ConfigMap', data: { file: `user: me\npassword: "${hidden}"\napi_key = ${hidden}\n` } },
    ],
    ['a flag in a command', withContainer({}), withContainer({ command: ['sh', '-c', `app --password ${hidden}`] })],
    ['a user and a password', withContainer({}), withContainer({ env: [{ name: 'LOGIN', value: `admin:${hidden}` }] })],
    ['a URL with a user', withContainer({ env: [] }), withContainer({ env: [{ name: 'URL', value: `https://me:${hidden}@db/x` }] })],
    [
      'the host of a webhook',
      withContainer({}),
      withContainer({ env: [{ name: 'ALERTS', value: `https://hooks.slack.com/services/T0/${hidden}` }] }),
    ],
    ['the path of a webhook', withContainer({}), withContainer({ args: [`--to=https://chat.example.com/hooks/${hidden}`] })],
    [
      'a header in an argument',
      withContainer({}),
      withContainer({ args: ['-H', `Authorization: Bearer ${hidden}`, `X-Api-Key: ${hidden}`] }),
    ],
    [
      'a header of a probe',
      withContainer({}),
      withContainer({ livenessProbe: { httpGet: { path: `/?token=${hidden}`, httpHeaders: [{ name: 'Authorization', value: hidden }] } } }),
    ],
    [
      'a changed header of a probe',
      withContainer({ livenessProbe: { httpGet: { httpHeaders: [{ name: 'Cookie', value: 'x' }] } } }),
      withContainer({ livenessProbe: { httpGet: { httpHeaders: [{ name: 'Cookie', value: hidden }] } } }),
    ],
    ['a text after the scheme of HTTP authentication', withContainer({}), withContainer({ command: [`curl -H 'X: Bearer ${hidden}12'`] })],
    [
      'an annotation by its key',
      { kind: 'StatefulSet', metadata: { annotations: { 'vault.example.com/token': 'x' } } },
      { kind: 'StatefulSet', metadata: { annotations: { 'vault.example.com/token': hidden, 'a/new-secret': hidden } } },
    ],
    ['an annotation of a new object', { kind: 'Pod' }, { kind: 'Pod', metadata: { annotations: { 'vault.example.com/token': hidden } } }],
    [
      'the copy that kubectl keeps',
      { kind: 'Secret' },
      { kind: 'Secret', metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': hidden } } },
    ],
  ])('are never shown: %s', (_, before, after) => {
    expect(JSON.stringify([fieldDiff(before, after), fieldDiff(after, before)])).not.toContain(hidden);
    expect(JSON.stringify([withoutSecrets(before, after, 'before'), withoutSecrets(after, before, 'after')])).not.toContain(hidden);
  });

  it.each(['BASICAUTH', 'PASSCODE', 'PIN', 'OTP', 'SEED', 'MNEMONIC', 'SAS', 'CONNECTION_STRING'])(
    'include plain words under the name %s',
    (name) => {
      const after = withContainer({ args: [`--${name}=${hidden}`], env: [{ name, value: 'word' }] });
      expect(JSON.stringify([fieldDiff(withContainer({}), after), withoutSecrets(after, undefined, 'after')])).not.toMatch(
        /hunter2|"word"/,
      );
    },
  );

  it.each([
    ['a toleration', { tolerations: [{ key: 'team', value: 'aB3x9Qw2z' }] }, true],
    ['a new field with a toleration', { more: { tolerations: [{ key: 'team', value: 'aB3x9Qw2z' }] } }, true],
    ['a value that is no entry of a list', { limit: { value: 'aB3x9Qw2z' } }, true],
    ['an entry of a list under the name of a credential', { matchLabelKeys: ['aB3x9Qw2z'] }, false],
    ['an own annotation', { metadata: { annotations: { 'rollout-group.dev/hash': 'aB3x9Qw2z' } } }, false],
    ['another annotation', { metadata: { annotations: { 'example.com/hash': 'aB3x9Qw2z' } } }, true],
  ])('are the same for a field and for a whole object: %s', (_, fields, isHidden) => {
    const empty = { kind: 'Other', tolerations: [{ key: 'team' }], limit: {}, metadata: { annotations: { a: '1' } } };
    const object = { ...empty, ...fields };
    const shown = [fieldDiff(empty, object), withoutSecrets(object, empty, 'after')].map((part) => JSON.stringify(part));
    expect(shown.map((text) => text.includes('aB3x9Qw2z'))).toEqual([!isHidden, !isHidden]);
  });

  it('have the same mask on both sides of a whole object if they are equal', () => {
    const secret = (key: string) => ({ kind: 'Secret', metadata: { annotations: { copy: 'x' } }, data: { key, other: 'x' } });
    expect([withoutSecrets(secret('a'), secret('b'), 'before'), withoutSecrets(secret('b'), secret('a'), 'after')]).toEqual([
      { kind: 'Secret', metadata: { annotations: { copy: '***' } }, data: { key: '*** (before)', other: '***' } },
      { kind: 'Secret', metadata: { annotations: { copy: '***' } }, data: { key: '*** (after)', other: '***' } },
    ]);
  });

  it('do not include the names of Secrets and ConfigMaps', () => {
    const volume = (secretName: string) => ({
      spec: { volumes: [{ name: 'tokens', secret: { secretName } }], automountServiceAccountToken: true },
    });
    expect(JSON.stringify(fieldDiff({ kind: 'Pod', spec: {} }, { kind: 'Pod', ...volume('db-tls') }))).toMatch(/db-tls.*true/);
    expect(fieldDiff({ kind: 'Pod', ...volume('old') }, { kind: 'Pod', ...volume('new') })).toMatchObject([
      { before: 'old', after: 'new' },
    ]);
  });

  // A pattern whose time grows with the square of the length would not return.
  it.each([' ', '?', 'a', 'a-', 'token', '://a', 'https://hook', 'token: ', 'Bearer '])(
    'are found in a text of 200,000 characters: %j',
    (part) => {
      const text = `${part.repeat(200_000 / part.length)} password=hunter2`;
      expect(JSON.stringify(fieldDiff({ kind: 'ConfigMap' }, { kind: 'ConfigMap', data: { text } }))).not.toContain('hunter2');
    },
  );

  it('are found behind 1,000,000 brackets', () => {
    const text = `key=${']'.repeat(1_000_000)}x password=hunter2`;
    expect(JSON.stringify(fieldDiff({ kind: 'ConfigMap' }, { kind: 'ConfigMap', data: { text } }))).not.toContain('hunter2');
  });

  it('do not include the tags of images', () => {
    const of = (tag: string) => withContainer({ image: `registry/external-secrets:${tag}` });
    expect(fieldDiff(of('1.2'), of('1.3'))).toMatchObject([
      { before: 'registry/external-secrets:1.2', after: 'registry/external-secrets:1.3' },
    ]);
    expect(JSON.stringify(fieldDiff(statefulSet({}, {}), of('1.3')))).toContain('registry/external-secrets:1.3');
    expect(JSON.stringify(withoutSecrets(of('1.3'), of('1.2'), 'after'))).toContain('registry/external-secrets:1.3');
    const secret = { kind: 'Secret', data: { image: 'hunter2' } };
    expect(JSON.stringify([fieldDiff({ kind: 'Secret' }, secret), withoutSecrets(secret, undefined, 'after')])).not.toContain('hunter2');
    expect(JSON.stringify(fieldDiff({ kind: 'Secret', data: { image: 'x' } }, secret))).not.toContain('hunter2');
  });

  it('still count as different', () => {
    const secret = (value: string) => ({ kind: 'Secret', data: { key: value } });
    expect(fieldDiff(secret('a'), secret('b'))).toEqual([
      { path: 'data.key', operation: 'change', before: '*** (before)', after: '*** (after)', consequence: 'none' },
    ]);
  });
});

describe('the fields that an apply removes', () => {
  it('get the defaults of the API server, and other fields do not', () => {
    const rolling = { type: 'RollingUpdate', rollingUpdate: { partition: 3 } };
    const before = statefulSet(
      { replicas: 3, podManagementPolicy: 'Parallel', updateStrategy: rolling, minReadySeconds: 7, serviceName: 'x' },
      { terminationGracePeriodSeconds: 7, nodeSelector: { disk: 'ssd' } },
    );
    expect(withDefaults(before, statefulSet({}))).toEqual(
      statefulSet(
        {
          replicas: 1,
          podManagementPolicy: 'OrderedReady',
          updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
          minReadySeconds: 0,
        },
        { terminationGracePeriodSeconds: 30 },
      ),
    );
    expect(withDefaults(statefulSet({}), statefulSet({}))).toEqual(statefulSet({}));
    const onDelete = statefulSet({ updateStrategy: { type: 'OnDelete' } });
    expect(withDefaults(statefulSet({ updateStrategy: rolling }), onDelete)).toEqual(onDelete);
    const group = (spec: Content) => ({ kind: 'RolloutGroup', spec });
    expect(withDefaults(group({ replicas: { count: 3 } }), group({}))).toEqual(group({}));
  });
});
