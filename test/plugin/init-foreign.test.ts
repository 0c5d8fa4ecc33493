// The verb init on objects of other operators: what it writes, what it says, and what it never shows.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runInProcess } from './in-process.ts';
import { folderWith } from './process.ts';

const example = (path: string) => readFileSync(join('examples', path), 'utf8');
const secret = `apiVersion: v1
kind: Secret
metadata: { name: prometheus, namespace: payments }
data: { username: Z2F0ZQ==, password: Y29ycmVjdC1ob3JzZQ== }
stringData: { comment: correct-horse }
`;

function writtenIn(folder: string): Readonly<Record<string, string>> {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    paths.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return [path.slice(folder.length + 1), readFileSync(path, 'utf8')];
    }),
  );
}

describe('init of a PhasedRollout', () => {
  const files = {
    'in/phased.yaml': example('phased-rollout/original/ledger.yaml'),
    'in/set.yaml': example('phased-rollout/manifests/ledger.yaml'),
    'in/secret.yaml': secret,
  };

  it('writes the group and its source, which lint, fmt and plan accept', async () => {
    const cwd = folderWith(files);
    const { status, stdout } = await runInProcess(['init', '--from-dir', 'in', '--out', 'out'], { cwd });
    expect([status, stdout]).toEqual([
      0,
      'out/ledger.yaml  RolloutGroup payments/ledger, 1 zone\n' +
        'out/agent/source-prometheus-monitoring-svc.yaml  MetricSource prometheus-monitoring-svc, for payments\n',
    ]);
    expect(await runInProcess(['lint', 'out', 'in/set.yaml'], { cwd })).toMatchObject({ status: 0, stdout: 'no findings in 3 files\n' });
    expect((await runInProcess(['fmt', '--check', 'out'], { cwd })).status).toBe(0);
    const plan = await runInProcess(['plan', '--current', 'in/set.yaml', '-f', 'out', '--set', 'image=example.com/ledger:2'], { cwd });
    expect(plan.status).toBe(0);
    expect(plan.stdout).toContain('payments/ledger   completes');
  });

  it('never writes or shows the content of a Secret, nor a password in an address', async () => {
    const open = files['in/phased.yaml'].replace('https://prometheus', 'https://gate:hunter2@prometheus');
    const cwd = folderWith({ ...files, 'in/phased.yaml': open });
    const { status, stdout, stderr } = await runInProcess(['init', '--from-dir', 'in', '--out', 'out'], { cwd });
    expect(status).toBe(0);
    const all = [stdout, stderr, ...Object.values(writtenIn(join(cwd, 'out')))].join('\n');
    expect(all).not.toMatch(/hunter2|correct-horse|Y29ycmVjdC1ob3JzZQ|Z2F0ZQ/);
    expect(all).toContain('password: { name: payments-prometheus, key: password }');
  });

  it('names at file, line and column the omitted part, its reason, and the next step', async () => {
    const cwd = folderWith(files);
    const { stderr } = await runInProcess(['init', '--from-dir', 'in', '--out', 'out'], { cwd });
    expect(stderr).toMatch(/^in\/phased\.yaml:\d+:18 warning RG7004 the agent reads only Secrets of its namespace: .*$/m);
    expect(stderr).toContain("fix: copy the Secret payments/prometheus as payments-prometheus into the agent's namespace");
  });

  it('writes nothing, and fails, if it cannot be converted', async () => {
    const cwd = folderWith({ 'in/phased.yaml': files['in/phased.yaml'] });
    const { status, stdout, stderr } = await runInProcess(['init', '--from-dir', 'in', '--out', 'out'], { cwd });
    expect([status, stdout]).toEqual([10, '']);
    expect(stderr).toContain('RG7001 the object is not converted: the StatefulSet ledger was not found, so the number of waves is unknown');
    expect(readdirSync(cwd)).toEqual(['in']);
  });

  it('guesses no group for a StatefulSet if its object cannot be converted or read', async () => {
    const refused = files['in/phased.yaml'].replace('url: ', 'uri: ');
    const unread = files['in/phased.yaml'].replace('expr: |', 'expr: ""');
    for (const broken of [refused, unread]) {
      const cwd = folderWith({ 'in/phased.yaml': broken, 'in/set.yaml': files['in/set.yaml'] });
      const { status, stdout, stderr } = await runInProcess(['init', '--from-dir', 'in', '--out', 'out'], { cwd });
      expect([broken === files['in/phased.yaml'], status, stdout]).toEqual([false, 10, '']);
      expect(stderr).toMatch(/\d errors? above may hide such an object/);
    }
    const asked = await runInProcess(['init', '--from-dir', 'in', '--out', 'out', '--guess'], {
      cwd: folderWith({ 'in/phased.yaml': refused, 'in/set.yaml': files['in/set.yaml'] }),
    });
    expect(asked.stderr).toContain('note: StatefulSet payments/ledger is left out: it belongs to PhasedRollout payments/ledger');
  });

  it('converts the other objects, and fails', async () => {
    const broken = files['in/phased.yaml'].replace('name: ledger', 'name: broken').replace('targetRef: ledger', 'targetRef: nowhere');
    const cwd = folderWith({ ...files, 'in/z.yaml': broken });
    const { status, stdout } = await runInProcess(['init', '--from-dir', 'in', '--out', 'out'], { cwd });
    expect(status).toBe(4);
    expect(stdout.split('\n')[0]).toBe('out/ledger.yaml  RolloutGroup payments/ledger, 1 zone');
  });
});

describe('init of a StatefulsetRollout', () => {
  const original = example('statefulset-rollout/original/queue.yaml');

  it('writes the group, its sources and channels, and the StatefulSet of the object', async () => {
    const cwd = folderWith({ 'in/queue.yaml': original });
    const { status, stdout } = await runInProcess(['init', '--from-dir', 'in', '--out', 'out'], { cwd });
    expect(status).toBe(0);
    expect(stdout.split('\n').map((line) => line.split('  ')[1])).toEqual([
      'RolloutGroup messaging/queue, 1 zone',
      'MetricSource consul, for messaging',
      'NotificationChannel deploy-example-com, for messaging',
      'NotificationChannel slack-c0123456789, for messaging',
      'StatefulSet messaging/queue',
      undefined,
    ]);
    expect(await runInProcess(['lint', 'out'], { cwd })).toMatchObject({ status: 0, stdout: 'no findings in 5 files\n' });
    const plan = await runInProcess(['plan', '--current', 'out/manifests', '-f', 'out', '--set', 'image=example.com/queue:8'], { cwd });
    expect([plan.status, plan.stdout.includes('messaging/queue   completes')]).toEqual([0, true]);
  });

  it('does not write the StatefulSet again if its manifest exists', async () => {
    const cwd = folderWith({ 'in/queue.yaml': original, 'in/set.yaml': example('statefulset-rollout/manifests/queue.yaml') });
    expect((await runInProcess(['init', '--from-dir', 'in', '--out', 'out'], { cwd })).stdout).not.toContain('StatefulSet messaging/queue');
  });

  it('puts groups and StatefulSets of several namespaces into folders', async () => {
    const cwd = folderWith({ 'in/a.yaml': original, 'in/b.yaml': original.replaceAll('namespace: messaging', 'namespace: chat') });
    await runInProcess(['init', '--from-dir', 'in', '--out', 'out'], { cwd });
    expect(Object.keys(writtenIn(join(cwd, 'out'))).sort()).toEqual([
      'agent/channel-deploy-example-com.yaml',
      'agent/channel-slack-c0123456789.yaml',
      'agent/source-consul.yaml',
      'chat/queue.yaml',
      'manifests/chat/queue.yaml',
      'manifests/messaging/queue.yaml',
      'messaging/queue.yaml',
    ]);
  });
});
