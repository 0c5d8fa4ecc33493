// Tests that each verb that forecasts a rollout knows of the webhooks, the agent and the writes of the agent what a plan knows.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PublishedDecision } from '../../engine/publish/published.ts';
import { canonicalJson } from '../../policies/values/canonical-json.ts';
import { hashText } from '../../policies/values/hash.ts';
import { runOf as ledgerRun } from '../kit/questions.ts';
import { type FakeOptions, fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { rolling, waiting } from './live-kit.ts';
import { adoptedObjects, ledgerObject, publishedObject } from './live-objects.ts';
import { act, apiVersion, failed, history, inCanary, oncall, runOf } from './live-requests-kit.ts';
import { folderWith } from './process.ts';
import type { FakeObject } from './served-objects.ts';

const account: FakeObject = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'rollout-group-agent', namespace: 'rollout-group' },
};
const node: FakeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node-1' },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
};

/** The pods of these zones run the template of the run. */
const objectsWith = (updated: readonly string[]): readonly FakeObject[] =>
  adoptedObjects({ updateRevision: 'rev-2' }).map((object) => {
    const { name, labels } = object.metadata;
    const isUpdated = object.kind === 'Pod' && updated.some((zone) => name.startsWith(`ingester-zone-${zone}-`));
    return isUpdated
      ? { ...object, metadata: { ...object.metadata, labels: { ...Object(labels), 'controller-revision-hash': 'rev-2' } } }
      : object;
  });
const startedMs = Date.now() - 60_000;
const { id } = runOf(waiting);
const run = ledgerRun({ id, wave: 2, startedMs, waveStartedMs: startedMs, movableAsOfMs: startedMs, lastDisruptionMs: startedMs + 1000 });
const objectsOfRun = (wave: number) => [...objectsWith(['a']), ...history, ledgerObject({ run: { ...run, wave } }), account, node];
const inRun = objectsOfRun(2);

const verbs: readonly (readonly [line: string, decision: PublishedDecision, objects: readonly FakeObject[]])[] = [
  ['restart ingester', waiting, inRun],
  ['undo ingester', rolling, inRun],
  ['retry ingester', failed, inRun],
  ['promote ingester --full --yes', { ...rolling, wave: { name: 'canary', index: 0, count: 3 } }, objectsOfRun(0)],
  ['approve ingester --wave rest', waiting, inRun],
];

describe('if the agent has lost the permission to replace pods', () => {
  const isAllowed = ({ resource, verb }: { readonly resource: string; readonly verb: string }) =>
    resource !== 'pods' || verb === 'list' || verb === 'watch' || verb === 'get';

  it.each(verbs)('%s reports it', async (line, decision, extra) => {
    const { stderr, stdout } = await act(line, { decision, extra, options: { stamp: oncall, isAllowed } });
    const [verb] = line.split(' ');
    expect(stderr, stdout).toMatch(
      new RegExp(`rollout-group/rollout-group-agent may not .* in mimir: no pod is replaced by eviction; ${verb} does not end this block`),
    );
  });
});

describe('if no webhook records requesters', () => {
  it.each(['restart ingester', 'restart ingester --dry-run=client', 'retry ingester'])(
    '%s names the approvals that cannot be given',
    async (line) => {
      const decision = line.startsWith('retry') ? failed : waiting;
      const webhook = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration', metadata: { name: 'other' } };
      const { stdout, stderr } = await act(line, { decision, extra: [...inRun, webhook], options: { stamp: oncall } });
      const [verb] = line.split(' ');
      expect(stderr, stdout).toMatch(
        new RegExp(`no webhook records requesters, so no approval counts: .* does not exist; ${verb} does not end this block`),
      );
      expect(stdout).not.toContain('waits for the approval of wave rest');
    },
  );

  it.each([
    ['approve ingester --wave rest', waiting],
    ['reject ingester --wave rest', waiting],
    ['promote ingester --wave canary --yes', inCanary],
    ['abort ingester', rolling],
    ['retry ingester', failed],
  ])('a dry run of %s fails like the real request if no webhook records requesters', async (line, decision) => {
    for (const options of [{}, { isWebhookAway: true }]) {
      const [acted, dry] = [await act(line, { decision, options }), await act(`${line} --dry-run=client`, { decision, options })];
      expect([acted.status, dry.kept]).toEqual([options.isWebhookAway ? 12 : 5, []]);
      expect([dry.status, dry.stdout]).toEqual([acted.status, '']);
      expect(dry.stderr).toContain(acted.stderr);
    }
  });
});

it.each(verbs.slice(0, 2))('%s reports that the webhooks are unknown if the user may not read them', async (line, decision) => {
  const options = { stamp: oncall, forbidden: ['mutatingwebhookconfigurations'] };
  const { stderr } = await act(line, { decision, extra: inRun, options });
  expect(stderr).toContain('note: no permission to get mutatingwebhookconfigurations, so the registered webhooks are unknown\n');
});

it.each(verbs)('%s names a write of the agent that the API server rejected', async (line, decision, extra) => {
  const fact = 'the API server rejects the deletion of ingester-zone-b-1';
  const rejected = { ...decision, warnings: [...decision.warnings, { rule: 'write-accepted', outcome: 'wait', fact } as const] };
  const { stderr } = await act(line, { decision: rejected, extra });
  expect(stderr).toContain(`note: mimir/ingester: ${fact}; the agent repeats the write\n`);
});

describe('undo during a run', () => {
  const protection = (zone: string): FakeObject => ({
    apiVersion,
    kind: 'RolloutIntent',
    metadata: { name: `protect.${zone}.ingester`, namespace: 'mimir' },
    spec: { group: 'ingester', action: 'protect', zone },
  });

  it('names a protection of a zone with outdated pods, and not of another zone', async () => {
    const undo = (zone: string) => act('undo ingester', { decision: rolling, extra: [...inRun, protection(zone)] });
    expect((await undo('a')).stderr).toContain('protects zone a; undo does not end this block. To end it: kubectl rollout-group cancel');
    const { status, stdout, stderr } = await undo('c');
    expect([status, stdout, stderr]).toEqual([0, expect.stringContaining('2 pods are replaced'), '']);
  });
});

describe('a plan uses the readings that the agent published', () => {
  const plan = async (decision: PublishedDecision, extra: readonly FakeObject[]) =>
    (await act('plan --group ingester', { decision, extra })).stdout;

  it('of a gate', async () => {
    const latest = { atMs: Date.now() - 1000, result: 'error', message: 'the provider refuses connections' } as const;
    const unread = { ...inCanary, gates: [{ gate: 'errors', mode: 'enforce', readings: 1, latest }] } as const;
    const passing = { ...unread, gates: [{ ...unread.gates[0], latest: { atMs: latest.atMs, result: 'value', value: 0 } }] } as const;
    const of = [...objectsWith(['a']), ...history, ledgerObject({ run: { ...run, wave: 0, waveAvailableMs: startedMs } }), account, node];
    expect([await plan(unread, of), await plan(passing, of)]).toEqual([
      expect.stringContaining('errors could not be read: the provider refuses connections'),
      expect.not.stringContaining('could not be read'),
    ]);
  });

  it('of a metric, which another value of the user replaces', async () => {
    const metric = { source: 'prometheus', query: 'lag' };
    const calm: FakeObject = {
      ...policyWith({}),
      spec: {
        targets: { all: true },
        inputs: { metrics: { lag: metric } },
        rules: [
          { name: 'lag', actions: ['rollout'], effect: 'hold', when: { '>': [{ var: 'inputs.metrics.lag' }, 1] }, message: 'lag is high' },
        ],
      },
    };
    const reading = { namespace: 'mimir', policy: 'calm', input: 'lag', value: 50, atMs: Date.now() - 1000, maxAgeMs: 60_000 };
    const decision = {
      ...rolling,
      metrics: [{ ...reading, source: 'prometheus', question: hashText(canonicalJson(['prometheus', 'lag'])) }],
    };
    const stdout = await plan(decision, [...inRun, calm]);
    expect(stdout).toMatch(/calm\/lag.*lag is high/);
    expect(stdout).not.toContain('calm/lag 0');
    const cwd = folderWith({ 'quiet.yaml': 'metrics: { calm/lag: 0 }' });
    const quiet = await act('plan --group ingester --assumptions quiet.yaml', { decision, extra: [...inRun, calm], cwd });
    expect([quiet.stdout, quiet.stdout]).toEqual([expect.stringContaining('calm/lag 0'), expect.not.stringContaining('lag is high')]);
  });
});

const isNoAdmin = { '!': { in: ['admins', { var: 'user.groups' }] } };
const policyWith = (when: object): FakeObject => ({
  apiVersion,
  kind: 'RolloutPolicy',
  metadata: { name: 'calm', namespace: 'mimir' },
  spec: {
    targets: { all: true },
    rules: [{ name: 'admins', actions: ['restart', 'scaleUp', 'scaleDown', 'rollout'], effect: 'deny', when }],
  },
});
const changed = { 'a.json': JSON.stringify(adoptedObjects()[0]).replace('mimir:1', 'mimir:2') };
const lines = ['restart ingester', 'scale ingester --zone a --replicas 4', 'undo ingester', 'apply -f a.json --dry-run=server'];

async function on(line: string, when: object, options: FakeOptions) {
  const revision = line.startsWith('undo') ? { updateRevision: 'rev-2' } : {};
  const published = publishedObject({ ...rolling, decidedMs: Date.now() });
  const { url } = await fakeApiServer([...adoptedObjects(revision), ...history, policyWith(when), published], options);
  return runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], { cwd: folderWith(changed) });
}

describe.each(lines)('%s under a rule that reads the user', (line) => {
  it('passes for a user whom the rule permits', async () => {
    const { status, stderr } = await on(line, isNoAdmin, { groups: ['admins'] });
    expect([status, stderr]).toEqual([0, expect.not.stringContaining('calm/admins')]);
  });

  it('is denied for another user', async () => {
    const { status, stderr } = await on(line, isNoAdmin, { groups: ['guests'] });
    expect([status, stderr]).toEqual([5, expect.stringContaining('calm/admins')]);
  });
});

it.each(lines.slice(0, 2))('%s leaves the rule to the webhook if the API server does not say who the user is', async (line) => {
  const { status, stderr } = await on(line, isNoAdmin, {});
  const note = 'note: the API server does not say who you are, so only the webhook can evaluate calm/admins\n';
  expect([status, stderr]).toEqual([0, expect.stringContaining(note)]);
});

it.each(lines.slice(0, 3))('%s is denied to every user by a rule that reads no user', async (line) => {
  const isOfGroup = { '==': [{ var: 'group.name' }, 'ingester'] };
  for (const options of [{ groups: ['admins'] }, {}]) expect((await on(line, isOfGroup, options)).status).toBe(5);
});

describe('if the agent may not read a mirrored object that the user may read', () => {
  const from = { apiVersion: 'rollout-operator.grafana.com/v1', kind: 'ReplicaTemplate', name: 'store', read: 'scale' };
  const mirrored = {
    apiVersion,
    kind: 'RolloutGroup',
    metadata: { name: 'ingester', namespace: 'mimir' },
    spec: {
      members: {
        zones: ['a', 'b', 'c'].map((name) => ({
          name,
          statefulSet: `ingester-zone-${name}`,
          ...(name === 'a' ? {} : { follows: 'a' }),
        })),
      },
      replicas: { mirror: { from } },
      rollout: { strategy: 'onDelete' },
    },
  };
  const store = {
    apiVersion: from.apiVersion,
    kind: from.kind,
    metadata: { name: from.name, namespace: 'mimir' },
    spec: { replicas: 4 },
  };
  const ask = async (line: string, lacks: string, objects: readonly FakeObject[] = [mirrored]) => {
    const isAllowed = (right: { readonly resource: string; readonly subresource?: string; readonly verb: string }) =>
      `${right.verb} ${right.resource}/${right.subresource}` !== lacks;
    const { url } = await fakeApiServer([...adoptedObjects({ replicas: 4 }), ...objects, store, account, node], {
      stamp: oncall,
      isAllowed,
    });
    return runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], {});
  };

  it.each([
    ['plan --group ingester', 5],
    ['scale ingester --replicas 5', 0],
    ['status ingester --timeout 50ms', 8],
    ['get ingester', 0],
    ['explain ingester', 0],
  ])('%s names the missing permission', async (line, status) => {
    const ended = await ask(line, 'get replicatemplates/scale');
    expect(`${ended.stdout}${ended.stderr}`.replaceAll(/\s+/g, ' ')).toContain(
      'may not get replicatemplates/scale (rollout-operator.grafana.com) in mimir: the replicas of ReplicaTemplate store are unknown',
    );
    expect(ended.status).toBe(status);
    if (line.startsWith('explain')) expect(ended.stdout).toContain('do       find out why: kubectl rollout-group doctor -n mimir\n');
  });

  it.each(['plan -f FILE', 'apply -f FILE --yes'])('%s of a new group does not name doctor, which cannot find it', async (line) => {
    const file = join(folderWith({ 'group.json': JSON.stringify(mirrored) }), 'group.json');
    const { status, stdout, stderr } = await ask(line.replace('FILE', file), 'get replicatemplates/scale', []);
    const shown = `${stdout}${stderr}`.replaceAll(/\s+/g, ' ');
    expect([status, shown.includes('doctor')]).toEqual([5, false]);
    expect(shown).toContain('with the changed policies in DIR: kubectl rollout-group install --policies DIR --apply');
  });

  it('names no permission that does not block the replicas', async () => {
    const { status, stdout } = await ask('plan --group ingester', 'watch replicatemplates/undefined');
    expect([status, stdout]).toEqual([0, 'Plan  mimir/ingester   no changes\n']);
  });
});
