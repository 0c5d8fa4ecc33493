// Tests that verbs judge their requests for the user of the connection, as the webhook does.
import { describe, expect, it } from 'vitest';
import { type FakeOptions, fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { rolling } from './live-kit.ts';
import { adoptedObjects, publishedObject } from './live-objects.ts';
import { apiVersion, history } from './live-requests-kit.ts';
import { folderWith } from './process.ts';
import type { FakeObject } from './served-objects.ts';

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

it.each(lines.slice(0, 3))('%s is denied by a rule that reads no user, whoever the user is', async (line) => {
  const isOfGroup = { '==': [{ var: 'group.name' }, 'ingester'] };
  for (const options of [{ groups: ['admins'] }, {}]) expect((await on(line, isOfGroup, options)).status).toBe(5);
});
