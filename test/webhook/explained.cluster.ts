// What somebody who is refused can find out: the denial of a real webhook names a decision, and the command that it names finds it.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { text as consumed } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KubernetesObject } from '../control-plane/client.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually } from '../control-plane/webhook.ts';
import { type Person, person, readerRules } from '../plugin/live-people.ts';
import {
  createWorld,
  evict,
  forms,
  groupsOf,
  merge,
  type Outcome,
  podsOf,
  replicas,
  setsOf,
  untilEvicted,
  type World,
  write,
} from './kit.ts';
import { kubectl } from './kit-attempts.ts';

const eventRules = [{ apiGroups: ['events.k8s.io', ''], resources: ['events'], verbs: ['get', 'list'] }] as const;

const canary = 's3cr3t-canary';
const address = `https://me:${canary}@files.example.com/a?sig=${canary}&token=${canary}`;
const annotations = { 'example.com/token': canary, 'example.com/dashboard': address };
const containers = [
  {
    name: 'server',
    args: [`--upload=${address}`, '--password', canary],
    env: [
      { name: 'PASSWORD', value: canary },
      { name: 'UPLOADS', value: address },
    ],
    startupProbe: { httpGet: { port: 80, path: `/?token=${canary}`, httpHeaders: [{ name: 'Authorization', value: `Bearer ${canary}` }] } },
  },
];

interface Registered extends KubernetesObject {
  readonly webhooks?: readonly { readonly clientConfig: { readonly url?: string } }[];
}

const decisionIn = ({ said }: Outcome): string | undefined => /explain decision\/([0-9a-f]{12})/.exec(said)?.[1];
const text = (value: unknown): string => JSON.stringify(value) ?? '';

/** Sends a body to the webhooks with credentials in its headers. Returns the status and the body of the answer. */
async function post(port: number, path: string, body: string): Promise<string> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${canary}`, cookie: `session=${canary}`, 'x-token': canary };
  const sent = request({ port, path, method: 'POST', headers, rejectUnauthorized: false });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return `${answer.statusCode} ${await consumed(answer)}`;
}

describeOnControlPlane(
  'a denial',
  (controlPlane) => {
    let world: World;
    const readers = new Map<string, Person>();

    beforeAll(async () => {
      world = await createWorld(controlPlane(), {
        namespaces: [...forms],
        start: { flags: ['-intents.stamped=true', '-log.level=debug'] },
      });
      for (const form of forms) {
        await world.createGroup(form, form, { name: 'ingester' });
        await world.untilGuarded(form, 'ingester-zone-a');
        readers.set(form, await person(controlPlane(), form, `reader-${form}`, [...readerRules, ...eventRules]));
      }
    });
    afterAll(() => world.close());

    it.each(forms)('names a decision that explain finds, with the rule, the limit and the requester: %s', async (form) => {
      const { admin } = world;
      const path = `${setsOf(form)}/ingester-zone-a`;
      let count = 0;
      for (const [outcome, rule, asked] of [
        [await write(admin, 'PATCH', path, replicas(2), merge), 'no-downscale', 'from 3 to 2'],
        [await write(admin, 'DELETE', path), 'no-delete', 'delete of statefulset/ingester-zone-a'],
        [await write(admin, 'PATCH', `${path}/scale`, replicas(1), merge), 'no-downscale', 'from 3 to 1'],
      ] as const) {
        // The compatible form answers decreases in the words of the original, so that its own endpoint is asked first.
        const id = decisionIn(outcome);
        if (form === 'compat' && id === undefined) {
          expect(outcome.said).toMatch(/denied the request: .*no-downscale/);
          continue;
        }
        expect(id, outcome.said).toBeDefined();
        const found = await eventually(
          `decision ${id} is told of`,
          async () => await readers.get(form)?.run(['explain', `decision/${id}`]),
          (ended) => ended?.status === 0,
        );
        expect(found?.stdout).toContain(rule);
        expect(found?.stdout).toContain(asked);
        expect(found?.stdout).toContain('ingester-zone-a');
        count += 1;
      }
      expect(count).toBeGreaterThanOrEqual(form === 'native' ? 3 : 1);
    });

    it('of an eviction beyond the budget is found, too', async () => {
      const { admin } = world;
      await untilEvicted(admin, 'native', 'ingester-zone-a-0');
      const outcome = await evict(admin, 'native', 'ingester-zone-b-0');
      const id = decisionIn(outcome);
      expect(id, outcome.said).toBeDefined();
      const found = await eventually(
        `decision ${id} is told of`,
        async () => await readers.get('native')?.run(['explain', `decision/${id}`]),
        (ended) => ended?.status === 0,
      );
      expect(found?.stdout).toContain('disruption-budget');
      expect(found?.stdout).toContain('ingester-zone-b-0');
    });

    it('that an exception prevents leaves a warning and an Event with requester, reason and end', async () => {
      const { admin } = world;
      const path = '/apis/rollout-group.dev/v1alpha1/namespaces/native';
      const anna = controlPlane().clientOf(controlPlane().identityOf({ user: 'anna', groups: ['system:masters'] }));
      await anna.create(`${path}/rolloutexceptions`, {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutException',
        metadata: { name: 'shrink-b', namespace: 'native' },
        spec: {
          rule: 'no-downscale',
          target: { group: 'ingester' },
          allow: { anything: true },
          reason: 'cost',
          expires: new Date(Date.now() + 3_600_000).toISOString(),
        },
      });
      const scaled = await eventually(
        'the exception is known',
        () => write(admin, 'PATCH', `${setsOf('native')}/ingester-zone-b?dryRun=All`, replicas(2), merge),
        ({ isRefused }) => !isRefused,
      );
      const said = /no-downscale: .*permitted by exception shrink-b of anna for any amount in all zones until 20\S+ \(cost\)/;
      expect(scaled.warnings).toMatch(said);
      expect(await write(admin, 'PATCH', `${setsOf('native')}/ingester-zone-b`, replicas(2), merge)).toMatchObject({ isRefused: false });
      const found = await eventually(
        'the use of the exception is told of',
        async () => await readers.get('native')?.run(['events', 'ingester']),
        (ended) => said.test(ended?.stdout ?? ''),
      );
      expect(found?.stdout).toMatch(/Warning +ExceptionUsed +statefulset\/ingester-zone-b +scale of .* from 3 to 2 is allowed; /);
      expect(found?.stdout.match(/ExceptionUsed/g)).toHaveLength(1);
    });

    it('of a protected pod is printed at once by kubectl delete and kubectl drain, although the protection ends soon', async () => {
      const cp = controlPlane();
      const { admin } = world;
      const expires = new Date(Date.now() + 50_000).toISOString();
      await admin.create('/apis/rollout-group.dev/v1alpha1/namespaces/native/rolloutintents', {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutIntent',
        metadata: { name: 'protect', namespace: 'native' },
        spec: { group: 'ingester', action: 'protect', expires },
      });
      const remove = ['delete', 'pod', 'ingester-zone-b-1', '-n', 'native'];
      const said = /denied the request: delete of pod\/ingester-zone-b-1 .*denied by protected: .* protects the group/;
      await eventually(
        'the protection is known',
        () => kubectl(cp, [...remove, '--dry-run=server'], 10_000),
        (outcome) => said.test(outcome.said),
      );
      expect(await kubectl(cp, remove, 10_000)).toMatchObject({ isRefused: true, said: expect.stringMatching(said) });
      const [node] = await admin.list('/api/v1/nodes');
      if (node === undefined) throw new Error('one node is to be drained');
      const drain = [
        'drain',
        node.metadata.name,
        '--ignore-daemonsets',
        '--pod-selector=statefulset.kubernetes.io/pod-name=ingester-zone-b-1',
      ];
      try {
        expect((await kubectl(cp, drain, 12_000)).said).toMatch(/eviction of pod\/ingester-zone-b-1 .*denied by protected/);
      } finally {
        await admin.patch(`/api/v1/nodes/${node.metadata.name}`, 'merge', { spec: { unschedulable: null } });
      }
    });

    it('shows no credential of an object, a header or an address, nor do the log, the metrics, the Events and the ledgers', async () => {
      const { admin, first } = world;
      const said: string[] = [];
      const ask = async (...request: Parameters<typeof write>): Promise<void> => {
        const outcome = await write(...request);
        said.push(outcome.said, outcome.warnings);
      };
      for (const form of forms) {
        await world.createGroup(form, form, { name: 'vault' });
        await world.untilGuarded(form, 'vault-zone-a');
        const path = `${setsOf(form)}/vault-zone-a`;
        const secretive = { metadata: { annotations }, spec: { template: { metadata: { annotations }, spec: { containers } } } };
        await admin.patch(path, 'strategic', secretive);
        // The old object has the credentials now, and each new one has them, too.
        await ask(admin, 'PATCH', path, { ...replicas(1), metadata: { annotations: { 'example.com/token': `${canary}-next` } } }, merge);
        await ask(admin, 'PATCH', path, { metadata: { annotations: { 'grafana.com/min-time-between-zones-downscale': address } } }, merge);
        await ask(admin, 'PATCH', `${path}/scale`, replicas(1), merge);
        await ask(admin, 'DELETE', path, { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Foreground' });
        await admin.patch(`${podsOf(form)}/vault-zone-a-0`, 'merge', { metadata: { annotations } });
        for (const zone of ['a', 'b']) {
          said.push(...Object.values(await evict(admin, form, `vault-zone-${zone}-0`)).map(String));
          await ask(admin, 'DELETE', `${podsOf(form)}/vault-zone-${zone}-1`);
        }
      }
      const group = `${groupsOf('native')}/vault`;
      for (const pass of [{ '<': [{ var: 'value' }, 1] }, { like: [{ var: address }, canary] }]) {
        const http = { port: 80, path: `/health?token=${canary}&sig=${canary}` };
        const gates = [{ name: 'health', http, pass }];
        await ask(admin, 'PATCH', group, { metadata: { annotations }, spec: { gates } }, merge);
      }
      await ask(admin, 'POST', `${groupsOf('native')}`.replace('rolloutgroups', 'rolloutintents'), {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutIntent',
        metadata: { name: 'approve-nothing', namespace: 'native', annotations },
        spec: { group: 'vault', action: 'approve', wave: 'none' },
      });
      const webhooks = await admin.list<Registered>('/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations');
      const paths = webhooks.flatMap((one) => (one.webhooks ?? []).map(({ clientConfig }) => new URL(clientConfig.url ?? '').pathname));
      for (const path of [...new Set(paths), '/nowhere']) {
        for (const body of [
          `{"password":"${canary}"`,
          JSON.stringify({ kind: 'AdmissionReview', request: { uid: canary, object: canary } }),
        ]) {
          said.push(await post(first.port, `${path}?token=${canary}`, body));
        }
      }
      const events = (await Promise.all(forms.map((form) => admin.list(`/apis/events.k8s.io/v1/namespaces/${form}/events`)))).flat();
      const ledgers = (await Promise.all(forms.map((form) => admin.list(`/api/v1/namespaces/${form}/configmaps`)))).flat();
      const { status } = await admin.get<{ readonly status?: unknown }>(group);
      const metrics = (await first.agent.ask('/metrics')).body;
      const shown = {
        said: said.join('\n'),
        log: first.agent.log(),
        metrics,
        events: text(events),
        ledgers: text(ledgers),
        status: text(status),
      };
      const leaks = Object.entries(shown).flatMap(([where, what]) => {
        const at = what.indexOf(canary);
        return at < 0 ? [] : [`${where}: ${what.slice(Math.max(0, at - 200), at + 40)}`];
      });
      expect(leaks).toEqual([]);
      expect(shown.said).toMatch(/no-downscale/);
      expect(shown.said).toMatch(/no-delete/);
      for (const where of [shown.log, shown.events]) expect(where).toContain('vault-zone-a');
    });

    it('that never existed is not found, with a message', async () => {
      const ended = await readers.get('native')?.run(['explain', 'decision/000000000000']);
      expect(ended?.status).not.toBe(0);
      expect(`${ended?.stdout}${ended?.stderr}`).toContain('000000000000');
    });
  },
  { zones: ['zone-a'] },
);
