import { describe, expect, it } from 'vitest';
import { checkHistory, countWrites, type WatchedGroup } from './watcher.ts';
import type { History, ObjectEvent, RecordedPod, RecordedRequest, RecordedSet } from './watcher-history.ts';

const agent = 'agent';
const group: WatchedGroup = {
  namespace: 'db',
  zones: [
    { statefulSet: 'a', maxUnavailable: 1 },
    { statefulSet: 'b', maxUnavailable: '50%' },
  ],
};

/** Writes a history by hand: two zones of three pods, ready at revision `old`. `new` is the update revision. */
class Recording {
  readonly events: ObjectEvent[] = [];
  readonly requests: RecordedRequest[] = [];
  #revision = 0;
  #generation = 0;

  constructor() {
    for (const set of ['a', 'b']) {
      this.set(set);
      for (let ordinal = 0; ordinal < 3; ordinal++) this.pod(`${set}-${ordinal}`);
    }
  }

  set(name: string, { replicas = 3, updateRevision = 'new', minReadySeconds = 0 } = {}): void {
    const metadata = { name, namespace: 'db', uid: `set-${name}`, resourceVersion: this.#next() };
    const object: RecordedSet = { metadata, spec: { replicas, minReadySeconds }, status: { updateRevision } };
    this.events.push({ type: 'MODIFIED', kind: 'StatefulSet', object });
  }

  pod(
    name: string,
    { uid = `${name}-old`, hash = 'old', ready = true, terminating = false, type = 'MODIFIED' as ObjectEvent['type'], readyAt = 0 } = {},
  ): void {
    const metadata = {
      name,
      namespace: 'db',
      uid,
      resourceVersion: this.#next(),
      labels: { 'controller-revision-hash': hash },
      ownerReferences: [{ uid: `set-${name[0]}`, controller: true }],
      ...(terminating ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    };
    const condition = { type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: new Date(readyAt).toISOString() };
    const object: RecordedPod = { metadata, spec: { nodeName: 'node' }, status: { phase: 'Running', conditions: [condition] } };
    this.events.push({ type, kind: 'Pod', object });
  }

  node(isReady: boolean): void {
    const object = {
      metadata: { name: 'node', uid: 'node', resourceVersion: this.#next() },
      status: { conditions: [{ type: 'Ready', status: isReady ? 'True' : 'Unknown' }] },
    };
    this.events.push({ type: 'MODIFIED', kind: 'Node', object });
  }

  request(request: Partial<RecordedRequest>): void {
    this.requests.push({
      requestURI: '/',
      verb: 'get',
      user: { username: agent },
      responseStatus: { code: 200 },
      requestReceivedTimestamp: new Date(1_000_000 + this.requests.length).toISOString(),
      stageTimestamp: new Date(1_000_000 + this.requests.length).toISOString(),
      ...request,
    });
  }

  /** Adds a correct delete, and the pod begins to terminate. */
  delete(name: string, { uid = `${name}-old`, user = agent, preconditions = { uid, resourceVersion: '1' } as unknown } = {}): void {
    this.request({
      verb: 'delete',
      user: { username: user },
      objectRef: { resource: 'pods', namespace: 'db', name },
      requestObject: { preconditions },
      responseObject: { kind: 'Pod', metadata: { uid } },
    });
    this.pod(name, { uid, hash: uid.endsWith('old') ? 'old' : 'new', terminating: true });
  }

  /** The deleted pod ends, and its successor appears. */
  replace(name: string, { ready = true, hash = 'new' } = {}): void {
    this.pod(name, { type: 'DELETED', terminating: true });
    this.pod(name, { uid: `${name}-new`, type: 'ADDED', hash, ready });
  }

  violations(groups: readonly WatchedGroup[] = [group]): readonly string[] {
    const history: History = { requests: this.requests, events: this.events };
    return checkHistory(history, [agent], groups).map(({ invariant, message }) => `${invariant} ${message}`);
  }

  #next(): string {
    this.#revision += 1;
    this.#generation += 1;
    return String(this.#revision);
  }
}

describe('the watcher', () => {
  it('finds nothing in a roll that keeps the rules', () => {
    const recording = new Recording();
    for (const name of ['a-2', 'a-1', 'a-0', 'b-2', 'b-1', 'b-0']) {
      recording.delete(name);
      recording.replace(name);
    }
    expect(recording.violations()).toEqual([]);
  });

  it('judges only the actors', () => {
    const recording = new Recording();
    recording.delete('a-0', { user: 'somebody', preconditions: null });
    recording.delete('b-0', { user: 'somebody', preconditions: null });
    expect(recording.violations()).toEqual([]);
  });

  it('finds a pod disturbed while another zone lacks one (S1)', () => {
    const recording = new Recording();
    recording.pod('b-1', { ready: false });
    recording.delete('a-0');
    expect(recording.violations()).toEqual(['S1 delete pods db/a-0: b lacks 1 pods: 1']);
  });

  it('counts a missing pod, a terminating pod, and pods on a node that is not ready as lacking (S1)', () => {
    const missing = new Recording();
    missing.pod('b-1', { type: 'DELETED' });
    missing.delete('a-0');
    const terminating = new Recording();
    terminating.pod('b-2', { terminating: true });
    terminating.delete('a-0');
    const lost = new Recording();
    lost.node(false);
    lost.delete('a-0');
    const short = new Recording();
    short.set('b', { minReadySeconds: 10 });
    short.pod('b-0', { readyAt: 999_000 });
    short.delete('a-0');
    expect([missing, terminating, lost, short].map((recording) => recording.violations())).toEqual([
      ['S1 delete pods db/a-0: b lacks 1 pods: 1'],
      ['S1 delete pods db/a-0: b lacks 1 pods: 2'],
      ['S1 delete pods db/a-0: b lacks 3 pods: 0, 1, 2'],
      ['S1 delete pods db/a-0: b lacks 1 pods: 0'],
    ]);
  });

  it('does not ask of a zone what it had before or has after', () => {
    const recording = new Recording();
    recording.pod('b-1', { ready: false });
    recording.pod('b-1', { ready: true });
    recording.delete('a-0');
    recording.pod('b-1', { ready: false });
    expect(recording.violations()).toEqual([]);
  });

  it('finds a budget exceeded by a pod that is down for another reason (S2), but lets that pod be replaced', () => {
    const recording = new Recording();
    recording.pod('a-1', { ready: false });
    recording.delete('a-1');
    recording.delete('a-0');
    expect(recording.violations()).toEqual([
      'S2 delete pods db/a-0: with 1 others down it is more than 1',
      'S8 delete pods db/a-0: 1 disruptions in the zone have not settled, and no more than 1 may be open',
    ]);
  });

  it('takes a percentage of the replicas, at least one', () => {
    const recording = new Recording();
    recording.set('b', { replicas: 4 });
    recording.pod('b-3');
    recording.delete('b-0');
    recording.delete('b-1');
    expect(recording.violations()).toEqual([]);
    recording.delete('b-2');
    expect(recording.violations().map((line) => line.slice(0, 2))).toEqual(['S2', 'S8']);
  });

  it('finds a pod at the update revision disturbed (S6)', () => {
    const recording = new Recording();
    recording.set('a', { updateRevision: 'old' });
    recording.delete('a-0');
    expect(recording.violations()).toEqual(['S6 delete pods db/a-0: the pod is at the update revision old']);
  });

  it('finds a pod deleted twice, and one that another client was deleting (S7)', () => {
    const twice = new Recording();
    twice.delete('a-0');
    twice.delete('a-0');
    const late = new Recording();
    late.delete('a-0', { user: 'controller' });
    late.delete('a-0');
    expect([twice.violations(), late.violations()]).toEqual([
      ['S7 delete pods db/a-0: the pod a-0-old was deleted before'],
      ['S7 delete pods db/a-0: the pod a-0-old was being deleted by controller'],
    ]);
  });

  it('finds the next disruption before the successor is at the update revision (S8)', () => {
    const recording = new Recording();
    recording.delete('a-0');
    recording.replace('a-0', { hash: 'old' });
    recording.delete('a-1');
    const other = new Recording();
    other.delete('a-0');
    other.replace('a-0', { hash: 'old' });
    other.delete('b-1');
    expect([recording.violations(), other.violations()]).toEqual([
      ['S8 delete pods db/a-1: 1 disruptions in the zone have not settled, and no more than 1 may be open'],
      ['S8 delete pods db/b-1: 1 disruptions in other zones have not settled'],
    ]);
  });

  it('takes a successor that came at the update revision of its time as settled', () => {
    const recording = new Recording();
    recording.delete('a-0');
    recording.set('a', { updateRevision: 'newer' });
    recording.replace('a-0');
    recording.delete('a-1');
    expect(recording.violations()).toEqual([]);
  });

  it('forgets a disruption whose place was scaled away', () => {
    const recording = new Recording();
    recording.delete('a-2');
    recording.set('a', { replicas: 2 });
    recording.pod('a-2', { type: 'DELETED' });
    recording.delete('a-1');
    expect(recording.violations()).toEqual([]);
  });

  it('knows whom a delete hit without its precondition', () => {
    const recording = new Recording();
    recording.delete('a-0', { preconditions: null });
    recording.pod('b-0', { ready: false });
    recording.delete('a-0', { preconditions: null });
    expect(recording.violations().map((line) => line.split(' ')[0])).toEqual(['S20', 'S20', 'S20', 'S20', 'S7']);
  });
});

const ref = { resource: 'statefulsets', namespace: 'db', name: 'a' };
const pod = { resource: 'pods', namespace: 'db', name: 'a-0' };
const eviction = { ...pod, subresource: 'eviction' };

describe('a write', () => {
  it.each([
    [
      'a delete with both preconditions',
      { verb: 'delete', objectRef: pod, requestObject: { preconditions: { uid: 'u', resourceVersion: '1' } } },
      [],
    ],
    ['a delete with the UID alone', { verb: 'delete', objectRef: pod, requestObject: { preconditions: { uid: 'u' } } }, ['S20']],
    ['a delete that is refused', { verb: 'delete', objectRef: pod, responseStatus: { code: 409 } }, ['S20', 'S20']],
    ['a delete that nobody read', { verb: 'delete', objectRef: pod, responseStatus: { code: 403 } }, []],
    [
      'an eviction with its UID',
      {
        verb: 'create',
        objectRef: eviction,
        requestObject: { deleteOptions: { preconditions: { uid: 'u' } } },
        responseStatus: { code: 429 },
      },
      [],
    ],
    ['an eviction without', { verb: 'create', objectRef: eviction, requestObject: {}, responseStatus: { code: 429 } }, ['S20']],
    ['an update with resourceVersion', { verb: 'update', objectRef: ref, requestObject: { metadata: { resourceVersion: '1' } } }, []],
    ['an update without', { verb: 'update', objectRef: ref, requestObject: { metadata: {} } }, ['S20']],
    ['a merge patch with resourceVersion', { verb: 'patch', objectRef: ref, requestObject: { metadata: { resourceVersion: '1' } } }, []],
    ['a merge patch without', { verb: 'patch', objectRef: ref, requestObject: { spec: { replicas: 1 } } }, ['S20']],
    ['a JSON patch with a test', { verb: 'patch', objectRef: ref, requestObject: [{ op: 'test' }, { op: 'replace' }] }, []],
    ['a JSON patch without', { verb: 'patch', objectRef: ref, requestObject: [{ op: 'replace' }] }, ['S20']],
    ['an apply', { verb: 'patch', objectRef: ref, requestURI: '/?fieldManager=agent', requestObject: { kind: 'StatefulSet' } }, []],
    [
      'an apply by force',
      { verb: 'patch', objectRef: ref, requestURI: '/?fieldManager=agent&force=true', requestObject: { kind: 'StatefulSet' } },
      ['S20'],
    ],
    ['a created object with a name', { verb: 'create', objectRef: ref, requestObject: { metadata: { name: 'a' } } }, []],
    ['a created object without', { verb: 'create', objectRef: ref, requestObject: { metadata: { generateName: 'a' } } }, ['S20']],
    ['a dry run', { verb: 'patch', objectRef: ref, requestURI: '/?dryRun=All', requestObject: {} }, []],
    [
      'a review',
      { verb: 'create', objectRef: { resource: 'selfsubjectaccessreviews' }, requestObject: { metadata: { generateName: 'a' } } },
      [],
    ],
    ['a read', { verb: 'list', objectRef: ref }, []],
    [
      'a delete of a StatefulSet',
      {
        verb: 'delete',
        objectRef: ref,
        requestObject: { preconditions: { uid: 'u', resourceVersion: '1' } },
        responseStatus: { code: 403 },
      },
      ['S10'],
    ],
    [
      'a delete without grace',
      {
        verb: 'delete',
        objectRef: pod,
        requestObject: { gracePeriodSeconds: 0, preconditions: { uid: 'u', resourceVersion: '1' } },
        responseStatus: { code: 409 },
      },
      ['S10'],
    ],
    ['a deleted collection', { verb: 'deletecollection', objectRef: { resource: 'pods', namespace: 'db' } }, ['S10']],
  ] as const)('%s', (_, request, invariants) => {
    const recording = new Recording();
    recording.events.length = 0;
    recording.request(request);
    const found = checkHistory({ requests: recording.requests, events: [] }, [agent], []).map(({ invariant }) => invariant);
    expect(found.filter((invariant) => invariant !== 'S7')).toEqual(invariants);
  });

  it('is counted by verb and resource; renewals of Leases are not', () => {
    const recording = new Recording();
    recording.delete('a-0');
    recording.delete('a-1');
    recording.request({ verb: 'update', objectRef: { resource: 'leases' } });
    recording.request({ verb: 'update', objectRef: { resource: 'statefulsets', subresource: 'status' }, responseStatus: { code: 409 } });
    recording.request({ verb: 'patch', objectRef: ref, user: { username: 'somebody' } });
    expect(countWrites(recording, [agent])).toEqual({ 'delete pods': 2, 'update statefulsets/status': 1 });
  });
});
