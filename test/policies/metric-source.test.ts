import { describe, expect, it } from 'vitest';
import { inputEveryMs, inputsRead, metricSourceOf, sourceSecretKeys } from '../../policies/integrations/metric-source.ts';
import { lintPolicies } from '../../policies/lint/lint.ts';
import { resolveLive } from '../../policies/live/sources.ts';
import { schemas } from '../../policies/schema/kinds.ts';
import { policy, policyRule } from '../kit/questions.ts';

function source(name: string, spec: string, namespace?: string): string {
  const where = namespace === undefined ? '' : `, namespace: ${namespace}`;
  return `---\napiVersion: rollout-group.dev/v1alpha1\nkind: MetricSource\nmetadata: { name: ${name}${where} }\nspec:\n  ${spec}\n  usableFrom: { namespaces: [mimir] }\n`;
}

const prometheus = 'prometheus: { url: "https://prometheus:9090" }';
const key = (name: string) => ({ name, key: 'value' });

describe('a metric source', () => {
  it('has the limits of its schema, in milliseconds, unless it has its own', () => {
    const document = (limits?: object) =>
      schemas.MetricSource.parse({
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'MetricSource',
        metadata: { name: 'prod' },
        spec: { prometheus: { url: 'https://prometheus:9090' }, usableFrom: { namespaces: ['mimir', 'loki'] }, ...(limits && { limits }) },
      });
    const usual = {
      name: 'prod',
      prometheus: { url: 'https://prometheus:9090' },
      namespaces: ['mimir', 'loki'],
      timeoutMs: 5_000,
      maxResponseBytes: 1_048_576,
      minIntervalMs: 15_000,
    };
    expect(metricSourceOf(document())).toEqual(usual);
    expect(metricSourceOf(document({ timeout: '1m30s', minInterval: '0', maxResponseBytes: 2048 }))).toEqual({
      ...usual,
      timeoutMs: 90_000,
      minIntervalMs: 0,
      maxResponseBytes: 2048,
    });
  });

  it('names the keys of Secrets that it reads', () => {
    const url = 'https://x';
    const basicAuth = { username: key('login'), password: key('login') };
    expect(sourceSecretKeys({ prometheus: { url, basicAuth, ca: key('ca') } })).toEqual([key('login'), key('login'), key('ca')]);
    expect(sourceSecretKeys({ prometheus: { url, bearerToken: key('token') } })).toEqual([key('token')]);
    expect(sourceSecretKeys({ consul: { url, token: key('acl'), ca: key('ca') } })).toEqual([key('acl'), key('ca')]);
    expect(sourceSecretKeys({ prometheus: { url } })).toEqual([]);
  });
});

describe('the address of a source', () => {
  it.each([
    'http://prometheus',
    'https://prometheus.monitoring.svc.cluster.local.:9090/prom/',
    'http://10.0.0.1:9090',
    'https://[fd00::1]:9090/x',
  ])('%s is one', (url) => {
    expect(lintPolicies([{ name: 'a.yaml', text: source('prod', `prometheus: { url: "${url}" }`) }]).findings).toEqual([]);
  });

  it.each([
    'prometheus:9090',
    'ftp://prometheus',
    'https://',
    'https://user@prometheus',
    'https://user:hunter2@prometheus',
    'https://prometheus?x=1',
    'https://prometheus/?x=1',
    'https://prometheus/#x',
    'https://prometheus:port',
    'https://prometheus/a b',
    'https://prometheus\\\\@evil',
  ])('%s is invalid', (url) => {
    const { findings } = lintPolicies([{ name: 'a.yaml', text: source('prod', `prometheus: { url: "${url}" }`) }]);
    expect(findings.map(({ code, line }) => `${code} ${line}`)).toEqual(['RG2007 6']);
    expect(findings[0]?.hint).toContain('credentials belong in a Secret');
    expect(JSON.stringify(findings)).not.toContain('hunter2');
  });
});

describe('a gate', () => {
  it.each([
    'prometheus: { url: "http://evil", query: up }',
    'prometheus: { source: prod, query: up, url: "http://evil" }',
    'consul: { source: dc, service: redis, url: "http://evil" }',
    'consul: { source: dc, service: "../../agent/self" }',
    'consul: { source: dc, service: "redis?dc=x" }',
    'consul: { source: dc, service: redis, datacenter: "x&y" }',
    'http: { host: evil, port: 80, path: / }',
    'http: { port: 80, path: "/#@evil" }',
  ])('names no address: %s', (provider) => {
    const text = `apiVersion: rollout-group.dev/v1alpha1\nkind: RolloutGroup\nmetadata: { name: ingester, namespace: mimir }\nspec:\n  members: { zones: [{ name: a, statefulSet: a }] }\n  rollout: { strategy: onDelete, waves: [{ name: all, zones: [a], after: { gates: [g] }, percent: 100 }] }\n  gates:\n    - name: g\n      pass: { "<": [{ var: value }, 1] }\n      ${provider}\n`;
    const errors = lintPolicies([{ name: 'a.yaml', text }]).findings.filter(({ severity }) => severity === 'error');
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.every(({ code, line }) => line === 10 && ['RG2003', 'RG2004', 'RG2007'].includes(code))).toBe(true);
  });
});

describe('the sources that a policy names', () => {
  const policy = (name: string) =>
    `---\napiVersion: rollout-group.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: { name: safety, namespace: mimir }\nspec:\n  targets: { all: true }\n  inputs: { metrics: { queue: { source: ${name}, query: up } } }\n  rules:\n    - { name: drained, actions: [scaleDown], effect: hold, when: { ">": [{ var: inputs.metrics.queue }, 100] } }\n`;
  const codes = (text: string) => lintPolicies([{ name: 'a.yaml', text }]).findings.map(({ code }) => code);

  it('are found like the sources of gates', () => {
    expect(codes(policy('prod'))).toEqual(['RG2206']);
    expect(codes(`${source('prod', prometheus)}${policy('prod')}`)).toEqual([]);
    expect(codes(`${source('prod', prometheus)}${policy('prdo')}`)).toEqual(['RG2501']);
    expect(codes(`${source('dc', 'consul: { url: "https://consul:8501" }')}${policy('dc')}`)).toEqual(['RG2503']);
    // What is wrong with a source is said once, where it stands.
    expect(codes(`${source('prod', 'prometheus: { url: "x" }')}${policy('prod')}`)).toEqual(['RG2007']);
  });
});

describe('the sources of a running cluster', () => {
  const live = (text: string, order: ('directory' | 'objects')[] = ['directory', 'objects']) =>
    resolveLive({
      directory: [{ name: 'a.yaml', text }],
      objects: [],
      statefulSets: [],
      order,
      agentNamespace: 'operator',
      namespaces: ['mimir'],
    });

  it('come from the directory of the agent, its namespace or neither, by name', () => {
    const text = [
      source('b', prometheus),
      source('a', prometheus, 'operator'),
      source('c', prometheus, 'mimir'),
      source('a', 'consul: { url: "https://c" }'),
    ].join('');
    const { metricSources, findings } = live(text);
    expect(metricSources.map(({ name, consul }) => `${name} ${consul === undefined ? 'prometheus' : 'consul'}`)).toEqual([
      'a prometheus',
      'b prometheus',
    ]);
    expect(findings.map(({ code }) => code)).toContain('RG2504');
    expect(live(text, ['objects']).metricSources).toEqual([]);
  });
});

describe('the period of a metric input', () => {
  it.each([
    [1_000, 1_000],
    [20_000, 10_000],
    [30_000, 15_000],
    [60_000, 15_000],
    [120_000, 30_000],
    [240_000, 60_000],
    [3_600_000, 60_000],
  ])('with a maximum age of %i ms is %i ms', (maxAgeMs, everyMs) => {
    expect(inputEveryMs(maxAgeMs)).toBe(everyMs);
  });
});

describe('the inputs that rules read', () => {
  const metric = { source: 'prod', query: 'x', noData: 'unknown', maxAgeMs: 60_000 } as const;
  const metrics = { queue: metric, lag: metric, errors: metric, idle: metric };

  it('are the inputs of conditions, in each of their forms, and of messages', () => {
    const rules = [
      policyRule({ when: { '>': [{ var: ['inputs.metrics.queue', 0] }, 1] } }),
      policyRule({ when: { '>': [{ val: ['inputs', 'metrics', 'lag'] }, 1] } }),
      policyRule({ message: 'errors are ${inputs.metrics.errors}' }),
    ];
    expect(inputsRead(policy({ metrics, rules }))).toEqual(['errors', 'lag', 'queue']);
  });

  it('are absent without a rule that names an input', () => {
    expect(
      inputsRead(policy({ metrics, rules: [policyRule({ when: { '>': [{ var: 'target.replicas' }, 1] }, message: 'queue' })] })),
    ).toEqual([]);
    expect(inputsRead(policy({ metrics, rules: [] }))).toEqual([]);
  });
});
