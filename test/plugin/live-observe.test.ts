import { describe, expect, it } from 'vitest';
import { emptyNotes } from '../../engine/notify/notes.ts';
import { notesKey, notesLabelValue, notesName } from '../../engine/notify/notes-document.ts';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { type FakeApiServer, type FakeOptions, fakeApiServer } from './api-server.ts';
import { type Ended, type InProcess, runInProcess } from './in-process.ts';
import { done, paused, rolling, waiting } from './live-kit.ts';
import { adoptedObjects, leaseObject, publishedObject, requesterWebhook, statefulSetObject } from './live-objects.ts';
import type { FakeObject } from './served-objects.ts';

/** None of our kinds is installed. */
const noKinds: FakeOptions = {
  missing: ['rolloutgroups', 'rolloutpolicies', 'rolloutexceptions', 'rolloutintents', 'rolloutruns', 'zoneawarepoddisruptionbudgets'],
};

/** What `paused` was decided on. */
const pause = {
  apiVersion: 'rollout-group.dev/v1alpha1',
  kind: 'RolloutIntent',
  metadata: { name: 'pause.ingester', namespace: 'mimir' },
  spec: { group: 'ingester', action: 'pause', reason: 'read latency' },
};

function on({ url }: Pick<FakeApiServer, 'url'>, line: string, circumstances: InProcess = {}): Promise<Ended> {
  return runInProcess([...line.split(' '), '--server', url, ...(line.includes('-A') ? [] : ['-n', 'mimir'])], circumstances);
}

function now(decision: PublishedDecision): PublishedDecision {
  return { ...decision, decidedMs: Date.now() };
}

async function ask(objects: readonly FakeObject[], line: string, options: FakeOptions = noKinds): Promise<Ended> {
  return on(await fakeApiServer(objects, options), line);
}

describe('get', () => {
  const published = [publishedObject(now(rolling)), publishedObject({ ...now(done), group: 'querier' })];

  it('lists the published decisions, and nothing else', async () => {
    const { status, stdout, stderr } = await ask(published, 'get');
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 2))).toEqual([
      ['NAME', 'PHASE'],
      ['ingester', 'Rolling'],
      ['querier', 'Done'],
      [''],
    ]);
  });

  it('has names like kubectl, which every verb accepts', async () => {
    const names = 'rolloutgroup.rollout-group.dev/ingester\nrolloutgroup.rollout-group.dev/querier\n';
    expect((await ask(published, 'get -o name')).stdout).toBe(names);
  });

  it('names a StatefulSet or a pod', async () => {
    for (const named of ['sts/ingester-zone-a', 'pod/ingester-zone-a-2'])
      expect(await ask(published, `get ${named.slice(4)}`)).toMatchObject({ status: 10, stderr: expect.stringContaining(named) });
  });

  it('has one envelope for programs, with timestamps without milliseconds', async () => {
    const { stdout } = await ask(published, 'get -o json');
    const document = JSON.parse(stdout);
    expect(document).toMatchObject({ apiVersion: 'rollout-group.dev/cli/v1', kind: 'GroupList' });
    expect(document.groups[0]).toMatchObject({ group: { namespace: 'mimir', name: 'ingester' }, decidedBy: 'agent-0', phase: 'Rolling' });
    expect(document.groups[0].decidedAt).toMatch(/^\d{4}-.*Z$/);
    expect(stdout).not.toMatch(/Ms":/);
  });

  it('reads the status of a RolloutGroup', async () => {
    const object = {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'ingester', namespace: 'mimir' },
      status: { decision: now(paused) },
    };
    expect((await ask([object], 'get -o jsonl', {})).stdout).toContain('"phase":"Paused"');
  });

  it('names the failing channels of the shown groups', async () => {
    const notesOf = (group: string): FakeObject => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: notesName(group), namespace: 'mimir', labels: { 'rollout-group.dev/document': notesLabelValue } },
      data: {
        [notesKey]: JSON.stringify({ format: '1', ...emptyNotes('mimir', group), problems: { sre: { text: 'HTTP 403', sinceMs: 1 } } }),
      },
    });
    const objects = [publishedObject(now(rolling)), notesOf('ingester'), notesOf('store')];
    const { stderr } = await ask(objects, 'get ingester');
    expect(stderr).toContain('note: the channel sre of ingester fails: HTTP 403\n');
    expect(stderr).not.toContain('of store');
  });

  it('computes the decision of a group without a published one, and reports this', async () => {
    const { status, stdout, stderr } = await ask(adoptedObjects(), 'get ingester', { ...noKinds, hasAgent: false });
    expect(status).toBe(0);
    expect(stdout).toContain('mimir/ingester   DONE');
    expect(stdout).toContain('decided by this command');
    expect(stderr).toBe('note: no agent has published mimir/ingester (agent not running: no Lease); decided by this command\n');
  });

  it('names the unreadable objects, and treats them as unknown', async () => {
    const { stdout, stderr } = await ask(adoptedObjects(), 'get ingester', { ...noKinds, forbidden: ['pods'] });
    expect(stderr).toContain('; no permission to list pods');
    expect(stdout).not.toContain('DONE');
  });

  it('counts no pods of zones with unreadable pods', async () => {
    const options = { ...noKinds, forbidden: ['pods'] };
    const { stdout } = await ask(adoptedObjects(), 'get', options);
    const [titles = [], cells = []] = stdout.split('\n').map((line) => line.trim().split(/ {2,}/));
    expect(['UPDATED', 'READY'].map((title) => cells[titles.indexOf(title)])).toEqual(['?', '?']);
    const tree = (await ask(adoptedObjects(), 'get ingester', options)).stdout;
    const explained = (await ask(adoptedObjects(), 'explain ingester', options)).stdout;
    const zone = (await ask(adoptedObjects(), 'explain ingester-zone-b', options)).stdout;
    for (const text of [stdout, tree, explained, zone]) expect(text).not.toMatch(/nothing to do|\b0\/|on the way|in flight/);
    expect(explained).toMatch(/goal +unknown for zones a, b, c\n/);
    expect(tree).toMatch(/a +leader +unknown +- +\?/);
  });

  it.each([
    ['a group that is not there', 'get nonsense', noKinds, 10],
    ['nothing may be read', 'get', { forbidden: ['configmaps', 'statefulsets', 'rolloutgroups'] }, 11],
    ['a document that would never end', 'get -w -o yaml', noKinds, 3],
  ] as const)('ends with its exit code: %s', async (_, line, options, status) => {
    expect((await ask(published, line, options)).status).toBe(status);
  });

  it('answers a missing permission with the rule that grants it', async () => {
    const { stderr } = await ask([], 'get', { forbidden: ['configmaps', 'statefulsets', 'rolloutgroups'] });
    expect(stderr).toContain('error: anna may not list rolloutgroups in namespace mimir\n');
    expect(stderr).toContain('with the rule {apiGroups: ["rollout-group.dev"], resources: ["rolloutgroups"], verbs: ["list"]}');
  });

  it('ends with 12 if no server answers', async () => {
    expect((await on({ url: 'http://127.0.0.1:1' }, 'get')).status).toBe(12);
  });
});

describe('an agent that no longer runs', () => {
  const old = publishedObject({ ...waiting, decidedMs: Date.now() - 600_000 });

  it('is distinguished from an agent without decisions', async () => {
    const gone = [old, leaseObject('agent-0', Date.now() - 300_000)];
    const there = [old, leaseObject('agent-0', Date.now())];
    expect((await ask(gone, 'get')).stderr).toMatch(/^note: agent not running: Lease expired 4m4\ds ago; the decision was made 10m ago\n$/);
    expect((await ask(there, 'get')).stderr).toBe('');
    expect((await ask([old], 'get', { ...noKinds, hasAgent: false })).stderr).toContain('whether the agent is running is unknown');
  });

  it('is detected by the Lease next to the group, also if it was released and other agents have one', async () => {
    const given = leaseObject('', Date.now() - 300_000);
    const elsewhere = { ...leaseObject('agent-7', Date.now()), metadata: { name: 'rollout-group-agent', namespace: 'loki' } };
    const adjacent = { ...given, metadata: { name: 'rollout-group-agent', namespace: 'mimir' } };
    expect((await ask([old, elsewhere, adjacent], 'get')).stderr).toMatch(/^note: agent not running: Lease released 5m(?:\ds)? ago; /);
  });

  it('makes status end with 12', async () => {
    expect((await ask([old, leaseObject('agent-0', Date.now() - 300_000)], 'status ingester --watch=false')).status).toBe(12);
  });

  it.each(['', ' --for=zone=c', ' --for=paused', ' -o json', ' -o jsonl'])('ends the wait of status:%s', async (flags) => {
    const { status, stderr } = await ask([old, leaseObject('agent-0', Date.now() - 300_000)], `status ingester${flags}`);
    expect(stderr).toMatch(
      /\nended before [a-z ]+; agent not running: Lease expired 4m4\ds ago\. Run: kubectl rollout-group doctor -n mimir\n/,
    );
    expect(status).toBe(12);
  });

  it.each(['status ingester --for=wave=2', 'status ingester --for=zone=a'])('does not hide a condition that is met: %s', async (line) => {
    expect((await ask([old, leaseObject('agent-0', Date.now() - 300_000)], line)).status).toBe(0);
  });

  it('is waited for while it restarts', async () => {
    const restarting = [old, { ...leaseObject('', Date.now() - 2000), metadata: { name: 'rollout-group-agent', namespace: 'mimir' } }];
    const { status, stderr } = await ask(restarting, 'status ingester --timeout 1s');
    expect(stderr).toContain('timed out before complete; agent not running: Lease released');
    expect(status).toBe(12);
  });

  it.each(['table', 'jsonl'])('does not end a watch, which shows it: -o %s', async (output) => {
    const server = await fakeApiServer([old, leaseObject('agent-0', Date.now() - 300_000)], noKinds);
    const { status, stdout } = await on(server, `get ingester -w --timeout 1s -o ${output}`);
    expect(stdout).toContain('agent not running: Lease expired');
    expect(status).toBe(7);
  });
});

describe('status', () => {
  it.each([
    [now(done), 'status ingester', 0],
    // Pods that do not answer are told again and again to stay; the rollout is over all the same.
    [{ ...now(done), outcome: 'act' as const }, 'status ingester', 0],
    [now(rolling), 'status ingester --watch=false', 0],
    [now(rolling), 'status ingester --for=zone=a', 0],
    [now(rolling), 'status ingester --for=wave=2', 0],
    [now(paused), 'status ingester --for=paused', 0],
    [now(paused), 'status ingester --fail-on-pause', 8],
    [now(waiting), 'status ingester --fail-on-pause', 8],
    [{ ...now(waiting), phase: 'Failed' as const }, 'status ingester', 6],
    [now(waiting), 'status ingester --timeout 50ms', 8],
    [now(waiting), 'status ingester --for=nonsense', 3],
    [now(waiting), 'status ingester --for=zone=x', 3],
    [now(waiting), 'status ingester --for=wave=9', 3],
    [now(waiting), 'status other', 10],
  ])('of %#: %s', async (decision, line, status) => {
    const isPaused = decision.phase === 'Paused';
    const objects = [publishedObject(decision), ...(isPaused ? [pause] : [])];
    expect((await ask(objects, line, isPaused ? {} : noKinds)).status).toBe(status);
  });

  it.each(['status ingester --fail-on-pause', 'status ingester --for=paused'])('ignores a pause that was resumed: %s', async (line) => {
    const { status, stderr } = await ask([publishedObject(now(paused))], `${line} --timeout 50ms`, {});
    expect(status).toBe(7);
    expect(stderr).toContain('note: a stop of mimir/ingester began or ended since the shown decision');
  });

  it('waits by a watch until the rollout is complete, with a line for each transition', async () => {
    const server = await fakeApiServer([publishedObject(now(waiting))], noKinds);
    const waited = on(server, 'status ingester --heartbeat 0');
    await server.watched('configmaps');
    server.put(publishedObject(now(rolling)));
    server.put(publishedObject(now(done)));
    const { status, stdout } = await waited;
    const lines = stdout.trimEnd().split('\n');
    expect(status).toBe(0);
    expect(lines[0]).toContain(' mimir/ingester waiting wave=3/3');
    expect(lines.at(-1)).toContain(' mimir/ingester done');
  });

  it('does not take the end of the previous rollout as the end of the new one', async () => {
    const members = ['a', 'b', 'c'].map((zone) => statefulSetObject(zone, { replicas: 3, observedGeneration: zone === 'a' ? 0 : 1 }));
    const { status, stdout, stderr } = await ask([publishedObject(now(done)), ...members], 'status ingester --timeout 50ms');
    expect([status, stdout]).toEqual([7, '']);
    expect(stderr).toContain('timed out before complete; the rollout continues');
    expect(stderr).toContain('note: the members of mimir/ingester changed since the shown decision');
  });
});

describe('the likely end of a rollout', () => {
  const outdated = adoptedObjects({ updateRevision: 'rev-2' });
  const eta = async (objects: readonly FakeObject[], options: FakeOptions = noKinds) =>
    JSON.parse((await ask(objects, 'status ingester --watch=false -o json', options)).stdout).eta;

  it('is calculated from the cluster if no agent has published', async () => {
    // Six pods one after another, each half a minute to stop and one to start.
    expect(await eta(outdated)).toMatchObject({ p50Seconds: 540, excludes: [], podStart: { measuredPods: 0 } });
    const { stdout } = await ask(outdated, 'status ingester --watch=false');
    expect(stdout).toContain('\n  end: in about 9m to 30m; pods are assumed to stop in 30s and to start in 1m\n');
    expect((await ask(outdated, 'get ingester')).stdout).toContain(
      '\nend in about 9m to 30m; pods are assumed to stop in 30s and to start in 1m\n',
    );
  });

  it('is computed next to what an agent has published, with the times of the pods of the run', async () => {
    // The server counts whole seconds.
    const startedMs = Math.floor(Date.now() / 1000) * 1000 - 600_000;
    const run = { ...rolling.run, startedMs, target: { a: 'rev-2', b: 'rev-2', c: 'rev-2' } };
    const decision = { ...now(rolling), run } as PublishedDecision;
    const isNew = (object: FakeObject): boolean => object.metadata.name === 'ingester-zone-a-1';
    const since = (seconds: number): string => new Date(startedMs + seconds * 1000).toISOString();
    const objects = outdated.map((object) =>
      isNew(object)
        ? {
            ...object,
            metadata: {
              ...object.metadata,
              creationTimestamp: since(10),
              labels: { name: 'ingester-zone-a', 'rollout-group': 'ingester', 'controller-revision-hash': 'rev-2' },
            },
            status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: since(30) }] },
          }
        : object,
    );
    // Five pods are left.
    expect(await eta([publishedObject(decision), ...objects])).toMatchObject({
      p50Seconds: 5 * 50,
      podStart: { p50Seconds: 20, p90Seconds: 40, measuredPods: 1 },
    });
  });

  it('names the reason why it is unknown', async () => {
    const published = publishedObject(now(rolling));
    expect(await eta([published])).toEqual({ unknown: 'the group is defined in files of the agent' });
    expect(await eta([published, ...outdated], { ...noKinds, forbidden: ['pods'] })).toEqual({ unknown: 'no permission to list pods' });
    expect(await eta([published], { forbidden: ['rolloutgroups'] })).toEqual({ unknown: 'no permission to list RolloutGroups' });
  });

  it('is absent for a failed run, whose image change stays visible', async () => {
    const published = publishedObject({ ...now(waiting), phase: 'Failed' });
    const objects = outdated.map((object): FakeObject => {
      return object.kind === 'StatefulSet' ? JSON.parse(JSON.stringify(object).replaceAll('mimir:1', 'mimir:2')) : object;
    });
    const { stdout } = await ask([published, ...objects], 'get ingester');
    expect(stdout).toMatch(/^mimir\/ingester +was FAILED .*mimir:1 → 2/);
    expect((await ask([published, ...objects], 'get')).stdout).toMatch(/\ningester +was Failed .* was \d+\/60 +was 60\/60/);
    expect(stdout).not.toMatch(/^end /m);
  });

  it('is not calculated without a rollout, and no pods are read then', async () => {
    const server = await fakeApiServer([publishedObject(now(done)), ...adoptedObjects()], { ...noKinds, forbidden: ['pods'] });
    const { status, stdout } = await on(server, 'status ingester --watch=false -o json');
    expect([status, JSON.parse(stdout).eta]).toEqual([0, undefined]);
  });

  it('is in the heartbeat of a log', async () => {
    const { stdout } = await ask(outdated, 'status ingester --heartbeat 300ms --timeout 2s');
    expect(stdout).toMatch(/ heartbeat mimir\/ingester .* end=\d{4}-[^ ]*Z\.\.\d{4}-[^ ]*Z$/m);
  });
});

describe('explain', () => {
  const zoneB = { ...pause, metadata: { name: 'pause.ingester.b', namespace: 'mimir' }, spec: { ...pause.spec, zone: 'b' } };

  it.each([
    ['a pause that was made since', rolling, [pause], true],
    ['a pause of a zone that was made since', rolling, [zoneB], true],
    ['a pause that was taken back since', paused, [], true],
    ['a pause that stands', paused, [pause], false],
    ['a pause that has expired', rolling, [{ ...pause, spec: { ...pause.spec, expires: '2026-01-01T00:00:00Z' } }], false],
    ['a pause of another group', rolling, [{ ...pause, spec: { ...pause.spec, group: 'querier' } }], false],
  ])('reports whether the decision knows of %s', async (_, decision, intents, isOutdated) => {
    const { status, stderr } = await ask([publishedObject(now(decision)), ...intents], 'explain ingester', {});
    expect([status, stderr.includes('a stop of mimir/ingester began or ended')]).toEqual([0, isOutdated]);
  });

  it('accepts a pod with its kind', async () => {
    const { status, stdout } = await ask([publishedObject(now(rolling))], 'explain pod/ingester-zone-b-12');
    expect([status, stdout]).toEqual([0, expect.stringContaining('  pod      b-12: starting')]);
  });

  it('lists every published rule', async () => {
    const { status, stdout } = await ask([publishedObject(now(waiting)), requesterWebhook], 'explain ingester --all-rules');
    expect(status).toBe(0);
    expect(stdout).toContain('   [WAIT] approval                 0 of 1 approvals from oncall');
    expect(stdout).toContain('defined at policy/ingester.yaml:31:15');
    expect(stdout).toContain('   [ok]   other-zones-ready');
  });

  it('finds the group of a pod and of a StatefulSet', async () => {
    const pod = await ask([publishedObject(now(rolling))], 'explain ingester-zone-b-12');
    expect(pod.stdout).toMatch(/ {2}pod {6}b-12: starting for .*; revision rev-2/);
    expect((await ask([publishedObject(now(rolling))], 'explain ingester-zone-b')).status).toBe(0);
    expect((await ask([publishedObject(now(rolling))], 'explain ingester-zone-x')).status).toBe(10);
  });
});

describe('history', () => {
  const revisionOf = (hash: string, containers: readonly object[]) => ({
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: { name: `ingester-zone-a-${hash}`, namespace: 'mimir' },
    revision: 1,
    data: { spec: { template: { spec: { containers } } } },
  });
  const revision = (hash: string, images: Readonly<Record<string, string>>) =>
    revisionOf(
      hash,
      Object.entries(images).map(([name, image]) => ({ name, image })),
    );
  const record = {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutRun',
    metadata: { name: 'ingester-4f1c9a02', namespace: 'mimir' },
    spec: {
      group: 'ingester',
      id: '4f1c9a02',
      kind: 'rollout',
      outcome: 'completed',
      startedAt: '2026-08-02T09:12:00Z',
      endedAt: '2026-08-02T10:43:00Z',
      took: 5460,
      waited: 720,
      zones: [
        { zone: 'a', statefulSet: 'ingester-zone-a', fromRevision: 'ingester-zone-a-7c9', toRevision: 'ingester-zone-a-d2', pods: 20 },
      ],
      steps: [
        {
          zone: 'a',
          wave: 'canary',
          action: 'replace',
          what: 'delete pods',
          pods: '19',
          count: 1,
          startedAt: '2026-08-02T09:12:01Z',
          endedAt: '2026-08-02T09:13:10Z',
        },
      ],
      waits: [{ rule: 'soak', fact: 'wave canary has soaked for 12m', seconds: 720 }],
      cause: 'image 2.17.1',
    },
  };

  it('has a line for each rollout, and all details of one', async () => {
    expect((await ask([record], 'history ingester', {})).stdout).toMatchInlineSnapshot(`
      "RUN       KIND     TO  REPLACED  START              TOOK  WAITED  RESULT     NOTE
      4f1c9a02  rollout  d2      1/20  2026-08-02 09:12  1h31m     12m  completed  image 2.17.1
      1 run; 1 completed, 0 failed; median duration 1h31m
      "
    `);
    expect((await ask([record], 'history ingester 4f1c', {})).stdout).toMatchInlineSnapshot(`
      "ingester rollout 4f1c9a02   COMPLETED
        start    2026-08-02T09:12:00Z
        end      2026-08-02T10:43:00Z, after 1h31m
        cause    image 2.17.1
        zone     a 7c9 -> d2
        waited   12m for soak: wave canary has soaked for 12m

      START     WAVE    ZONE  ACTION   ORDINALS  FAILED  TOOK  WHAT
      09:12:01  canary  a     replace  19             -  1m9s  delete pods
      "
    `);
  });

  it('names the mean of the two middle durations as the median of an even number', async () => {
    const short = { ...record, metadata: { ...record.metadata, name: 'ingester-5' }, spec: { ...record.spec, id: '5', took: 60 } };
    expect((await ask([record, short], 'history ingester', {})).stdout).toContain('; median duration 46m\n');
  });

  it('counts the wait in progress as waited', async () => {
    const { endedAt: _endedAt, took: _took, ...spec } = record.spec;
    const waiting = { rule: 'soak', fact: 'wave canary has soaked for 1s', since: new Date(Date.now() - 300_000).toISOString() };
    const open = { ...record, spec: { ...spec, outcome: 'running', waiting } };
    expect((await ask([open, publishedObject(now(rolling))], 'history ingester', {})).stdout).toMatch(/ 17m +running /);
  });

  it('shows images instead of revisions that Kubernetes keeps', async () => {
    const kept = [
      revision('7c9', { main: 'grafana/mimir:2.16.0', sidecar: 'x/proxy:1' }),
      revision('d2', { main: 'grafana/mimir:2.17.1', sidecar: 'x/proxy:1' }),
    ];
    const { stdout } = await ask([record, ...kept], 'history ingester', {});
    expect(stdout).toContain('4f1c9a02  rollout  mimir:2.17.1      1/20  2026-08-02');
    const whole = await ask([record, ...kept], 'history ingester 4f1c', {});
    expect(whole.stdout).toContain('zone     a mimir:2.16.0 -> 2.17.1 (7c9 -> d2, revision 1)');
    const [{ zones }] = JSON.parse((await ask([record, ...kept], 'history ingester -o json', {})).stdout).runs;
    expect((await ask([record], 'history ingester -o jsonpath={.runs[*].outcome}', {})).stdout).toBe('completed');
    expect((await ask([record], 'history ingester -o custom-columns=RUN:.id', {})).stdout).toBe('RUN\n4f1c9a02\n');
    expect(zones).toEqual([
      {
        ...record.spec.zones[0],
        fromImages: { main: 'grafana/mimir:2.16.0', sidecar: 'x/proxy:1' },
        toImages: { main: 'grafana/mimir:2.17.1', sidecar: 'x/proxy:1' },
        changedFields: ['spec.template.spec.containers[main].image'],
        revisionNumber: 1,
      },
    ]);
  });

  it('shows the changed fields if no image changed, and the number of the revision without a change', async () => {
    const main = { name: 'main', image: 'grafana/mimir:2.16.0' };
    const target = async (before: object, after: object) => {
      const kept = [revisionOf('7c9', [{ ...main, ...before }]), revisionOf('d2', [{ ...main, ...after }])];
      return /rollout +(.*?) +1\/20/.exec((await ask([record, ...kept], 'history ingester', {})).stdout)?.[1];
    };
    const level = (value: string) => ({ env: [{ name: 'LOG_LEVEL', value }] });
    expect(await target(level('info'), level('debug'))).toBe('env LOG_LEVEL');
    expect(await target({}, { tty: true, workingDir: '/data', ...level('debug') })).toBe('containers[main].tty and 2 more');
    expect(await target({}, level('debug'))).toBe('containers[main].env');
    expect(await target({}, {})).toBe('revision 1');
  });

  it('names the missing part if no record can be stored', async () => {
    const { status, stderr } = await ask(adoptedObjects(), 'history ingester');
    expect(status).toBe(10);
    expect(stderr).toContain('kubectl rollout-group schema RolloutRun -o crd | kubectl apply -f -');
    expect((await ask([record], 'history ingester 999', {})).status).toBe(10);
  });
});

describe('events', () => {
  const event = (name: string, kind: string, about: string, by: string): FakeObject => ({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name, namespace: 'mimir' },
    eventTime: '2026-08-22T12:31:04.000000Z',
    reportingController: by,
    type: 'Normal',
    reason: 'ZoneGapNotOver',
    regarding: { kind, name: about, namespace: 'mimir' },
  });

  it('are the Events of our agent, about the group, its StatefulSets and their pods', async () => {
    const objects = [
      publishedObject(now(rolling)),
      event('1', 'StatefulSet', 'ingester-zone-b', 'rollout-group.dev/agent'),
      event('2', 'Pod', 'ingester-zone-b-7', 'rollout-group.dev/agent'),
      event('3', 'StatefulSet', 'other', 'rollout-group.dev/agent'),
      event('4', 'Pod', 'ingester-zone-b-7', 'statefulset-controller'),
    ];
    const { stdout } = await ask(objects, 'events ingester -o jsonl');
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).object),
    ).toEqual(['statefulset/ingester-zone-b', 'pod/ingester-zone-b-7']);
    expect((await ask(objects, 'events ingester --since 1h')).stdout).toBe('');
  });
});
