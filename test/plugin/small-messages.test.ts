import { describe, expect, it } from 'vitest';
import { shortMessage, uncalledText, uncalledWebhook } from '../../plugin/connection-failure.ts';
import { runOf } from '../kit/questions.ts';
import { runInProcess } from './in-process.ts';
import { ledgerObject } from './live-objects.ts';
import { act, over } from './live-requests-kit.ts';
import { folderWith } from './process.ts';

const group = (waves = '', more = '') => `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: store, namespace: prod }
spec:
  members: { zones: [{ name: a, statefulSet: store-a }, { name: b, statefulSet: store-b }, { name: c, statefulSet: store-c }${more}] }
  rollout: { strategy: onDelete, maxUnavailable: 1, rotateBy: evict${waves === '' ? '' : `, waves: [${waves}]`} }
`;
const statefulSet = (zone: string) => `---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: store-${zone}, namespace: prod }
spec:
  replicas: 3
  updateStrategy: { type: OnDelete }
  selector: { matchLabels: { app: store } }
  template:
    metadata: { labels: { app: store } }
    spec: { containers: [{ name: store, image: "store:1.0", readinessProbe: { httpGet: { path: /, port: 80 } } }] }
`;
const sets = ['a', 'b', 'c'].map(statefulSet).join('');
const budget = `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: store, namespace: prod }
spec: { selector: { matchLabels: { app: store } }, maxUnavailable: 0 }
`;

async function lint(files: Readonly<Record<string, string>>): Promise<string> {
  const { stdout, stderr } = await runInProcess(['lint', '.'], { cwd: folderWith(files) });
  return `${stdout}${stderr}`;
}

describe('the line about a webhook that does not answer', () => {
  it.each([
    [
      'Internal error occurred: failed calling webhook "stamp.rollout-group.dev": failed to call webhook: Post "https://agent.ops.svc:443/admission/stamp?timeout=5s": no endpoints available for service "agent"',
      'webhook stamp.rollout-group.dev of Service ops/agent did not answer: no endpoints available for service "agent"',
    ],
    [
      `Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: an error on the server ("${'<html>'.repeat(99)}\nx") has prevented the request from succeeding`,
      `webhook a.example.com did not answer: an error on the server ("${'<html>'.repeat(99)}`.slice(
        0,
        'webhook a.example.com did not answer: '.length + 120,
      ),
    ],
  ])('names the webhook, its Service and the cause: %s', (message, line) => {
    const webhook = uncalledWebhook(message);
    expect(webhook === undefined ? undefined : uncalledText(webhook)).toBe(line);
    expect(uncalledWebhook('admission webhook "a.example.com" denied the request: no')).toBeUndefined();
  });
});

it.each(['undo ingester', 'restart ingester', 'scale ingester --replicas 4'])(
  'the missing permission is named if the user may not list StatefulSets: %s',
  async (line) => {
    const { status, stderr, writes } = await act(line, { options: { forbidden: ['statefulsets'] } });
    expect([status, writes]).toEqual([11, []]);
    expect(stderr).toContain('error: anna may not list statefulsets');
    expect(stderr).toContain('the rule {apiGroups: ["apps"], resources: ["statefulsets"], verbs: ["list"]}\n');
  },
);

it.each(['wave=foo', 'zone=foo'])('status --for %s fails before it prints the progress', async (condition) => {
  const { status, stdout, stderr } = await act(`status ingester --for ${condition}`);
  expect([status, stdout]).toEqual([3, '']);
  expect(stderr).toContain(`error: mimir/ingester has no ${condition.replace('=', ' ')}\n`);
});

it('explain --set explains the cluster after the change, as plan --set does', async () => {
  const { status, stdout, stderr } = await act('explain ingester --set image=mimir:9 -o json', { decision: over });
  expect(status, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ kind: 'Explanation', decision: { group: 'ingester', run: { outcome: 'running' } } });
});

it('scale names the way to end a run that blocks it', async () => {
  const { status, stderr } = await act('scale ingester --replicas 1 --zone a', { extra: [ledgerObject({ run: runOf() })] });
  expect(status).toBe(5);
  expect(stderr).toContain(
    'do:  wait until the run ends (kubectl rollout-group status mimir/ingester), or end it: kubectl rollout-group abort mimir/ingester\n',
  );
});

describe('the advice of a message', () => {
  it('for a wave with an unknown zone: the zone without a wave, or the existing zones', async () => {
    const wave = (zones: string) => `{ name: all, zones: [${zones}], percent: 100 }`;
    expect(await lint({ 'g.yaml': group(wave('a, b, d')) })).toContain('did you mean c');
    const several = await lint({ 'g.yaml': group(wave('a, d')) });
    expect(several).toContain('zones of the group are a, b and c');
    expect(several).not.toContain('did you mean');
    const long = group(wave('a, b, c, zone-e'), ', { name: zone-d, statefulSet: store-d }');
    expect(await lint({ 'g.yaml': long })).toContain('did you mean zone-d');
  });

  it('for a budget of zero: the whole command that pauses the group', async () => {
    expect(await lint({ 'g.yaml': group(), 's.yaml': `${sets}${budget}` })).toContain('kubectl rollout-group pause store -n prod');
  });

  it('for manifests without a group: that init proposes groups', async () => {
    const { status, stderr } = await runInProcess(['plan', '--current', '.'], { cwd: folderWith({ 's.yaml': sets }) });
    expect([status, stderr]).toEqual([10, expect.stringContaining('kubectl rollout-group init')]);
  });

  it('for init without new groups: that every StatefulSet has a group', async () => {
    const { status, stderr } = await runInProcess(['init', '--from-dir', '.', '--out', 'p'], {
      cwd: folderWith({ 'g.yaml': group(), 's.yaml': sets }),
    });
    expect(status).toBe(10);
    expect(stderr).toContain('every StatefulSet of . already belongs to a group');
    expect(stderr).toContain('members: prod/store-a, prod/store-b, prod/store-c');
    expect(stderr).not.toContain('could be made of');
  });

  it('for a case of a PolicyTest that counts one zone and is complete: to count the other zones', async () => {
    const test = `apiVersion: rollout-group.dev/v1alpha1
kind: PolicyTest
metadata: { name: t, namespace: prod }
spec:
  files: [g.yaml, s.yaml]
  clock: "2026-01-01T00:00:00Z"
  cases:
    - name: b is next
      given: { zones: { a: { updated: 3 } } }
      request: { action: rollout }
      expect: { decision: act }
`;
    const ran = await runInProcess(['test', 't.yaml'], { cwd: folderWith({ 'g.yaml': group(), 's.yaml': sets, 't.yaml': test }) });
    expect(ran.status).toBe(4);
    expect(ran.stdout.replace(/\s+/g, ' ')).toContain('zones b and c do not set updated, so nothing is rolled there; set updated: 0');
    const counted = test.replace('updated: 3 } }', 'updated: 3 }, b: { updated: 0 }, c: { updated: 0 } }');
    expect(
      (await runInProcess(['test', 't.yaml'], { cwd: folderWith({ 'g.yaml': group(), 's.yaml': sets, 't.yaml': counted }) })).status,
    ).toBe(0);
  });
});

it.each([
  ['StatefulSet.apps "store-a" is invalid: spec.replicas: Invalid value', 'spec.replicas: Invalid value'],
  ['statefulsets.apps "store-a" is forbidden: User "anna" cannot patch', 'User "anna" cannot patch'],
])('%s has one message for every object', (message, short) => {
  expect(shortMessage(message)).toBe(short);
});
