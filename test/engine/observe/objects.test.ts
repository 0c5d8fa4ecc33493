import { describe, expect, it } from 'vitest';
import { appliedCommit, applierOf } from '../../../engine/observe/applier.ts';
import { observeNode, observePod, observeStatefulSet } from '../../../engine/observe/objects.ts';
import { fieldAt } from '../../../engine/observe/raw.ts';
import { withRevisions } from '../../../engine/observe/revisions.ts';
import { observeReplicaSource } from '../../../engine/observe/source.ts';

const rawSet = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: {
    namespace: 'mimir',
    name: 'ingester-zone-a',
    uid: 'u',
    resourceVersion: '7',
    generation: 3,
    labels: { l: '1' },
    annotations: null,
  },
  spec: {
    replicas: 2,
    ordinals: { start: 5 },
    podManagementPolicy: 'Parallel',
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 4 } },
    minReadySeconds: 10,
    serviceName: 'headless',
    template: {
      metadata: { labels: { name: 'ingester-zone-a' } },
      spec: { containers: [{ name: 'app', image: 'x/app:1' }, { name: 'bare' }] },
    },
  },
  status: { observedGeneration: 3, replicas: 2, readyReplicas: 1, currentRevision: 'one', updateRevision: 'two' },
};

describe('a StatefulSet', () => {
  it('is read field by field, and missing counters are zero', () => {
    expect(observeStatefulSet(rawSet)).toEqual({
      namespace: 'mimir',
      name: 'ingester-zone-a',
      uid: 'u',
      resourceVersion: '7',
      generation: 3,
      labels: { l: '1' },
      annotations: {},
      replicas: 2,
      firstOrdinal: 5,
      updateStrategy: 'RollingUpdate',
      partition: 4,
      podManagementPolicy: 'Parallel',
      minReadySeconds: 10,
      serviceName: 'headless',
      podLabels: { name: 'ingester-zone-a' },
      images: { app: 'x/app:1' },
      isTerminating: false,
      status: { observedGeneration: 3, replicas: 2, readyReplicas: 1, updatedReplicas: 0, currentRevision: 'one', updateRevision: 'two' },
    });
  });

  it('has the defaults of the API server for missing fields', () => {
    expect(observeStatefulSet({ metadata: { name: 'x' }, spec: { replicas: null } })).toMatchObject({
      replicas: 1,
      updateStrategy: 'RollingUpdate',
      partition: 0,
      podManagementPolicy: 'OrderedReady',
      firstOrdinal: 0,
    });
  });

  it.each([
    [undefined, 'StatefulSet /: metadata.name is missing'],
    ['text', 'StatefulSet /: metadata.name is missing'],
    [{ metadata: { name: 'x' }, spec: { replicas: '3' } }, 'StatefulSet /x: spec.replicas is not a whole number of 32 bits'],
    [{ metadata: { name: 'x' }, spec: { replicas: -1 } }, 'StatefulSet /x: spec.replicas is negative'],
    [{ metadata: { name: 'x', labels: { a: 1 } } }, 'StatefulSet /x: metadata.labels is not a map of text'],
    [{ metadata: { name: 'x' }, spec: { updateStrategy: { type: 'Magic' } } }, 'StatefulSet /x: spec.updateStrategy.type Magic is unknown'],
    [{ metadata: { name: 'x' }, spec: { podManagementPolicy: 'Any' } }, 'StatefulSet /x: spec.podManagementPolicy Any is unknown'],
  ])('with an invalid shape is unknown, with the field: %j', (raw, unknown) => {
    expect(observeStatefulSet(raw)).toEqual({ unknown });
  });
});

const rawPod = {
  metadata: {
    namespace: 'mimir',
    name: 'ingester-zone-a-12',
    uid: 'p',
    resourceVersion: '9',
    creationTimestamp: '2026-03-01T00:00:00Z',
    labels: { 'controller-revision-hash': 'two' },
    annotations: { 'grafana.com/ready-time': '2026-03-01T10:00:00Z' },
    ownerReferences: [
      { kind: 'Other', name: 'x', uid: '1' },
      { kind: 'StatefulSet', name: 'ingester-zone-a', uid: 'u', controller: true },
    ],
  },
  spec: { nodeName: 'node-1' },
  status: {
    phase: 'Running',
    startTime: '2026-03-01T00:00:05Z',
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-03-01T00:01:00Z' }],
    containerStatuses: [{ ready: true, state: { running: { startedAt: '2026-03-01T00:00:30Z' } } }],
  },
};

const statuses = (...containerStatuses: readonly unknown[]) => ({ ...rawPod, status: { ...rawPod.status, containerStatuses } });

describe('a pod', () => {
  it('is read with its owner, revision, ordinal and ready time', () => {
    expect(observePod(rawPod)).toEqual({
      namespace: 'mimir',
      name: 'ingester-zone-a-12',
      uid: 'p',
      resourceVersion: '9',
      ordinal: 12,
      revision: 'two',
      labels: { 'controller-revision-hash': 'two' },
      phase: 'Running',
      isReady: true,
      containersReady: true,
      readyChangedMs: Date.parse('2026-03-01T00:01:00Z'),
      isTerminating: false,
      waitingReasons: [],
      node: 'node-1',
      nodeReady: true,
      readyTimeMs: Date.parse('2026-03-01T10:00:00Z'),
      owner: { kind: 'StatefulSet', name: 'ingester-zone-a', uid: 'u' },
    });
  });

  it.each([
    ['no container status', [], true, []],
    ['a running, ready container', [{ ready: true, state: { running: {} } }], true, []],
    ['a running container that is not ready', [{ ready: false, state: { running: {} } }], false, []],
    ['a ready container without a running state', [{ ready: true, state: { terminated: {} } }], false, []],
    ['one that crashes', [{ ready: false, state: { waiting: { reason: 'CrashLoopBackOff' } } }], false, ['CrashLoopBackOff']],
    ['one ready and one without a state', [{ ready: true, state: { running: {} } }, {}], false, []],
    ['a status that is no object', ['x'], false, []],
  ])('with %s', (_case, containers, containersReady, waitingReasons) => {
    expect(observePod(statuses(...containers))).toMatchObject({ containersReady, waitingReasons });
  });

  it('that never became ready counts from its start, and before its start from its creation', () => {
    const unscheduled = { ...rawPod, status: { phase: 'Pending' } };
    const started = { ...rawPod, status: { phase: 'Running', startTime: rawPod.status.startTime } };
    expect(observePod(started)).toMatchObject({ isReady: false, readyChangedMs: Date.parse('2026-03-01T00:00:05Z') });
    expect(observePod(unscheduled)).toMatchObject({ phase: 'Pending', readyChangedMs: Date.parse('2026-03-01T00:00:00Z') });
  });

  it('that terminates has the start of its grace period', () => {
    const metadata = { ...rawPod.metadata, deletionTimestamp: '2026-03-01T00:10:30Z', deletionGracePeriodSeconds: 30 };
    expect(observePod({ ...rawPod, metadata })).toMatchObject({
      isTerminating: true,
      terminatingSinceMs: Date.parse('2026-03-01T00:10:00Z'),
    });
  });

  it('without labels, owner or annotations has an empty revision, which counts as outdated', () => {
    const observed = observePod({ metadata: { name: 'web-5c9' } });
    expect(observed).toMatchObject({ revision: '', ordinal: -1, phase: 'Unknown', isReady: false, isTerminating: false });
    expect(Object.keys(observed)).not.toContain('owner');
  });

  it('with an invalid ready-time has no ready-time', () => {
    const odd = { ...rawPod, metadata: { ...rawPod.metadata, annotations: { 'grafana.com/ready-time': 'yesterday' } } };
    expect(Object.keys(observePod(odd))).not.toContain('readyTimeMs');
  });

  it('with a wrong type is unknown', () => {
    expect(observePod({ metadata: { name: 'a-0', namespace: 'n' }, status: { conditions: {} } })).toEqual({
      unknown: 'Pod n/a-0: status.conditions is not a list',
    });
  });
});

describe('a node', () => {
  it('is ready by its condition', () => {
    const node = (status: string) => ({ metadata: { name: 'n' }, status: { conditions: [{ type: 'Ready', status }] } });
    expect([observeNode(node('True')), observeNode(node('Unknown')), observeNode(7)]).toEqual([
      { name: 'n', isReady: true },
      { name: 'n', isReady: false },
      { name: '', isReady: false },
    ]);
  });
});

describe('a replica source', () => {
  const template = {
    namespace: 'mimir',
    apiVersion: 'rollout-operator.grafana.com/v1',
    kind: 'ReplicaTemplate',
    name: 'r',
    read: 'scale',
  } as const;
  const autoscaler = { ...template, apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', read: 'desiredReplicas' } as const;
  const custom = { ...template, kind: 'Cluster', read: 'fieldPath', fieldPath: ['spec', 'nodes', 'count'] } as const;

  it.each([
    [template, { kind: 'ReplicaTemplate', spec: { replicas: 4 }, status: { replicas: 3 } }, 4],
    [template, { kind: 'ReplicaTemplate', spec: {} }, 1],
    [template, { kind: 'Scale', spec: {} }, 0],
    [
      template,
      { kind: 'ReplicaTemplate', spec: { replicas: 'x' } },
      { unknown: 'spec.replicas of ReplicaTemplate mimir/r is not a whole number of 0 or more' },
    ],
    [template, undefined, { unknown: 'ReplicaTemplate mimir/r does not exist' }],
    [autoscaler, { status: { desiredReplicas: 9 } }, 9],
    [autoscaler, { spec: { minReplicas: 3 } }, { unknown: 'HorizontalPodAutoscaler mimir/r has no status.desiredReplicas' }],
    [custom, { spec: { nodes: { count: 5 } } }, 5],
    [custom, { spec: { nodes: { count: -5 } } }, { unknown: 'spec.nodes.count of Cluster mimir/r is not a whole number of 0 or more' }],
    [{ ...custom, read: 'scale' } as const, { spec: {} }, { unknown: 'Cluster mimir/r has no spec.replicas' }],
  ])('%j of %j', (reference, raw, replicas) => {
    expect(observeReplicaSource(reference, raw).replicas).toEqual(replicas);
  });

  it('has the replicas of its status only if they can be written back', () => {
    expect([
      observeReplicaSource(template, { spec: { replicas: 4 }, status: { replicas: 3 } }).statusReplicas,
      observeReplicaSource(template, { spec: { replicas: 4 } }).statusReplicas,
      observeReplicaSource(autoscaler, { status: { desiredReplicas: 4 } }).statusReplicas,
    ]).toEqual([3, 0, undefined]);
  });
});

const [one, two] = ['1', '2'].map((digit) => digit.repeat(40));
const set = { namespace: 'mimir', name: 'ingester-zone-a' };

describe('the object that applied a StatefulSet', () => {
  it.each([
    [
      { labels: { 'kustomize.toolkit.fluxcd.io/name': 'mimir', 'kustomize.toolkit.fluxcd.io/namespace': 'flux-system' } },
      'Kustomization flux-system/mimir',
    ],
    [{ labels: { 'kustomize.toolkit.fluxcd.io/name': 'mimir' } }, undefined],
    [{ annotations: { 'argocd.argoproj.io/tracking-id': 'mimir:apps/StatefulSet:mimir/ingester-zone-a' } }, 'Application argocd/mimir'],
    [{ annotations: { 'argocd.argoproj.io/tracking-id': 'team_mimir:apps/StatefulSet:mimir/ingester-zone-a' } }, 'Application team/mimir'],
    [{ labels: { 'argocd.argoproj.io/instance': 'mimir' } }, 'Application argocd/mimir'],
    [{ labels: { 'helm.toolkit.fluxcd.io/name': 'mimir' } }, undefined],
    [{}, undefined],
  ])('follows from its labels and annotations: %j', (metadata, expected) => {
    const applier = applierOf({ labels: {}, annotations: {}, ...metadata } as never, 'argocd');
    expect(applier && `${applier.kind} ${applier.namespace}/${applier.name}`).toBe(expected);
  });
});

describe('the applied commit', () => {
  const inventory = { entries: [{ id: 'mimir_ingester-zone-a_apps_StatefulSet', v: 'v1' }] };
  const resources = [{ group: 'apps', kind: 'StatefulSet', ...set }];
  const running = (sync: object, compared: object = {}) => ({
    resources,
    sync: compared,
    operationState: { phase: 'Running', operation: { sync }, syncResult: { revision: one } },
  });

  it.each([
    ['a branch of Flux', { inventory, lastAppliedRevision: `main@sha1:${one}`, lastAttemptedRevision: `main@sha1:${two}` }, two],
    ['a detached commit of Flux', { inventory, lastAttemptedRevision: `sha1:${two}` }, two],
    ['the digest of an OCI artifact', { inventory, lastAttemptedRevision: `latest@sha256:${'a'.repeat(64)}` }, undefined],
    ['a Kustomization without this StatefulSet', { inventory: { entries: [] }, lastAttemptedRevision: `main@sha1:${two}` }, undefined],
    ['a finished sync', { resources, sync: { revision: two }, operationState: { phase: 'Succeeded', syncResult: { revision: one } } }, one],
    ['a running sync', running({ revision: two }), two],
    ['a running sync of a branch', running({ revision: 'main' }, { revision: two }), two],
    ['several sources, of which one is a chart', running({ revisions: ['5.8.0', two] }), two],
    ['an Application without this StatefulSet', { operationState: { phase: 'Succeeded', syncResult: { revision: one } } }, undefined],
    ['no status', undefined, undefined],
  ])('is that of %s', (_, status, expected) => {
    expect(appliedCommit({ status }, set)).toBe(expected);
  });

  it('is unknown without the object', () => {
    expect(appliedCommit(undefined, set)).toBeUndefined();
  });
});

function setWith(image: string, more: object = {}) {
  const template = { spec: { containers: [{ name: 'main', image }] } };
  return { kind: 'StatefulSet', metadata: { name: 'a', namespace: 'm', uid: 'u' }, spec: { template }, ...more };
}

const running = setWith('x:1', { status: { updateRevision: 'a-1', replicas: 3 } });

function revision(name: string, image: string, uid = 'u') {
  return {
    metadata: { name, ownerReferences: [{ uid }] },
    data: { spec: { template: { $patch: 'replace', ...setWith(image).spec.template } } },
  };
}

function revisionOf(asked: ReturnType<typeof setWith>, revisions: readonly unknown[] = []): unknown {
  return fieldAt(withRevisions([asked], [running], revisions)[0], ['status', 'updateRevision']);
}

describe('the revision of a manifest', () => {
  it('is the current one if the template is equivalent', () => {
    expect(revisionOf(setWith('x:1'))).toBe('a-1');
    const spelledOut = setWith('x:1');
    const containers = [{ ...spelledOut.spec.template.spec.containers[0], imagePullPolicy: 'IfNotPresent' }];
    expect(revisionOf({ ...spelledOut, spec: { template: { spec: { containers } } } } as ReturnType<typeof setWith>)).toBe('a-1');
  });

  it('is unknown if the template is new, also if the manifest was exported with its status', () => {
    expect(revisionOf(setWith('x:2'))).toBeUndefined();
    expect(revisionOf(setWith('x:2', { status: { updateRevision: 'a-1' } }))).toBeUndefined();
  });

  it('is the revision of an earlier template that is applied again, for this StatefulSet only', () => {
    expect(revisionOf(setWith('x:0'), [revision('a-0', 'x:0')])).toBe('a-0');
    expect(revisionOf(setWith('x:0'), [revision('b-0', 'x:0', 'other')])).toBeUndefined();
  });

  it('is the name that Kubernetes computes if the revision of a running StatefulSet proves it', () => {
    // A control plane of Kubernetes 1.36 gave these names.
    const cache = (zone: string, image: string, status?: object) => {
      const http = { failureThreshold: 3, httpGet: { path: '/ready', port: 'http', scheme: 'HTTP' }, periodSeconds: 10 };
      const container = {
        image: `registry.example.com/cache:${image}`,
        imagePullPolicy: 'IfNotPresent',
        name: 'cache',
        ports: [{ containerPort: 8080, name: 'http', protocol: 'TCP' }],
        readinessProbe: { ...http, successThreshold: 1, timeoutSeconds: 1 },
        resources: {},
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
      };
      const spec = {
        containers: [container],
        dnsPolicy: 'ClusterFirst',
        nodeSelector: { 'topology.kubernetes.io/zone': `eu-west-1${zone}` },
        restartPolicy: 'Always',
        schedulerName: 'default-scheduler',
        securityContext: {},
        terminationGracePeriodSeconds: 30,
      };
      const template = { metadata: { labels: { app: 'cache', zone } }, spec };
      return { kind: 'StatefulSet', metadata: { name: `cache-${zone}`, namespace: 'shop' }, spec: { template }, ...(status && { status }) };
    };
    const a = cache('a', '1.0.0', { updateRevision: 'cache-a-6454649c64' });
    const asked = [cache('a', '1.3.0-broken'), cache('b', '1.0.0'), cache('b', '1.3.0-broken')];
    const namesOf = (running: readonly unknown[]) => withRevisions(asked, running).map((one) => fieldAt(one, ['status', 'updateRevision']));
    expect(namesOf([a])).toEqual(['cache-a-7f7c658bb7', 'cache-b-bf9ddc684', 'cache-b-78749f6765']);
    expect(namesOf([cache('a', '1.0.0', { updateRevision: 'cache-a-1' })])).toEqual([undefined, undefined, undefined]);
  });

  it('is undefined if no pod runs or no status reports a revision', () => {
    const asked = setWith('x:1');
    expect(withRevisions([asked], [])[0]).toBe(asked);
    expect(withRevisions([asked], [setWith('x:0')])[0]).toBe(asked);
  });
});
