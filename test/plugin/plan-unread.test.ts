// Tests which plans on a cluster plan, diff and apply refuse, for example if the user may not list groups, and what plan suggests.
import { describe, expect, it } from 'vitest';
import { listKnown } from '../../plugin/cluster-snapshot/listing.ts';
import { zoneBudgetResource } from '../../policies/adopt/keys.ts';
import { fakeApiServer } from './api-server.ts';
import { runInProcess } from './in-process.ts';
import { adoptedObjects, statefulSetObject } from './live-objects.ts';
import { folderWith } from './process.ts';
import type { FakeObject } from './served-objects.ts';
import { clusterOf } from './served-objects.ts';

const { status: _status, ...object } = statefulSetObject('a', { replicas: 0 });
const free: FakeObject = { ...object, metadata: { ...object.metadata, name: 'free', uid: 'uid-free', labels: {} } };
const conditions = [{ type: 'Ready', status: 'True' }];
const node: FakeObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, status: { conditions } };
const system: FakeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system' } };

const verbs = ['plan -f .', 'diff -f .', 'apply -f . --dry-run=server', 'apply -f . --dry-run=client', 'apply -f . --yes'];

async function ends(live: FakeObject, objects: readonly FakeObject[], forbidden: string) {
  const cwd = folderWith({ 'set.json': JSON.stringify(live).replace('mimir:1', 'mimir:2') });
  const { url, writes } = await fakeApiServer([system, ...objects], { forbidden: [forbidden] });
  const ended = [];
  for (const verb of verbs) ended.push(await runInProcess([...verb.split(' '), '--server', url, '-n', 'mimir'], { cwd }));
  return { ended, written: writes.filter(({ path }) => !path.includes('dryRun=All')) };
}

describe('plan, diff and apply', () => {
  it.each([
    ['rolloutgroups', 'a StatefulSet of no known group', free, [free]],
    ['rolloutgroups', 'a member of an adopted group', adoptedObjects()[0] ?? free, adoptedObjects()],
    ['configmaps', 'a member of an adopted group', adoptedObjects()[0] ?? free, adoptedObjects()],
  ])('fail without permission to list %s for %s', async (plural, _of, live, objects) => {
    const { ended, written } = await ends(live, objects, plural);
    const stderr = expect.stringContaining(`error: the plan is unknown: anna may not list ${plural} in namespace mimir\n`);
    expect(ended).toEqual(verbs.map(() => ({ status: 11, stdout: '', stderr })));
    expect(written).toEqual([]);
  });
});

describe('a plan on a cluster', () => {
  const [member = free] = adoptedObjects();
  const changed = { 'set.json': JSON.stringify(member).replace('mimir:1', 'mimir:2') };
  const planned = async (line: string) => {
    const { url } = await fakeApiServer([system, ...adoptedObjects()]);
    const words = [...line.split(' '), '--server', url, '-n', 'mimir'];
    return runInProcess(words, { cwd: folderWith(changed), isErrTerminal: true });
  };

  it('suggests no simulation, because simulate reads only files', async () => {
    const { stderr } = await planned('plan --live --desired .');
    expect(stderr).toContain('next: kubectl rollout-group plan --live --desired . -o html > plan.html');
    expect(stderr).not.toContain('rollout-group simulate');
  });

  it('cannot be saved with --set', async () => {
    const { status, stderr } = await planned('plan --live --set image=mimir:2 --out plan.json');
    expect([status, stderr]).toEqual([3, expect.stringContaining('a plan of the cluster with --set cannot be saved')]);
  });
});

describe('without permission to list RolloutPolicies', () => {
  const fact = 'the RolloutPolicies of namespace rollout-group could not be read: no permission to list rolloutpolicies.rollout-group.dev';
  const [member = free] = adoptedObjects();
  const changed = { 'set.json': JSON.stringify(member).replace('mimir:1', 'mimir:2') };
  const ended = async (line: string, forbidden: readonly string[]) => {
    const { url } = await fakeApiServer([system, node, ...adoptedObjects()], { forbidden });
    return runInProcess([...line.split(' '), '--server', url, '-n', 'mimir'], { cwd: folderWith(changed) });
  };

  it.each(['plan --live --desired set.json', 'apply -f set.json --yes', 'apply -f set.json --dry-run=server'])(
    '%s does not report that the plan completes',
    async (line) => {
      expect((await ended(line, [])).stdout).toContain('completes');
      const { status, stdout, stderr } = await ended(line, ['rolloutpolicies']);
      expect([status, stdout]).toEqual([0, expect.not.stringContaining('completes')]);
      expect(stdout).toContain('view-complete');
      expect(stderr).toContain(`${fact}; a policy that the plan does not contain may block its groups\n`);
    },
  );

  it('a plan without a change stays unchanged', async () => {
    expect((await ended('plan --live', ['rolloutpolicies'])).stdout).toContain('no changes');
  });

  it.each(['restart ingester', 'restart ingester --dry-run=client', 'scale ingester --zone a --replicas 3', 'pause ingester'])(
    '%s reports that a policy may block the group',
    async (line) => {
      const note = `${fact}; a policy that this command does not know may block the group\n`;
      const { status, stderr } = await ended(line, ['rolloutpolicies']);
      expect([status, stderr.includes(note)]).toEqual([0, !line.startsWith('pause')]);
      expect((await ended(line, [])).stderr).not.toContain('could not be read');
    },
  );
});

it('diff shows only the groups of the files', async () => {
  const own = adoptedObjects();
  const others: readonly FakeObject[] = JSON.parse(JSON.stringify(own).replaceAll('ingester', 'distributor'));
  const { url } = await fakeApiServer([system, ...own, ...others]);
  const shown = async (file: unknown) => {
    const cwd = folderWith({ 'set.json': JSON.stringify(file) });
    return (await runInProcess(['diff', '-f', '.', '--server', url, '-n', 'mimir'], { cwd })).stdout;
  };
  const [first] = own;
  expect(await shown(first)).toMatch(/^mimir\/ingester {3}no differences\b.*\n/);
  expect(await shown(first)).not.toContain('distributor');
});

it('a list that is forbidden is empty if the kind is not installed, because the API server checks permissions first', async () => {
  const listed = (missing: readonly string[]) => {
    const cluster = clusterOf({ missing });
    const { kubernetes } = cluster.env;
    const request: typeof kubernetes.request = async (call) =>
      call.path.includes('zoneawarepoddisruptionbudgets') ? { status: 403, headers: {}, body: '' } : kubernetes.request(call);
    const limited = { ...cluster, env: { ...cluster.env, kubernetes: { ...kubernetes, request } } };
    return listKnown(limited, zoneBudgetResource, ['mimir']);
  };
  expect(await listed(['zoneawarepoddisruptionbudgets'])).toEqual([]);
  expect(await listed([])).toMatchObject({ unknown: expect.stringContaining('no permission to list zoneawarepoddisruptionbudgets') });
});
