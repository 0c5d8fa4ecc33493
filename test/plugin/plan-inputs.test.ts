import { describe, expect, it } from 'vitest';
import { defaultAssumptions } from '../../engine/plan/document.ts';
import { Failure } from '../../plugin/failure.ts';
import { eventsOf, faultsNamed, parseFault, parseFaults } from '../../plugin/simulation/scenario.ts';
import { applyWhatIf, parseWhatIf, readAssumptions } from '../../plugin/source/what-if.ts';
import { faultNames, usualFaults } from '../../plugin/verbs/preview.ts';
import { faultClasses } from '../../simulation/faults/fault.ts';
import { group } from '../kit/groups.ts';

const groups = [group({ namespace: 'mimir', zones: ['a', 'b'] })];

function member(zone: string, containers: readonly (readonly [string, string])[]) {
  return {
    kind: 'StatefulSet',
    metadata: { name: `ingester-zone-${zone}`, namespace: 'mimir' },
    spec: { replicas: 3, template: { spec: { containers: containers.map(([name, image]) => ({ name, image })) } } },
  };
}

function images(objects: readonly unknown[]): readonly string[] {
  return [...JSON.stringify(objects).matchAll(/"image":"([^"]+)"/g)].map(([, image]) => image ?? '');
}

function failure(action: () => unknown): readonly [number, string] {
  try {
    action();
  } catch (error) {
    if (error instanceof Failure)
      return [error.exitCode, [error.details.what, error.details.why].filter((part) => part !== undefined).join(': ')];
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('assumptions', () => {
  const other = {
    kind: 'StatefulSet',
    metadata: { name: 'kafka', namespace: 'mimir' },
    spec: { template: { spec: { containers: [{ name: 'k', image: 'grafana/mimir:1' }] } } },
  };
  const both = [
    member('a', [
      ['side', 'envoy:1'],
      ['main', 'grafana/mimir:1'],
    ]),
    member('b', [['main', 'grafana/mimir:1']]),
    other,
  ];

  it.each([
    ['image=grafana/mimir:2', ['envoy:1', 'grafana/mimir:2', 'grafana/mimir:2', 'grafana/mimir:1']],
    ['image=side=envoy:2', ['envoy:2', 'grafana/mimir:1', 'grafana/mimir:1', 'grafana/mimir:1']],
    ['image=another/image:2', ['another/image:2', 'grafana/mimir:1', 'another/image:2', 'grafana/mimir:1']],
    ['b.image=grafana/mimir:2', ['envoy:1', 'grafana/mimir:1', 'grafana/mimir:2', 'grafana/mimir:1']],
    [
      'image=registry:5000/grafana/mimir:2',
      ['registry:5000/grafana/mimir:2', 'grafana/mimir:1', 'registry:5000/grafana/mimir:2', 'grafana/mimir:1'],
    ],
    ['image=grafana/mimir@sha256:abc', ['envoy:1', 'grafana/mimir@sha256:abc', 'grafana/mimir@sha256:abc', 'grafana/mimir:1']],
  ])('%s changes the matching container, only in members', (text, expected) => {
    expect(images(applyWhatIf(both, groups, [parseWhatIf(text)]))).toEqual(expected);
  });

  it.each([
    ['replicas=5', [5, 5]],
    ['b.replicas=0', [3, 0]],
    ['spec.replicas=7', [7, 7]],
  ])('%s changes replicas', (text, expected) => {
    const [a, b] = applyWhatIf(both, groups, [parseWhatIf(text)]);
    expect([a, b].map((object) => Reflect.get(Object(object?.['spec']), 'replicas'))).toEqual(expected);
  });

  it('adds missing fields, and does not change the given manifests', () => {
    const [changed] = applyWhatIf(both, groups, [parseWhatIf('spec.template.spec.terminationGracePeriodSeconds=60')]);
    expect(changed).toMatchObject({ spec: { replicas: 3, template: { spec: { terminationGracePeriodSeconds: 60 } } } });
    expect(JSON.stringify(both)).not.toContain('terminationGracePeriodSeconds');
  });

  it.each(['image', 'image=', 'replicas=many', 'replicas=-1', 'color=red', 'metadata.name=x'])('%s is invalid', (text) => {
    expect(failure(() => parseWhatIf(text))[0]).toBe(3);
  });

  it.each([
    ['c.replicas=5', '--set c.replicas=5 applies to nothing: no group has a zone c; known are a, b'],
    ['image=none=x:1', '--set image=none=x:1 applies to nothing: no member has such a container'],
  ])('%s matches no object', (text, message) => {
    expect(failure(() => applyWhatIf(both, groups, [parseWhatIf(text)]))).toEqual([10, message]);
  });
});

describe('assumptions from a file', () => {
  const read = (text: string) => readAssumptions({ name: 'times.yaml', text });

  it('keeps every default that it does not name', () => {
    expect(read('')).toEqual(defaultAssumptions);
    expect(read('pods: { start: { p50: 2m, p90: 300 } }\ngates: fail')).toEqual({
      ...defaultAssumptions,
      pods: { ...defaultAssumptions.pods, start: { p50Seconds: 120, p90Seconds: 300 } },
      gates: 'fail',
    });
  });

  it('accepts one duration for both, times of single groups, metrics, and the output of a plan', () => {
    expect(read('groups: { mimir/ingester: { drain: 90s } }').groups).toEqual({
      'mimir/ingester': { drain: { p50Seconds: 90, p90Seconds: 90 } },
    });
    expect(read('metrics: { safety/queue: 12.5 }').metrics).toEqual({ 'safety/queue': 12.5 });
    expect(read(JSON.stringify(defaultAssumptions))).toEqual(defaultAssumptions);
  });

  it.each([
    ['pods: { strat: 3m }', 'pods.strat is unknown here; known are drain, start'],
    ['pods: { start: soon }', 'pods.start is neither a duration such as 90s nor a number of seconds'],
    ['pods: { start: { p50: 3m, p90: 1m } }', 'pods.start has a p90 of 60 s below its p50 of 180 s'],
    ['pods: { start: 90d }', 'pods.start is not between 0 and 30 days'],
    ['gates: maybe', 'gates is not pass or fail'],
    ['metrics: { a: b }', 'metrics.a is not a number'],
    ['- 1', 'the document is not a mapping'],
    ['a: &x 1\nb: *x', 'the document uses aliases, which are not supported'],
    ['pods: {', 'the document is not valid YAML: Flow map in block collection must be sufficiently indented and end with a }'],
  ])('names the error in %j', (text, problem) => {
    const [exitCode, message] = failure(() => read(text));
    expect(exitCode).toBe(4);
    expect(message).toContain(`times.yaml holds no valid assumptions: ${problem}`);
  });

  it('names every problem at once', () => {
    expect(failure(() => read('gates: x\napprovals: y'))[1]).toContain('gates is not pass or fail; approvals is not given or missing');
  });
});

describe('requested failures', () => {
  const pods = new Map([
    ['ingester-zone-a', ['ingester-zone-a-0', 'ingester-zone-a-1']],
    ['ingester-zone-b', ['ingester-zone-b-0']],
  ]);

  it.each([
    ['pod=ingester-zone-a-1@20m', [{ atMs: 1_200_000, kind: 'podDies', zone: 'a', ordinal: 1 }]],
    ['pod=ingester-zone-b-0@1m+30s', [{ atMs: 60_000, kind: 'podFails', zone: 'b', ordinal: 0, forMs: 30_000 }]],
    [
      'zone=a@90s',
      [
        { atMs: 90_000, kind: 'podDies', zone: 'a', ordinal: 0 },
        { atMs: 90_000, kind: 'podDies', zone: 'a', ordinal: 1 },
      ],
    ],
    ['node=b@14m', [{ atMs: 840_000, kind: 'nodeLost', zone: 'b', forMs: 600_000 }]],
    ['node=b@14m+5m', [{ atMs: 840_000, kind: 'nodeLost', zone: 'b', forMs: 300_000 }]],
    ['drain=a@1m', [{ atMs: 60_000, kind: 'nodeDrained', zone: 'a' }]],
    ['agent=a@1m', [{ atMs: 60_000, kind: 'crash', process: 'a', restartAfterMs: 5000 }]],
    ['agent=z@1m', []],
    ['node=nowhere@1m', []],
    ['pod=nobody@1m', []],
  ])('%s', (text, faults) => {
    expect(eventsOf([parseFault(text)], groups[0] ?? group(), pods)).toEqual(faults);
  });

  it.each(['pod=x', 'disk=x@1m', 'pod=x@soon', 'pod=@1m', 'pod=x@1m+', 'node=a@1m+soon'])('%s is invalid', (text) => {
    expect(failure(() => parseFault(text))[0]).toBe(3);
  });
});

describe('random faults', () => {
  it('are the default ones, or only the requested ones', () => {
    expect(parseFaults(undefined, false)).toEqual(usualFaults);
    expect(parseFaults(undefined, true)).toEqual([]);
    expect(parseFaults('none', false)).toEqual([]);
    expect(parseFaults('all', true)).toEqual(faultNames);
    expect(parseFaults('pods, network', true)).toEqual(['network', 'pods']);
  });

  it('have names that are listed where one is unknown', () => {
    expect(failure(() => parseFaults('network,rain', false))).toEqual([3, '--faults network,rain: rain is unknown']);
    expect(failure(() => parseFaults('all,pods', false))[0]).toBe(3);
  });

  it('cover every class of faults except gates, connections, permissions, policies and other versions', () => {
    const others = faultClasses.filter((name) => !['F19', 'F22', 'F23', 'F24', 'F25'].includes(name));
    expect(faultsNamed(faultNames).classes.toSorted()).toEqual(others.toSorted());
    expect(faultNames.filter((name) => faultsNamed([name]).classes.length === 0)).toEqual([]);
  });
});
