import { describe, expect, it } from 'vitest';
import { onlyGrows, podRequest, readTarget, requestsFor } from '../../../webhook/native/requests-of.ts';
import { isDryRun, type Review } from '../../../webhook/review/review.ts';
import { seededRandom } from '../../kit/virtual-env.ts';

type Json = Readonly<Record<string, unknown>>;

const template = { metadata: { labels: { name: 'db' } }, spec: { containers: [{ name: 'db', image: 'db:1' }] } };
const stored = {
  metadata: { name: 'db-a', namespace: 'prod', labels: { 'rollout-group': 'db', team: 'x' } },
  spec: { replicas: 3, template, updateStrategy: { type: 'OnDelete' } },
};
const review = (overrides: Partial<Review> = {}): Review => ({
  apiVersion: 'admission.k8s.io/v1',
  uid: 'u',
  subresource: '',
  operation: 'UPDATE',
  namespace: 'prod',
  name: 'db-a',
  dryRun: false,
  kind: { group: 'apps', version: 'v1', kind: 'StatefulSet' },
  resource: { group: 'apps', version: 'v1', resource: 'statefulsets' },
  user: { name: 'kim', groups: ['oncall'] },
  ...overrides,
});
const pod = { group: '', version: 'v1', resource: 'pods' };
const spec = (fields: Json): Json => ({ ...stored, spec: { ...stored.spec, ...fields } });
const common = { namespace: 'prod', statefulSet: 'db-a', user: 'kim', groups: ['oncall'], dryRun: false };
const unchanged = {
  kind: 'update',
  ...common,
  from: 3,
  to: 3,
  isTemplateChanged: false,
  strategy: 'OnDelete',
  partition: 0,
  firstOrdinal: 0,
  relabels: [],
  via: 'update',
};

describe('the request of a review', () => {
  it('is absent if nothing changes that a policy evaluates', () => {
    const harmless = [
      stored,
      { ...stored, metadata: { ...stored.metadata, annotations: { a: 'b' }, labels: { ...stored.metadata.labels, added: 'y' } } },
      spec({ minReadySeconds: 5 }),
      spec({ updateStrategy: { type: 'OnDelete', rollingUpdate: {} } }),
    ];
    for (const object of harmless) expect(readTarget(review({ oldObject: stored, object })).kind).toBe('pass');
  });

  it('exists if replicas, template, strategy, ordinals or labels change', () => {
    const telling = [
      spec({ replicas: 2 }),
      spec({ replicas: 4 }),
      spec({ replicas: null }),
      spec({ template: {} }),
      spec({ updateStrategy: { type: 'RollingUpdate' } }),
      spec({ updateStrategy: { type: 'OnDelete', rollingUpdate: { partition: 2 } } }),
      spec({ ordinals: { start: 1 } }),
      { ...stored, metadata: { ...stored.metadata, labels: { team: 'x' } } },
      { ...stored, metadata: { ...stored.metadata, labels: { ...stored.metadata.labels, team: 'y' } } },
      { ...stored, metadata: { ...stored.metadata, labels: { ...stored.metadata.labels, 'grafana.com/no-downscale': 'true' } } },
    ];
    for (const object of telling) expect(readTarget(review({ oldObject: stored, object })).kind).toBe('statefulSet');
    expect(readTarget(review({ object: stored })).kind).toBe('statefulSet');
  });

  it('exists if the time of the last downscale is removed or set back', () => {
    const at = (instant?: string): Json => ({
      ...stored,
      metadata: { ...stored.metadata, annotations: instant === undefined ? {} : { 'grafana.com/last-downscale': instant } },
    });
    const ask = (oldObject: Json, object: Json) => readTarget(review({ oldObject, object })).kind;
    expect(ask(at('2026-01-02T00:00:00Z'), at())).toBe('statefulSet');
    expect(ask(at('2026-01-02T00:00:00Z'), at('2026-01-01T00:00:00Z'))).toBe('statefulSet');
    expect(ask(at('2026-01-02T00:00:00Z'), at('never'))).toBe('statefulSet');
    expect(ask(at('2026-01-02T00:00:00Z'), at('2026-01-03T00:00:00Z'))).toBe('pass');
    expect(ask(at(), at('2026-01-03T00:00:00Z'))).toBe('pass');
  });

  it('exists if a write of the status changes labels, without the rest of the status', () => {
    const relabelled = { ...spec({ replicas: 0 }), metadata: { ...stored.metadata, labels: {} } };
    const status = review({ subresource: 'status', oldObject: stored, object: relabelled });
    expect(readTarget(status).kind).toBe('statefulSet');
    expect(requestsFor(status, 'update', stored, 3)).toEqual([{ ...unchanged, relabels: ['rollout-group', 'team'] }]);
    expect(readTarget({ ...status, object: spec({ replicas: 0 }) }).kind).toBe('pass');
  });

  it('reads a missing number like the API server: 1 of a StatefulSet, 0 of a Scale', () => {
    const one = spec({ replicas: 1 });
    expect(readTarget(review({ oldObject: one, object: spec({ replicas: undefined }) })).kind).toBe('pass');
    const scale = review({ subresource: 'scale', oldObject: { spec: {} }, object: { spec: { replicas: 0 } } });
    expect(readTarget(scale).kind).toBe('pass');
    expect(requestsFor(review({ subresource: 'scale', object: { spec: {} } }), 'scale', stored, 3)).toEqual([
      { kind: 'scale', ...common, from: 3, to: 0, via: 'scale' },
    ]);
  });

  it('is absent for pods that nodes and controllers delete, but not for pods that they evict', () => {
    const controller = { name: 'system:serviceaccount:kube-system:statefulset-controller', groups: [] };
    const gone = review({ resource: pod, operation: 'DELETE', name: 'db-a-0' });
    expect(readTarget(gone)).toEqual({ kind: 'pod', verb: 'deletePod', namespace: 'prod', name: 'db-a-0' });
    expect(readTarget({ ...gone, user: controller }).kind).toBe('pass');
    expect(readTarget({ ...gone, user: { name: 'n', groups: ['system:nodes'] } }).kind).toBe('pass');
    const eviction = review({ resource: pod, operation: 'CREATE', subresource: 'eviction', name: 'db-a-0' });
    expect(readTarget({ ...eviction, user: controller })).toEqual({ kind: 'pod', verb: 'evictPod', namespace: 'prod', name: 'db-a-0' });
    for (const subresource of ['exec', 'log', 'status', 'ephemeralcontainers', 'binding']) {
      expect(readTarget({ ...eviction, subresource }).kind).toBe('pass');
    }
  });

  it('is for no other resource', () => {
    expect(readTarget(review({ resource: { group: 'apps', version: 'v1', resource: 'deployments' } })).kind).toBe('pass');
    expect(readTarget(review({ resource: { group: '', version: 'v1', resource: 'configmaps' }, operation: 'DELETE' })).kind).toBe('pass');
    expect(readTarget(review({ operation: 'CREATE' })).kind).toBe('pass');
  });
});

describe('reviews that no API server sends', () => {
  const values = [
    undefined,
    null,
    0,
    -1,
    1.5,
    1e300,
    '',
    'x',
    true,
    [],
    [null],
    {},
    { spec: null },
    { metadata: [] },
    { spec: { template: 7 } },
  ];

  it('are read without an error, over 20,000 reviews', () => {
    const random = seededRandom(3);
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
    const scrambled = (value: unknown, depth: number): unknown => {
      if (random() < 0.15) return pick(values);
      if (depth === 0 || typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, scrambled(member, depth - 1)]));
    };
    const seen = new Set<string>();
    for (let count = 0; count < 20_000; count += 1) {
      const object = scrambled(stored, 4);
      const oldObject = scrambled(stored, 4);
      const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);
      const strange = review({
        resource: pick([pod, review().resource]),
        subresource: pick(['', 'scale', 'status', 'eviction', 'other']),
        operation: pick(['UPDATE', 'DELETE', 'CREATE', 'CONNECT', '']),
        name: pick(['db-a', 'db-a-0', '']),
        namespace: pick(['prod', 'prod', '']),
        ...(isObject(object) ? { object } : {}),
        ...(isObject(oldObject) ? { oldObject } : {}),
      });
      const asked = readTarget(strange);
      seen.add(asked.kind);
      if (asked.kind === 'statefulSet') {
        for (const request of requestsFor(strange, asked.verb, stored, 3)) {
          const { from = 0, to = 0 } = request as { readonly from?: number; readonly to?: number };
          expect(Number.isSafeInteger(from) && Number.isSafeInteger(to) && to >= 0).toBe(true);
        }
      }
      expect(typeof (isDryRun(strange) && onlyGrows(strange))).toBe('boolean');
    }
    expect([...seen].sort()).toEqual(['malformed', 'pass', 'pod', 'statefulSet']);
  });
});

describe('the input of the engine', () => {
  it('compares the object with the stored one, not with the old object of the review', () => {
    const forged = review({ oldObject: spec({ replicas: 1 }), object: spec({ replicas: 2 }) });
    expect(requestsFor(forged, 'update', stored, 3)).toEqual([{ ...unchanged, to: 2 }]);
  });

  it('identifies a restart from a new template and from an earlier one', () => {
    const restartedAt = 'kubectl.kubernetes.io/restartedAt';
    const annotated = { ...template, metadata: { ...template.metadata, annotations: { [restartedAt]: 'now' } } };
    expect(requestsFor(review({ object: spec({ template: annotated }) }), 'update', stored, 3)).toEqual([
      { ...unchanged, isTemplateChanged: true },
      { kind: 'restart', ...common },
    ]);
    // A GitOps tool that removes the annotation applies its manifest again.
    const before = { ...stored, spec: { ...stored.spec, template: annotated } };
    expect(requestsFor(review({ object: spec({}) }), 'update', before, 3)).toEqual([{ ...unchanged, isTemplateChanged: true }]);
    // Only a later time is a restart. An earlier time, or the same, is an earlier template.
    const at = (time: string | undefined) => ({
      ...stored.spec,
      template: time === undefined ? template : { ...template, metadata: { ...template.metadata, annotations: { [restartedAt]: time } } },
    });
    const [early, late] = ['2026-11-30T09:00:00Z', '2026-11-30T10:00:00Z'];
    const restartFrom = (before: string | undefined, time: string) =>
      requestsFor(review({ object: { ...stored, spec: at(time) } }), 'update', { ...stored, spec: at(before) }, 3)[1];
    const restarted = (time: string) => ({ kind: 'restart', ...common, restartedAtMs: Date.parse(time) });
    expect([restartFrom(undefined, late), restartFrom(early, late), restartFrom('now', late)]).toEqual(
      [1, 2, 3].map(() => restarted(late)),
    );
    expect(restartFrom(late, 'now')).toEqual({ kind: 'restart', ...common });
    expect([restartFrom(late, early), restartFrom(late, '2026-11-30T11:00:00+01:00')]).toEqual([undefined, undefined]);
    const image = { ...annotated, spec: { containers: [{ name: 'db', image: 'db:2' }] } };
    expect(requestsFor(review({ object: spec({ template: image }) }), 'update', stored, 3)).toEqual([
      { ...unchanged, isTemplateChanged: true },
    ]);
  });

  it('names the labels that change, are removed, or start to protect', () => {
    const labels = { 'rollout-group': 'other', 'grafana.com/prepare-downscale': 'true', harmless: 'z' };
    const object = { ...stored, metadata: { ...stored.metadata, labels } };
    expect(requestsFor(review({ object, options: { kind: 'PatchOptions' } }), 'update', stored, 3)).toEqual([
      { ...unchanged, relabels: ['grafana.com/prepare-downscale', 'rollout-group', 'team'], via: 'patch' },
    ]);
  });

  it('names a changed interval between zones, and a former prepare endpoint', () => {
    const time = 'grafana.com/min-time-between-zones-downscale';
    const [path, port] = ['grafana.com/prepare-downscale-http-path', 'grafana.com/prepare-downscale-http-port'];
    const timed = (value: string | undefined, annotations: Json = {}): Json => {
      const labels = { ...(stored.metadata.labels as Json), ...(value === undefined ? {} : { [time]: value }) };
      return { ...stored, metadata: { ...stored.metadata, labels, annotations } };
    };
    const asked = (object: Json, old: Json) => {
      const [request] = requestsFor(review({ object, oldObject: old }), 'update', old, 3);
      return request?.kind === 'update' ? { relabels: request.relabels, betweenZones: request.betweenZones } : undefined;
    };
    expect(asked(timed('0s'), timed('12h'))).toEqual({ relabels: [time], betweenZones: '0s' });
    expect(asked(timed(undefined), timed('12h'))).toEqual({ relabels: [time], betweenZones: undefined });
    expect(asked(timed('12h'), timed(undefined))).toEqual({ relabels: [time], betweenZones: '12h' });
    expect(asked(timed('12h', { [path]: 'b' }), timed('12h', { [path]: 'a', [port]: '80' }))).toEqual({ relabels: [path, port] });
    for (const [now, before] of [
      [{ [path]: 'a' }, {}],
      [{ other: 'b' }, { other: 'a' }],
    ] as const) {
      expect(readTarget(review({ object: timed('12h', now), oldObject: timed('12h', before) })).kind).toBe('pass');
    }
  });

  it('names the number of pods that a StatefulSet deletes', () => {
    expect(requestsFor(review({ operation: 'DELETE' }), 'delete', stored, 3)).toEqual([{ kind: 'deleteStatefulSet', ...common, pods: 3 }]);
    expect(requestsFor(review({ operation: 'DELETE', dryRun: true }), 'delete', stored, 0)).toEqual([
      { kind: 'deleteStatefulSet', ...common, dryRun: true },
    ]);
  });

  it('reads a dry run from the options of an eviction too', () => {
    const object = { deleteOptions: { dryRun: ['All'] } };
    const eviction = review({ resource: pod, operation: 'CREATE', subresource: 'eviction', object });
    expect(isDryRun(eviction)).toBe(true);
    expect(isDryRun({ ...eviction, object: { deleteOptions: {} } })).toBe(false);
    expect(isDryRun(review({ object }))).toBe(false);
    expect(podRequest(eviction, 'evictPod', 'db-a-0')).toEqual({
      kind: 'evictPod',
      namespace: 'prod',
      pod: 'db-a-0',
      user: 'kim',
      groups: ['oncall'],
      dryRun: true,
    });
  });
});
