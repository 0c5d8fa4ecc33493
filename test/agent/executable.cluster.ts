// The executable on a real API server: what people see of a rollout without any of our kinds, and with all of them; and how it begins and ends.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { readPublished } from '../../engine/publish/read.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import type { AgentProcess } from '../control-plane/agent-process.ts';
import type { KubernetesObject } from '../control-plane/client.ts';
import { type HistoryRecorder, recordHistory } from '../control-plane/history.ts';
import { startPodServer } from '../control-plane/pod-server.ts';
import { agentRules, sourceRules } from '../control-plane/roles.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { statefulSet } from '../control-plane/workloads.ts';
import { missingRelease, unpackImage } from '../kit/release.ts';
import { runPlugin } from '../plugin/process.ts';
import { type Arena, openArena } from './arena.ts';
import { onLoopback } from './notify/loopback.ts';
import { callbackKey, fakeCallback } from './notify/services.ts';

/** An object with all of its fields. */
interface Seen extends KubernetesObject {
  readonly [field: string]: unknown;
}

const runsPath = (namespace: string) => `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutruns`;
const groupsPath = (namespace: string) => `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutgroups`;
const eventsPath = (namespace: string) => `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;

/** Runs a command as the user `$2` in the root file system `$1`, which cannot be written. */
const container =
  'root=$1 user=$2; shift 2; /bin/mount --bind "$root" "$root" && /bin/mount -o remount,ro,bind "$root" && exec /usr/sbin/chroot --userspec="$user" "$root" "$@"';

describeOnControlPlane('the executable of the agent', (controlPlane) => {
  let recorder: HistoryRecorder;
  let arena: Arena;

  beforeAll(async () => {
    recorder = await recordHistory(controlPlane());
  });
  afterEach(() => arena.close());
  afterAll(() => recorder.stop());

  /** The events of the agent, by reason and what they stand on. */
  const told = async (namespace: string): Promise<readonly string[]> => {
    const events = await controlPlane().client.list<Seen>(eventsPath(namespace));
    const ours = events.filter((event) => event['reportingController'] === 'rollout-group.dev/agent');
    return ours.map((event) => `${event['reason']} ${(event['regarding'] as { kind: string }).kind}`);
  };

  /** How many replacements of each pod the Events tell. */
  const replacements = async (namespace: string): Promise<Readonly<Record<string, number>>> => {
    const counts: Record<string, number> = {};
    for (const event of await controlPlane().client.list<Seen>(eventsPath(namespace))) {
      if (event['reason'] !== 'PodReplaced') continue;
      const { count = 1 } = (event['series'] ?? {}) as { readonly count?: number };
      for (const [, pod = ''] of String(event['note']).matchAll(/ingester-zone-(\w-\d)/g)) counts[pod] = (counts[pod] ?? 0) + count;
    }
    return counts;
  };

  const rolled = async (): Promise<AgentProcess> => {
    const agent = await arena.start();
    await agent.untilReady();
    await arena.group.setImage('example.com/server:2');
    await arena.group.untilRolled();
    return agent;
  };

  /** Creates every kind, unless an earlier test did. */
  const serveKinds = async (): Promise<void> => {
    const { client } = controlPlane();
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    for (const file of readdirSync('deploy/crds')) {
      const { status } = await client.ask('POST', definitions, parse(readFileSync(`deploy/crds/${file}`, 'utf8')));
      expect([201, 409]).toContain(status);
    }
    await client.until<Seen>(definitions, 'kinds that are served', (all) =>
      all.every((one) => JSON.stringify(one['status']).includes('"type":"Established"')),
    );
    // Storage of a new kind takes a moment.
    for (const path of [groupsPath('default'), runsPath('default')]) {
      await expect.poll(async () => (await client.ask('GET', path)).status, { timeout: 30_000 }).toBe(200);
    }
  };

  it('publishes, notifies and counts a rollout without our kinds', async () => {
    arena = await openArena(controlPlane(), recorder, { namespace: 'no-kinds', replicas: 2 });
    const agent = await rolled();
    const { client } = controlPlane();
    const [map] = await client.until<Seen>('/api/v1/namespaces/no-kinds/configmaps', 'a published Done', (maps) =>
      maps.some((one) => one.metadata.name === 'rollout-status-ingester' && phaseOf(one) === 'Done'),
    );
    expect(map).toBeDefined();
    await client.until<Seen>(eventsPath('no-kinds'), 'the end of the rollout', (events) =>
      events.some((event) => event['reason'] === 'RolloutFinished'),
    );
    expect(await told('no-kinds')).toEqual(
      expect.arrayContaining([
        'RolloutStarted StatefulSet',
        'ZoneOpened StatefulSet',
        'PodReplaced StatefulSet',
        'RolloutFinished StatefulSet',
      ]),
    );
    const everyPod = (times: number) =>
      Object.fromEntries(['a', 'b', 'c'].flatMap((zone) => [0, 1].map((ordinal) => [`${zone}-${ordinal}`, times])));
    await expect.poll(() => replacements('no-kinds'), { timeout: 10_000 }).toEqual(everyPod(1));
    const { body } = await agent.ask('/metrics');
    expect(body).toMatch(/^rollout_operator_group_reconciles_total\{rollout_group="ingester"\} \d+$/m);
    expect(body).toMatch(
      /^rollout_operator_kubernetes_api_client_request_duration_seconds_count\{path="core\/v1\/pods object",method="DELETE",status_code="200"\} 6$/m,
    );
    expect(body).toContain('rollout_group_state{namespace="no-kinds",group="ingester",phase="Done"} 1');
    expect(body).toContain('rollout_group_actions_total{namespace="no-kinds",group="ingester",kind="deletePod",result="done"} 6');
    expect(body).toContain('rollout_group_leader 1');
    expect(body).not.toMatch(/^(?:process|nodejs)_/m);
    expect(agent.log()).toMatch(/level=info msg="terminating pod" namespace=no-kinds group=ingester/);
    expect(await agent.ask('/healthz')).toMatchObject({ status: 200 });
    expect(await agent.ask('/nowhere')).toMatchObject({ status: 404 });
    await arena.group.setImage('example.com/server:3');
    await arena.group.untilRolled();
    await expect.poll(() => replacements('no-kinds'), { timeout: 15_000 }).toEqual(everyPod(2));
    // The StatefulSets were written one after the other, which is no warning.
    expect(await told('no-kinds')).not.toContain('ImagesNotEqual StatefulSet');
    expect(await agent.stop()).toBe(0);
  });

  it.runIf(missingRelease() === undefined)(
    'rolls a group from the image of a release, as its user, with a root that cannot be written',
    async () => {
      const scratch = mkdtempSync(join(tmpdir(), 'rollout-group-image-'));
      onTestFinished(() => rmSync(scratch, { recursive: true, force: true }));
      const { config, layers } = unpackImage(scratch)(process.arch === 'arm64' ? 'arm64' : 'amd64');
      const root = mkdtempSync(join(scratch, 'root-'));
      for (const layer of layers) expect(spawnSync('tar', ['-xzf', layer, '-C', root]).status).toBe(0);
      for (const folder of [scratch, root]) chmodSync(folder, 0o755);
      const { identities } = controlPlane();
      const asRoot = process.getuid?.() === 0 ? [] : ['/usr/bin/sudo', '--preserve-env'];
      const [owner = '', group = ''] = config.User.split(':');
      const settings = ['-m', '0400', '-o', owner, '-g', group];
      const installed = [...asRoot, '/usr/bin/install', ...settings, identities.agent.kubeconfig, join(root, 'kubeconfig')];
      expect(spawnSync('/usr/bin/env', installed, { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
      const [program = '', ...rest] = [...asRoot, '/usr/bin/unshare', '--mount', '/bin/sh', '-c', container, 'sh', root, config.User];
      const write = spawnSync(program, [...rest, '/nodejs/bin/node', '-e', 'fs.writeFileSync("/app/file", "")'], { encoding: 'utf8' });
      expect(write.stderr).toContain('EROFS: read-only file system');
      const whoAmI = spawnSync(program, [...rest, '/nodejs/bin/node', '-p', 'process.getuid()'], { encoding: 'utf8' });
      expect(whoAmI.stdout).toBe('65532\n');
      arena = await openArena(controlPlane(), recorder, { namespace: 'image', replicas: 1 });
      const agent = await arena.start({
        identity: { ...identities.agent, kubeconfig: '/kubeconfig' },
        command: [program, ...rest, ...config.Entrypoint],
        env: Object.fromEntries(config.Env.map((variable) => variable.split('='))),
      });
      await agent.untilReady();
      await arena.group.setImage('example.com/server:2');
      await arena.group.untilRolled();
      await arena.expectKept();
      expect(await agent.stop()).toBe(0);
    },
  );

  it('writes the status of the group, and a record of the rollout, where they are', async () => {
    const { client } = controlPlane();
    await serveKinds();
    arena = await openArena(controlPlane(), recorder, { namespace: 'kinds', replicas: 2 });
    await client.create(groupsPath('kinds'), {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'ingester' },
      spec: {
        members: { zones: ['a', 'b', 'c'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) },
        replicas: { leader: true },
        rollout: { strategy: 'onDelete', maxUnavailable: 1 },
      },
    });
    const agent = await arena.start();
    await agent.untilReady();
    await arena.group.setImage('example.com/server:2');
    const runs = await client.until<Seen>(runsPath('kinds'), 'a finished run', (all) =>
      all.some((one) => (one['spec'] as { readonly outcome: string }).outcome === 'completed'),
    );
    const [group] = await client.until<Seen>(groupsPath('kinds'), 'a status Done', (groups) =>
      groups.some((one) => phaseOf(one) === 'Done'),
    );
    expect(group?.['status']).toMatchObject({ observedGeneration: 1, updatedPods: 6, readyPods: 6, conditions: expect.any(Array) });
    const [last] = runs.filter((one) => (one['spec'] as { readonly outcome: string }).outcome === 'completed');
    expect(last?.['spec']).toMatchObject({ group: 'ingester', kind: 'rollout', zones: expect.any(Array), steps: expect.any(Array) });
    await client.until<Seen>(eventsPath('kinds'), 'the end of the rollout', (events) =>
      events.some((event) => event['reason'] === 'RolloutFinished'),
    );
    expect((await told('kinds')).every((one) => one.endsWith(' RolloutGroup'))).toBe(true);
    expect(await agent.stop()).toBe(0);
  });

  it('shows no credential of objects, sources, channels, queries and calls in any output', { timeout: 240_000 }, async () => {
    const namespace = 'covered';
    const { client, identities } = controlPlane();
    await serveKinds();
    const callback = fakeCallback(() => Date.now());
    const failing = { status: 500, body: { message: 'canary', url: 'https://canary@example.com/?token=canary' } };
    let isUp = false;
    callback.fault = () => (isUp ? undefined : failing);
    const sample = () => ({ status: 'success', data: { resultType: 'vector', result: [{ metric: {}, value: [Date.now() / 1000, '0'] }] } });
    const metricsServer = await onLoopback({
      answer: ({ headers }) => (isUp && headers['authorization'] === 'Bearer canary' ? { status: 200, body: sample() } : failing),
    });
    const [hooks, pods] = [await onLoopback(callback), await startPodServer()];
    onTestFinished(async () => {
      for (const server of [metricsServer, hooks, pods]) await server.close();
    });
    pods.script(/./, { kind: 'refuse' });
    const secrets = { apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['metrics', 'hook'] };
    arena = await openArena(controlPlane(), recorder, {
      namespace,
      zones: ['a', 'b'],
      replicas: 2,
      podAnnotations: { 'vault.example.com/token': 'canary' },
      rules: [...agentRules(), ...sourceRules(), secrets],
    });
    for (const [name, key] of Object.entries({ metrics: 'canary', hook: callbackKey }))
      await client.create(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name }, stringData: { key } });
    const create = (kind: string, name: string, spec: object) =>
      client.create(`/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/${kind.toLowerCase()}s`, {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind,
        metadata: { name, annotations: { 'vault.example.com/token': 'canary' } },
        spec,
      });
    const usableFrom = { namespaces: [namespace] };
    const key = (name: string) => ({ name, key: 'key' });
    const prometheus = { url: `${metricsServer.url}/canary`, bearerToken: key('metrics') };
    await create('MetricSource', 'prod', { prometheus, usableFrom, limits: { minInterval: '1s' } });
    const url = `${hooks.url}/hooks/canary?token=canary`;
    await create('NotificationChannel', 'ui', { callback: { url, signingKey: key('hook') }, usableFrom });
    const query = 'sum(errors{api_token="canary"})';
    const endpoint = { port: 8080, path: '/prepare?token=canary' };
    await create('RolloutGroup', 'ingester', {
      members: { zones: ['a', 'b'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) },
      replicas: { count: 2 },
      scaling: { down: { delayed: { after: '1s', endpoint } } },
      gates: [{ name: 'errors', every: '1s', prometheus: { source: 'prod', query }, pass: { '<': [{ var: 'value' }, 1] } }],
      rollout: {
        strategy: 'onDelete',
        rotateBy: 'delete',
        waves: [{ name: 'all', zones: ['a', 'b'], percent: 100, before: { gates: ['errors'] } }],
      },
      notify: [{ channel: 'ui', events: ['started', 'completed'] }],
    });
    const agent = await arena.start({ env: { HTTP_PROXY: pods.url }, flags: ['--log.level=debug'] });
    await agent.untilReady();
    const outputs: string[] = [];
    const collect = async (): Promise<void> => {
      const env = { KUBECONFIG: identities.admin.kubeconfig };
      const verbs = ['get', 'get ingester -o json', 'explain ingester', 'explain ingester -o json', 'explain ingester-zone-a-1', 'doctor'];
      const more = ['events ingester -o json', 'history ingester -o json', 'status ingester --watch=false', 'plan --set image=x:9 -o json'];
      const plans = ['table', 'markdown', 'html', 'yaml'].map((format) => `plan --set image=x:9 -o ${format}`);
      for (const words of [...verbs, ...more, ...plans, 'simulate --set image=x:9 --runs 1 -o json']) {
        const { stdout, stderr } = runPlugin([...words.split(' '), '-n', namespace], { cwd: tmpdir(), env });
        expect([words, `${stdout}${stderr}`.length > 20]).toEqual([words, true]);
        outputs.push(`${words}\n${stdout}${stderr}`);
      }
      const kinds = ['configmaps', 'events'].map((kind) => `/api/v1/namespaces/${namespace}/${kind}`);
      for (const path of [
        ...kinds,
        eventsPath(namespace),
        runsPath(namespace),
        `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
      ])
        outputs.push(`${path}\n${JSON.stringify(await client.list(path))}`);
      const [group] = await client.list<Seen>(groupsPath(namespace));
      outputs.push(
        JSON.stringify(group?.['status']),
        (await agent.ask('/metrics')).body,
        agent.log(),
        ...callback.taken.map(({ body }) => body),
      );
    };
    await client.patch(`${groupsPath(namespace)}/ingester`, 'merge', { spec: { replicas: { count: 1 } } });
    await expect.poll(() => agent.log(), { timeout: 30_000 }).toContain('pod call failed');
    pods.script(/./, { kind: 'honest' });
    await client.until<Seen>(arena.group.setsPath, 'one replica', (sets) =>
      sets.every(({ spec }) => (spec as { replicas: number }).replicas === 1),
    );
    const containers = [{ name: 'server', image: 'example.com/server:2', env: [{ name: 'DB_PASSWORD', value: 'canary' }] }];
    const args = ['--token', 'canary', '--url=https://me:canary@example.com/?token=canary'];
    for (const set of arena.group.sets)
      await client.patch(`${arena.group.setsPath}/${set}`, 'strategic', {
        spec: { template: { spec: { containers: [{ ...containers[0], args }] } } },
      });
    await expect.poll(() => agent.log(), { timeout: 30_000 }).toContain('HTTP 500');
    const planned = () => runPlugin(['plan', '-n', namespace], { cwd: tmpdir(), env: { KUBECONFIG: identities.admin.kubeconfig } }).stdout;
    await expect
      .poll(planned, { timeout: 30_000 })
      .toMatch(/^Plan {2}\S+\/ingester {3}waits\n(?:.*\n)+WAITS .*\bgate\n +errors could not be read/);
    await collect();
    isUp = true;
    await client.until<Seen>(runsPath(namespace), 'a finished run', (all) => JSON.stringify(all).includes('"outcome":"completed"'), 90_000);
    await expect.poll(() => callback.taken.length, { timeout: 60_000 }).toBeGreaterThan(1);
    await collect();
    expect(
      outputs.filter((text) => text.includes('canary')).map((text) => [text.split('\n')[0], /.{60}canary.{60}/s.exec(text)?.[0]]),
    ).toEqual([]);
    expect(await agent.stop()).toBe(0);
  });

  it('shows the writers of fields that Argo CD applies, until the fields match Git again', async () => {
    const namespace = 'drifted';
    const { client, identities } = controlPlane();
    const env = { KUBECONFIG: identities.admin.kubeconfig };
    const manifests = mkdtempSync(join(tmpdir(), 'drifted-'));
    onTestFinished(() => rmSync(manifests, { recursive: true }));
    const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
    const manifest = (zone: string) => {
      const { metadata, spec } = statefulSet({ name: `ingester-zone-${zone}`, replicas: 1 }) as { metadata: object; spec: object };
      return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { ...metadata, namespace }, spec };
    };
    const sync = async () => {
      for (const zone of ['a', 'b'])
        await client.patch(`${sets}/ingester-zone-${zone}?fieldManager=argocd-controller&force=true`, 'apply', manifest(zone));
    };
    const edit = (manager: string, container: object) =>
      client.patch(`${sets}/ingester-zone-a?fieldManager=${manager}`, 'strategic', {
        spec: { template: { spec: { containers: [{ name: 'server', ...container }] } } },
      });
    const driftOf = async (isSo: (drift: string) => boolean): Promise<unknown> => {
      const drift = (group: Seen) => (group['status'] as { readonly drift?: object } | undefined)?.drift;
      const [group] = await client.until<Seen>(groupsPath(namespace), 'this drift', (groups) =>
        groups.some((one) => phaseOf(one) === 'Done' && isSo(JSON.stringify(drift(one)) ?? '')),
      );
      return group && drift(group);
    };
    const run = (words: string) => runPlugin([...words.split(' '), '-n', namespace], { cwd: manifests, env });
    const doctor = () => /^.*drift.*(?:RG6029|besides).*$/m.exec(run('doctor --no-color').stdout)?.[0];

    for (const zone of ['a', 'b']) writeFileSync(join(manifests, `${zone}.yaml`), JSON.stringify(manifest(zone)));
    for (const words of ['init -q', 'add -A', '-c user.name=test -c user.email=test@example.com commit -qm first'])
      execFileSync('git', words.split(' '), { cwd: manifests });
    await serveKinds();
    arena = await openArena(controlPlane(), recorder, { namespace, zones: ['a', 'b'], replicas: 1 });
    await sync();
    await client.create(groupsPath(namespace), {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'ingester' },
      spec: {
        members: { zones: ['a', 'b'].map((name) => ({ name, statefulSet: `ingester-zone-${name}` })) },
        rollout: { strategy: 'onDelete', rotateBy: 'delete' },
      },
    });
    const agent = await arena.start();
    await agent.untilReady();
    expect(await driftOf(() => true)).toBeUndefined();

    await edit('kubectl-set', { image: 'example.com/server:9' });
    await edit('kubectl-edit', { env: [{ name: 'DEBUG', value: '1' }] });
    const at = expect.stringMatching(/^\d{4}-.*Z$/);
    const own = 'spec.template.spec.containers[server]';
    expect(await driftOf((drift) => drift.includes('"fieldCount":2'))).toEqual({
      fieldCount: 2,
      fields: [
        { statefulSet: 'ingester-zone-a', field: `${own}.env[DEBUG]`, manager: 'kubectl-edit', lastWriteAt: at },
        { statefulSet: 'ingester-zone-a', field: `${own}.image`, manager: 'kubectl-set', lastWriteAt: at },
      ],
    });
    const metrics = async () => (await agent.ask('/metrics')).body;
    expect(await metrics()).toContain(`rollout_group_drift_fields{namespace="${namespace}",group="ingester",zone="a"} 2`);
    expect(await metrics()).toContain(`rollout_group_drift_fields{namespace="${namespace}",group="ingester",zone="b"} 0`);
    expect(await metrics()).toMatch(/^rollout_group_warnings\{.*rule="drift",reason="ManifestNotFollowed"\} 1$/m);
    await expect.poll(() => told(namespace), { timeout: 10_000 }).toContain('ManifestNotFollowed RolloutGroup');
    expect(run('get ingester').stdout.replace(/\s+/g, ' ')).toContain('drift: 2 fields differ from the manifests: kubectl-edit wrote');
    expect(doctor()).toMatch(/drifted\/ingester-zone-a: 2 fields differ from the manifests: kubectl-edit wrote .*, kubectl-set wrote /);
    const { stdout, status } = run('diff -f git:HEAD --group ingester');
    expect(stdout).toMatch(/ KEPT {2}kubectl-edit wrote .*env\[DEBUG\] in a at \d{4}-.*Z: the manifests do not have the field/);
    expect(stdout).toMatch(/written by kubectl-set \(Update\) at \d{4}-/);
    expect(status).toBe(1);
    const { groups } = JSON.parse(run('diff -f git:HEAD --group ingester -o json').stdout);
    expect(groups[0].kept).toEqual([{ field: `${own}.env[DEBUG]`, manager: 'kubectl-edit', zones: ['a'], at }]);

    await sync();
    expect(await driftOf((drift) => drift.includes('"fieldCount":1'))).toMatchObject({ fields: [{ manager: 'kubectl-edit' }] });
    await edit('kubectl-edit', { env: [{ name: 'DEBUG', $patch: 'delete' }] });
    expect(await driftOf((drift) => drift === '')).toBeUndefined();
    expect(await metrics()).toContain(`rollout_group_drift_fields{namespace="${namespace}",group="ingester",zone="a"} 0`);
    expect(doctor()).toContain('no manager wrote fields');
    expect(await agent.stop()).toBe(0);
  });

  it('no longer shows a change after kubectl applied the same value, which does not make kubectl the owner', async () => {
    const namespace = 'applied';
    const { client, identities } = controlPlane();
    const env = { KUBECONFIG: identities.admin.kubeconfig };
    const file = join(mkdtempSync(join(tmpdir(), 'applied-')), 'a.json');
    onTestFinished(() => rmSync(file));
    const kubectl = (...words: readonly string[]) =>
      execFileSync('/usr/bin/kubectl', [...words, '-n', namespace], { env: { ...process.env, ...env }, stdio: 'pipe' });
    const apply = (image: string) => {
      const object = { apiVersion: 'apps/v1', kind: 'StatefulSet', ...statefulSet({ name: 'ingester-zone-a', replicas: 1, image }) };
      // A variable that the stored StatefulSet does not have, so that kubectl owns a part of the template.
      const withEnv = (key: string, value: unknown) =>
        key === 'containers' ? [{ ...Object(value)[0], env: [{ name: 'FROM', value: 'git' }] }] : value;
      writeFileSync(file, JSON.stringify(object, withEnv));
      kubectl('apply', '-f', file);
    };
    await serveKinds();
    arena = await openArena(controlPlane(), recorder, { namespace, zones: ['a'], replicas: 1 });
    await client.create(groupsPath(namespace), {
      apiVersion: 'rollout-group.dev/v1alpha1',
      kind: 'RolloutGroup',
      metadata: { name: 'ingester' },
      spec: {
        members: { zones: [{ name: 'a', statefulSet: 'ingester-zone-a' }] },
        rollout: { strategy: 'onDelete', rotateBy: 'delete' },
      },
    });
    const agent = await arena.start();
    await agent.untilReady();
    const drift = async (count: number) => {
      const isSo = (group: Seen): boolean => {
        const { drift: found } = (group['status'] ?? {}) as { readonly drift?: { readonly fieldCount: number } };
        return phaseOf(group) === 'Done' && (found?.fieldCount ?? 0) === count;
      };
      await client.until<Seen>(groupsPath(namespace), `${count} drifted fields`, (groups) => groups.some(isSo));
      expect((await agent.ask('/metrics')).body).toContain(
        `rollout_group_drift_fields{namespace="${namespace}",group="ingester",zone="a"} ${count}`,
      );
      const { stdout } = runPlugin(['doctor', '--no-color', '-n', namespace], { cwd: tmpdir(), env });
      expect(/ingester-zone-a: (\d) fields? /.exec(stdout)?.[1] ?? '0').toBe(`${count}`);
    };
    const [first, second, third] = [1, 9, 10].map((tag) => `example.com/server:${tag}`) as [string, string, string];
    apply(first);
    await drift(0);
    kubectl('set', 'image', 'statefulset/ingester-zone-a', `server=${second}`);
    await drift(1);
    apply(second);
    await drift(0);
    apply(third);
    await drift(0);
    expect(await agent.stop()).toBe(0);
  });
});

function phaseOf(object: Seen): string | undefined {
  const { status, data } = object as {
    readonly status?: { readonly decision?: unknown };
    readonly data?: Readonly<Record<string, string>>;
  };
  const stored: unknown = data === undefined ? status?.decision : JSON.parse(data['decision'] ?? 'null');
  const decision = readPublished(stored);
  return isUnknown(decision) ? undefined : decision.phase;
}
