// Tests the CustomResourceDefinitions on a real API server: accepted and rejected objects with their messages, scale and status.
import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { decide } from '../../engine/decide/decide.ts';
import { publishedDecision } from '../../engine/publish/decision.ts';
import { readPublished } from '../../engine/publish/read.ts';
import { groupStatus } from '../../engine/publish/status.ts';
import { lintPolicies } from '../../policies/lint/lint.ts';
import { resolveLive } from '../../policies/live/sources.ts';
import { group } from '../kit/groups.ts';
import { snapshotOf } from '../kit/snapshots.ts';
import type { ApiClient, KubernetesObject, Reply } from './client.ts';
import type { ControlPlane } from './control-plane.ts';
import { describeOnControlPlane } from './suite.ts';

interface Definition extends KubernetesObject {
  readonly spec: { readonly group: string; readonly names: { readonly kind: string; readonly plural: string } };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message: string }[] };
}

interface Policy {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

interface Failure {
  readonly message?: string;
}

const api = '/apis/rollout-group.dev/v1alpha1';
const definitions = readdirSync('deploy/crds').map((file) => parse(readFileSync(`deploy/crds/${file}`, 'utf8')) as Definition);
const ours = definitions.filter(({ spec }) => spec.group === 'rollout-group.dev');
const plurals = new Map(ours.map(({ spec }) => [spec.names.kind, spec.names.plural]));

const files = readdirSync('examples', { withFileTypes: true, recursive: true })
  .filter((entry) => entry.isFile() && entry.parentPath.endsWith('/policies') && entry.name.endsWith('.yaml'))
  .map((entry) => `${entry.parentPath}/${entry.name}`)
  .concat('test/policies/complete.yaml')
  .map((name) => ({ name, text: readFileSync(name, 'utf8') }));

/** Kinds without an example. */
const others: readonly Policy[] = [
  {
    kind: 'RolloutIntent',
    metadata: { name: 'stop' },
    spec: { group: 'ingester', action: 'pause', zone: 'a', reason: 'look at the logs', expires: '2027-01-01T00:00:00Z' },
  },
  { kind: 'RolloutIntent', metadata: { name: 'again' }, spec: { group: 'ingester', action: 'retry' } },
  {
    kind: 'RolloutRun',
    metadata: { name: 'ingester-1' },
    spec: {
      group: 'ingester',
      id: '1',
      kind: 'rollout',
      outcome: 'running',
      startedAt: '2026-01-01T00:00:00Z',
      waited: 0,
      zones: [],
      steps: [],
      waits: [],
    },
  },
  {
    kind: 'NotificationChannel',
    metadata: { name: 'sre' },
    spec: {
      slack: { channel: 'C0123456789', token: { name: 'slack', key: 'token' } },
      usableFrom: { namespaces: ['mimir'] },
    },
  },
];

const minimal = {
  members: { zones: [{ name: 'a', statefulSet: 'ingester-zone-a' }] },
  rollout: { strategy: 'partition' },
};

let editor: ApiClient;

function collection(kind: string, namespace: string): string {
  return `${api}/namespaces/${namespace}/${plurals.get(kind)}`;
}

function create(kind: string, namespace: string, name: string, spec: unknown): Promise<Reply<KubernetesObject & Failure>> {
  return editor.ask('POST', collection(kind, namespace), { apiVersion: 'rollout-group.dev/v1alpha1', kind, metadata: { name }, spec });
}

/** The definitions, and a user who may write only the kinds of this project. */
async function install({ client, clientOf, identityOf }: ControlPlane): Promise<void> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  for (const definition of definitions) await client.create(path, definition);
  await client.until<Definition>(path, 'every definition served', (items) =>
    items.every(({ status }) => status?.conditions?.some(({ type, status: is }) => type === 'Established' && is === 'True')),
  );
  const name = 'policy-editor';
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const rules = [{ apiGroups: ['rollout-group.dev'], resources: ['*'], verbs: ['*'] }];
  await client.create(`${rbac}/clusterroles`, { metadata: { name }, rules });
  await client.create(`${rbac}/clusterrolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name }],
  });
  editor = clientOf(identityOf({ user: 'jane', groups: [name] }));
  for (const namespace of ['valid', 'wrong', 'scaled']) await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
}

describeOnControlPlane(
  'the definitions of our kinds',
  (controlPlane) => {
    beforeAll(() => install(controlPlane()));

    it('are structural, and their names are accepted', async () => {
      const installed = await controlPlane().client.list<Definition>('/apis/apiextensions.k8s.io/v1/customresourcedefinitions');
      const problems = installed.flatMap(({ metadata, status }) =>
        (status?.conditions ?? [])
          .filter(({ type, status: is }) => (type === 'NonStructuralSchema' ? is === 'True' : is !== 'True'))
          .map(({ type, message }) => `${metadata.name} ${type}: ${message}`),
      );
      expect([installed.length, problems]).toEqual([definitions.length, []]);
    });

    it('take every policy of the examples, and the server gives back what the files say', async () => {
      const documents = files.flatMap(({ text }) => parseAllDocuments(text).map((document) => document.toJS() as Policy | null));
      const policies = [...documents, ...others].filter((one): one is Policy => one !== null && plurals.has(one.kind));
      const refused: string[] = [];
      const stored: unknown[] = [];
      // Examples may define the same object. Each kind and name is written once.
      const first = new Map(policies.map((policy) => [`${policy.kind} ${policy.metadata.name}`, policy]));
      for (const [name, { kind, metadata, spec }] of first) {
        const { status, body } = await create(kind, 'valid', metadata.name, spec);
        if (status === 201) stored.push(body);
        else refused.push(`${name}: ${status} ${body.message}`);
      }
      expect(refused).toEqual([]);
      expect([...plurals.keys()].filter((kind) => ![...first.keys()].some((name) => name.startsWith(`${kind} `)))).toEqual([]);
      const fromServer = resolveLive({ objects: stored, statefulSets: [], order: ['objects'], agentNamespace: 'valid' });
      const broken = fromServer.findings.filter(({ code }) => code.startsWith('RG1') || code.startsWith('RG20'));
      expect(broken.map(({ code, message, object }) => `${code} ${object}: ${message}`)).toEqual([]);
      const texts = [...first.values()].map((one) => ({
        name: `${one.kind}-${one.metadata.name}.yaml`,
        text: JSON.stringify({ ...one, apiVersion: 'rollout-group.dev/v1alpha1', metadata: { ...one.metadata, namespace: 'valid' } }),
      }));
      const fromFiles = resolveLive({ directory: texts, statefulSets: [], order: ['directory'], agentNamespace: 'valid' });
      expect(fromServer.groups.length).toBeGreaterThan(3);
      expect(fromServer.digest).toBe(fromFiles.digest);
    });

    it('give kubectl output that lint takes', async () => {
      await create('RolloutGroup', 'valid', 'printed', minimal);
      const printed = await editor.get(`${collection('RolloutGroup', 'valid')}/printed`);
      const { findings } = lintPolicies([{ name: 'get.json', text: JSON.stringify(printed, undefined, 2) }]);
      expect(findings.filter(({ severity }) => severity !== 'notice')).toEqual([]);
    });

    describe('refuse', () => {
      const rollout = (changes: object) => ({ ...minimal, rollout: { ...minimal.rollout, ...changes } });
      const wave = { name: 'all', zones: ['a'], percent: 100 };
      const run = others.find(({ kind }) => kind === 'RolloutRun')?.spec;

      it.each<[string, string, unknown, RegExp]>([
        [
          'waves beside a schedule',
          'RolloutGroup',
          rollout({ waves: [wave], schedule: { kind: 'exponential' } }),
          /spec\.rollout.*at most one of waves, schedule/,
        ],
        ['a wave with two amounts', 'RolloutGroup', rollout({ waves: [{ ...wave, pods: 1 }] }), /waves\[0\].*exactly one of pods, percent/],
        ['a wave without an amount', 'RolloutGroup', rollout({ waves: [{ name: 'x', zones: ['a'] }] }), /exactly one of pods, percent/],
        [
          'two disruption budgets',
          'RolloutGroup',
          { ...minimal, disruption: { maxUnavailable: 1, maxUnavailablePercent: 10 } },
          /spec\.disruption.*at most one of maxUnavailable/,
        ],
        [
          'two sources of replicas',
          'RolloutGroup',
          { ...minimal, replicas: { count: 3, leader: true } },
          /spec\.replicas.*at most one of count, mirror, leader/,
        ],
        [
          'zones beside a selector',
          'RolloutGroup',
          { ...minimal, members: { ...minimal.members, selector: { matchLabels: { a: 'b' } } } },
          /spec\.members.*exactly one of zones, selector/,
        ],
        ['no strategy', 'RolloutGroup', { members: minimal.members, rollout: {} }, /spec\.rollout\.strategy.*Required/],
        [
          'an unknown strategy',
          'RolloutGroup',
          rollout({ strategy: 'magic' }),
          /spec\.rollout\.strategy.*"pinned", "partition", "onDelete"/,
        ],
        ['a percentage of nothing', 'RolloutGroup', rollout({ maxUnavailable: '0%' }), /spec\.rollout\.maxUnavailable/],
        ['a negative number', 'RolloutGroup', rollout({ maxUnavailable: -1 }), /spec\.rollout\.maxUnavailable.*greater than or equal to 0/],
        ['a duration without a unit', 'RolloutGroup', rollout({ minInterval: '5' }), /spec\.rollout\.minInterval/],
        [
          'two kinds of target',
          'RolloutPolicy',
          { targets: { groups: ['a'], all: true } },
          /spec\.targets.*exactly one of groups, selector, all/,
        ],
        [
          'an exception without an end',
          'RolloutException',
          { rule: 'zone-gap', target: { group: 'a' }, allow: { anything: true }, reason: 'x' },
          /spec\.expires.*Required/,
        ],
        [
          'an exception that allows two things',
          'RolloutException',
          {
            rule: 'zone-gap',
            target: { group: 'a' },
            allow: { anything: true, podsAtMost: 1 },
            reason: 'x',
            expires: '2027-01-01T00:00:00Z',
          },
          /spec\.allow.*exactly one of/,
        ],
        ['an unknown intent', 'RolloutIntent', { group: 'a', action: 'dance' }, /spec\.action.*"pause"/],
        [
          'a run with too many steps',
          'RolloutRun',
          {
            ...run,
            steps: Array.from({ length: 101 }, () => ({
              action: 'scale',
              what: 'x',
              count: 1,
              startedAt: '2026-01-01T00:00:00Z',
              endedAt: '2026-01-01T00:00:00Z',
            })),
          },
          /spec\.steps.*at most 100/,
        ],
      ])('%s', async (_case, kind, spec, why) => {
        const { status, body } = await create(kind, 'wrong', 'wrong', spec);
        expect([status, body.message]).toEqual([422, expect.stringMatching(why)]);
      });

      it('an invalid name', async () => {
        expect((await create('RolloutGroup', 'wrong', 'No Name', minimal)).status).toBe(422);
      });
    });

    describe('of a group', () => {
      const path = () => `${collection('RolloutGroup', 'scaled')}/ingester`;

      it('serve scale with the count as replicas, and status apart from the spec', async () => {
        await create('RolloutGroup', 'scaled', 'ingester', { ...minimal, replicas: { count: 3 } });
        // So kstatus does not count a new group as ready.
        expect(await editor.get(path())).toMatchObject({ status: { observedGeneration: -1 } });
        const snapshot = snapshotOf({ groups: [group({ namespace: 'scaled', zones: ['a'] })] });
        const [one] = snapshot.groups;
        const [decision] = decide(snapshot).groups;
        if (one === undefined || decision === undefined) throw new Error('the snapshot has no group');
        const published = publishedDecision({ group: one, decision, snapshot, atMs: snapshot.nowMs, leader: 'agent-1' });
        const status = groupStatus(published, { generation: 1, scale: { replicas: 2, selector: 'name=ingester-zone-a' } });
        await editor.patch(`${path()}/status`, 'merge', { status, spec: { replicas: { count: 9 } } });
        const stored = await editor.get<{ readonly spec: unknown; readonly status: { readonly decision: unknown } }>(path());
        expect([stored.spec, stored.status]).toMatchObject([{ replicas: { count: 3 } }, status]);
        expect(readPublished(stored.status.decision)).toEqual(published);

        await editor.patch(`${path()}/scale`, 'merge', { spec: { replicas: 5 } });
        expect(await editor.get(`${path()}/scale`)).toMatchObject({
          kind: 'Scale',
          spec: { replicas: 5 },
          status: { replicas: 2, selector: 'name=ingester-zone-a' },
        });
        expect(await editor.get(path())).toMatchObject({ spec: { replicas: { count: 5 } }, status: { phase: 'Done' } });
      });

      it('give kubectl the columns that people look for', async () => {
        const reply = await controlPlane().client.get<{
          readonly spec: { readonly versions: readonly { readonly additionalPrinterColumns: readonly { readonly name: string }[] }[] };
        }>('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rolloutgroups.rollout-group.dev');
        expect(reply.spec.versions[0]?.additionalPrinterColumns.map(({ name }) => name)).toEqual([
          'Phase',
          'Updated',
          'Ready',
          'Pods',
          'Stopped',
          'Reason',
          'Age',
        ]);
      });
    });
  },
  { isStill: true },
);
