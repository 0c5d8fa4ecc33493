// The verb diff: zones compared by structure, both sides for another program, and --set.
import { describe, expect, it } from 'vitest';
import { type Ended, runInProcess } from './in-process.ts';
import { folderWith } from './process.ts';

const policy = `apiVersion: rollout-group.dev/v1alpha1
kind: RolloutGroup
metadata: { name: kafka, namespace: kafka }
spec:
  members: { zones: [{ name: a, statefulSet: kafka-a }, { name: b, statefulSet: kafka-b }, { name: c, statefulSet: kafka-c }] }
  rollout: { strategy: onDelete, rotateBy: delete, maxUnavailable: 1 }
`;

interface Options {
  readonly args?: readonly string[];
  readonly metadata?: string;
  readonly status?: string;
}

function member(zone: string, { args = [], metadata = '', status = '' }: Options = {}): string {
  return `apiVersion: apps/v1
kind: StatefulSet
metadata: { name: kafka-${zone}, namespace: kafka${metadata} }
spec:
  replicas: 3
  serviceName: kafka-${zone}
  updateStrategy: { type: OnDelete }
  selector: { matchLabels: { app: kafka-broker, zone: ${zone} } }
  template:
    metadata: { labels: { app: kafka-broker, zone: ${zone} } }
    spec: { containers: [{ name: kafka, image: 'kafka:4.0', args: ${JSON.stringify(['--service=kafka-broker', ...args])} }] }
${status}---
`;
}

function diff(files: Readonly<Record<string, string>>, ...words: readonly string[]): Promise<Ended> {
  const cwd = folderWith({ 'policies/group.yaml': policy, ...files });
  return runInProcess(['diff', '--current', 'now', '-f', 'policies', ...words], { cwd });
}

const zones = ['a', 'b', 'c'];

describe('diff of policies', () => {
  it('does not report equality before it lists differences', async () => {
    const sets = zones.map((zone) => member(zone)).join('');
    const files = { 'now/a.yaml': sets, 'now/group.yaml': policy, 'next/a.yaml': sets };
    const next = { 'next/group.yaml': policy.replace('maxUnavailable: 1', 'maxUnavailable: 2') };
    const { stdout, status } = await runInProcess(['diff', '--current', 'now', '--desired', 'next'], {
      cwd: folderWith({ ...files, ...next }),
    });
    expect({ status, stdout }).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(/no differences in StatefulSets\nRolloutGroup kafka/),
    });
  });
});

describe('diff --group', () => {
  const other = (text: string): string => text.replaceAll('kafka', 'redis');
  const sets = zones.map((zone) => member(zone)).join('');
  const changed = sets.replaceAll('kafka:4.0', 'kafka:4.1');
  const files = {
    'now/a.yaml': `${sets}${other(sets)}`,
    'now/group.yaml': `${policy}---\n${other(policy)}`,
    'next/a.yaml': `${changed}${other(changed)}`,
    'next/group.yaml': `${policy}---\n${other(policy)}`,
  };

  it('shows this group and no other one', async () => {
    const cwd = folderWith(files);
    const { stdout, status } = await runInProcess(['diff', '--current', 'now', '--desired', 'next', '--group', 'kafka'], { cwd });
    expect({ status, stdout }).toMatchObject({ status: 1, stdout: expect.stringContaining('kafka:4.1') });
    expect(stdout).not.toContain('redis');
    expect((await runInProcess(['diff', '--current', 'now', '--zones', '--group', 'kafka'], { cwd })).stdout).not.toContain('redis');
  });

  it('is named if the group is an argument', async () => {
    const cwd = folderWith(files);
    for (const verb of ['diff', 'plan'])
      expect((await runInProcess([verb, '--current', 'now', 'kafka'], { cwd })).stderr).toContain(
        `use: kubectl rollout-group ${verb} --group <name>`,
      );
    expect((await runInProcess(['pause', 'kafka', '--for', '5m'], { cwd })).stderr).toContain(
      'use: kubectl rollout-group pause --duration <duration>',
    );
  });
});

describe('diff --zones', () => {
  it('does not take a part of another word as the name of a zone', async () => {
    const { stdout, status } = await diff({ 'now/a.yaml': zones.map((zone) => member(zone)).join('') }, '--zones');
    expect(stdout).toBe('kafka/kafka   no differences between zones\n');
    expect(status).toBe(0);
  });

  it('reads the name of the zone from the flag', async () => {
    const manifests = zones.map((zone) => member(zone, { args: [`--zone=${zone}`] }));
    expect((await diff({ 'now/a.yaml': manifests.join('') }, '--zones')).stdout).toBe('kafka/kafka   no differences between zones\n');
  });

  it('keeps the parts that all zones share, also if a StatefulSet has the name of its container and image', async () => {
    const files = {
      'now/a.yaml': [
        member('a', { args: ['--peer=kafka-b'] }).replaceAll('kafka-a', 'kafka'),
        member('b', { args: ['--peer=kafka-b'] }),
      ].join(''),
      'policies/group.yaml': policy.replace('kafka-a }', 'kafka }').replace(', { name: c, statefulSet: kafka-c }', ''),
    };
    expect((await diff(files, '--zones')).stdout).toBe('kafka/kafka   no differences between zones\n');
  });

  it('shows the name of another zone where the own name is expected', async () => {
    const names: Readonly<Record<string, string>> = { a: 'a', b: 'a', c: 'c' };
    const manifests = zones.map((zone) => member(zone, { args: [`--id=kafka-${names[zone]}`] }));
    const { stdout, status } = await diff({ 'now/a.yaml': manifests.join('') }, '--zones');
    expect(stdout).toBe(`kafka/kafka
  b differs from a in 1 field
    spec.template.spec.containers[kafka].args
      - --id=kafka-b
      + --id=kafka-a
`);
    expect(status).toBe(1);
  });

  it('shows no difference where every zone names the same zone', async () => {
    const manifests = zones.map((zone) => member(zone, { args: ['--seed=kafka-a'] }));
    expect((await diff({ 'now/a.yaml': manifests.join('') }, '--zones')).stdout).toBe('kafka/kafka   no differences between zones\n');
  });
});

describe('diff -o external', () => {
  const exported = (zone: string, options: Options = {}) =>
    member(zone, {
      ...options,
      metadata: `, uid: 0-${zone}, resourceVersion: '7', managedFields: [{ manager: helm }], creationTimestamp: '2026-01-01T00:00:00Z'`,
      status: 'status: { replicas: 3 }\n',
    }).replace('  replicas: 3\n', '  replicas: 3\n  podManagementPolicy: OrderedReady\n');

  it('has both sides without fields that the API server writes, and without defaults of one side', async () => {
    const files = {
      'now/a.yaml': zones.map((zone) => exported(zone)).join(''),
      'next/a.yaml': zones
        .map((zone) => member(zone))
        .join('')
        .replaceAll('  replicas: 3\n', ''),
    };
    const { stdout, status } = await diff(files, '--desired', 'next', '-o', 'external');
    expect(stdout).toBe('');
    expect(status).toBe(0);
    expect((await diff(files, '--desired', 'next')).status).toBe(0);
  });

  it('shows only the changed fields, also of policies', async () => {
    const files = {
      'now/a.yaml': `${zones.map((zone) => exported(zone)).join('')}${policy}`,
      'next/a.yaml': `${zones.map((zone) => member(zone).replace('kafka:4.0', 'kafka:4.1')).join('')}${policy.replace('maxUnavailable: 1', 'maxUnavailable: 2')}`,
    };
    const cwd = folderWith(files);
    const { stdout, status } = await runInProcess(['diff', '--current', 'now', '--desired', 'next', '-o', 'external'], { cwd });
    const changed = stdout.split('\n').filter((line) => /^[-+] /.test(line));
    expect(new Set(changed.map((line) => line.replace(/\s+/g, ' ')))).toEqual(
      new Set(['- image: kafka:4.0', '+ image: kafka:4.1', '- maxUnavailable: 1', '+ maxUnavailable: 2']),
    );
    expect(status).toBe(1);
  });
});

describe('diff -o json', () => {
  it('has the times of writes as instants, and the compared values as they are', async () => {
    const time = '2026-03-02T11:02:00Z';
    const image = `{ 'f:spec': { 'f:template': { 'f:spec': { 'f:containers': { 'k:{"name":"kafka"}': { 'f:image': {} } } } } } }`;
    const metadata = `, managedFields: [{ manager: helm, operation: Update, time: '${time}', fieldsV1: ${image} }]`;
    const config = (limit: number) =>
      `apiVersion: example.com/v1\nkind: Limit\nmetadata: { name: x, namespace: kafka, managedFields: [{ manager: helm, operation: Update, time: '${time}', fieldsV1: { 'f:spec': {} } }] }\nspec: [{ limitMs: ${limit} }]\n`;
    const files = {
      'now/a.yaml': `${zones.map((zone) => member(zone, { metadata })).join('')}${config(1)}`,
      'next/a.yaml': `${zones.map((zone) => member(zone).replace('kafka:4.0', 'kafka:4.1')).join('')}${config(2)}`,
    };
    const { stdout } = await diff(files, '--desired', 'next', '-o', 'json');
    const at = '2026-03-02T11:02:00.000Z';
    const { groups, objects } = JSON.parse(stdout);
    expect(groups[0].parts[0].changes[0].writers).toMatchObject([{ manager: 'helm', at }]);
    expect(objects[0].changes[0]).toMatchObject({ before: [{ limitMs: 1 }], writers: [{ manager: 'helm', at }] });
    expect(stdout).not.toContain('atMs');
  });
});

describe('diff --set', () => {
  it('compares with the change, as plan plans it', async () => {
    const { stdout, status } = await diff({ 'now/a.yaml': zones.map((zone) => member(zone)).join('') }, '--set', 'image=kafka:4.1');
    expect(stdout).toContain('+ kafka:4.1');
    expect(stdout).toContain('restarts 9 pods');
    expect(status).toBe(1);
  });
});
