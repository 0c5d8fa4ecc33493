// What users see of pods in no wave, and of a rollback and the run after it. The plugin, the agent and its webhooks are the built executables.
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeWithBinaries } from '../control-plane/suite.ts';
import { kubeconfigOf, type LocalCluster, startCluster } from '../documents/local-cluster.ts';
import { runPlugin } from './process.ts';

const next = resolve('examples/quick-start/manifests-next');

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

describeWithBinaries('waves that leave out a zone', () => {
  let cluster: LocalCluster;
  let env: Readonly<Record<string, string>>;
  const kubectl = (line: string) => spawnSync('kubectl', line.split(' '), { encoding: 'utf8', env: { ...process.env, ...env } });
  const patchWaves = (zones: readonly string[]): void => {
    const waves = [
      { op: 'replace', path: '/spec/rollout/waves/0/after/soak', value: '1s' },
      { op: 'replace', path: '/spec/rollout/waves/1/zones', value: zones },
    ];
    expect(kubectl(`patch rolloutgroup cache --type=json -p ${JSON.stringify(waves)}`)).toMatchObject({ status: 0 });
  };
  beforeAll(async () => {
    cluster = await startCluster('');
    env = { KUBECONFIG: resolve(kubeconfigOf(cluster)) };
    patchWaves(['a', 'b']);
  });
  afterAll(() => cluster?.stop());

  const bundle = (line: string) => runPlugin(line.split(' '), { cwd: tmpdir(), env });
  const shown = (line: string, code = 0): string => {
    const { status, stdout, stderr } = bundle(line);
    expect(status, `${line}: ${stdout}${stderr}`).toBe(code);
    return `${stdout}${stderr}`.replaceAll(/\s+/g, ' ');
  };
  const conditions = (): ReadonlyMap<string, Condition> => {
    const { conditions: all } = JSON.parse(kubectl('get rolloutgroup cache -o json').stdout).status;
    return new Map(all.map((one: Condition) => [one.type, one]));
  };
  const runs = (): readonly { readonly kind: string; readonly outcome: string }[] =>
    JSON.parse(bundle('history cache -o json').stdout).runs;
  const stays = '3 pods of zone c stay outdated: no wave includes them';

  it('complete their run, and every view names the pods that stay outdated', async () => {
    expect(shown(`plan -f ${next}`)).toMatch(/completes its waves.*RG5017 warning 3 pods of zone c stay outdated/);
    shown(`apply -f ${next} --yes`);
    shown('status cache --for wave=canary --timeout 120s');
    await expect.poll(() => bundle('approve cache --context alice').status, { timeout: 30_000 }).toBe(0);
    expect(shown('status cache --timeout 240s')).toContain(stays);
    expect(shown('get cache')).toMatch(/DONE 6 of 9 updated.*3 in no wave.*in-no-wave: 3 pods of zone c stay outdated/);
    expect(shown('explain sts/cache-c')).toContain(`Every wave is done; ${stays}`);
    expect(shown('status cache --for zone=c --timeout 60s', 8)).toContain(`ended before zone c; ${stays}`);
    shown('status cache --for zone=b --timeout 60s');
    const ready = conditions();
    expect(ready.get('Ready')).toMatchObject({ status: 'True', reason: 'WavesComplete', message: expect.stringContaining(stays) });
    expect([ready.has('Reconciling'), ready.has('Stalled'), ready.get('Degraded')?.status]).toEqual([false, false, 'False']);
    await expect.poll(() => kubectl('get events').stdout, { timeout: 30_000 }).toContain(stays);
    expect(shown('plan --live')).toMatch(/shop\/cache no changes.*RG5017 warning 3 pods of zone c stay outdated/);
    expect(shown('history cache')).toMatch(/ 6\/6 .* completed/);
    expect(runs().map(({ kind, outcome }) => `${kind} ${outcome}`)).toEqual(['rollout completed']);
  });

  it('count in a restart only if a wave includes them', async () => {
    const template = () => kubectl('get statefulset cache-c -o jsonpath={.spec.template}').stdout;
    const before = template();
    for (const flag of ['--yes', '--dry-run=client']) {
      const refused = shown(`restart cache --zone c ${flag}`, 5);
      expect(refused).toContain(`it would replace no pod why: ${stays} do: add the zone to a wave`);
    }
    const dry = shown('restart cache --dry-run=client');
    expect(dry).toContain('this replaces 6 pods of shop/cache in the order of the group');
    expect(dry).toContain(stays);
    expect(template()).toBe(before);
  });

  it('continue in a separate run when they become longer, and a rollback returns every pod', async () => {
    patchWaves(['a', 'b', 'c']);
    await expect.poll(() => runs()[0]?.outcome, { timeout: 60_000 }).toBe('running');
    shown('abort cache --rollback --context alice');
    expect(shown('status cache --timeout 240s', 6)).toContain('rolledback returned=9/9');
    expect(shown('get cache')).toMatch(/ROLLED BACK 9 of 9 returned/);
  });

  it('say during the run of another zone that the revision was rolled back', async () => {
    kubectl('set image statefulset/cache-b cache=registry.example.com/cache:1.2.0');
    await expect.poll(() => runs()[0]?.outcome, { timeout: 60_000 }).toBe('running');
    const status = () => shown('status cache --watch=false').concat(shown('explain cache'));
    await expect.poll(status, { timeout: 60_000 }).toContain('because it was rolled back');
    expect(status()).not.toContain('is being rolled back');
  });
});
