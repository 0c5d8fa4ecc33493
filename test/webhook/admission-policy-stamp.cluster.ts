// Who asked for an intent or an exception, on a real API server: it is true with the webhook that stamps it, and without.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { contextOf } from '../../engine/context.ts';
import { approvalResults } from '../../engine/rules/approval.ts';
import { isUnknown } from '../../engine/snapshot.ts';
import { admissionPoliciesOf } from '../../install/admission-policy.ts';
import { installation } from '../../install/installation.ts';
import { readIntent } from '../../policies/live/intents.ts';
import type { ApiClient, KubernetesObject, Method } from '../control-plane/client.ts';
import { describeOnControlPlane } from '../control-plane/suite.ts';
import { eventually } from '../control-plane/webhook.ts';
import { optionsOf } from '../install/given.ts';
import { group } from '../kit/groups.ts';
import { contextWith } from '../kit/questions.ts';
import { installStamping } from '../plugin/stamping.ts';
import { apply, json, merge } from './kit.ts';
import { closeAll } from './server/served.ts';

interface Stamp {
  readonly user: string;
  readonly groups: readonly string[];
  readonly at: string;
}

type Asked = KubernetesObject & { readonly spec?: { readonly requestedBy?: Stamp }; readonly message?: string };

const namespace = 'mimir';
const ours = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}`;
const admission = '/apis/admissionregistration.k8s.io/v1';
const isRefused = /^403 .*rollout-group-requested-by.*requestedBy/s;

describeOnControlPlane(
  'the requester of an intent',
  (controlPlane) => {
    let admin: ApiClient;
    let ada: ApiClient;
    let eve: ApiClient;

    beforeAll(async () => {
      const { client, clientOf, identityOf } = controlPlane();
      admin = client;
      await admin.create('/api/v1/namespaces', { metadata: { name: namespace } });
      const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
      for (const one of installation(optionsOf())) if (one.kind === 'CustomResourceDefinition') await admin.create(definitions, one);
      for (const one of admissionPoliciesOf(optionsOf())) {
        const plural = `${one.kind.toLowerCase().replace(/y$/, 'ie')}s`;
        await admin.create(`${admission}/${plural}`, one);
      }
      const rbac = '/apis/rbac.authorization.k8s.io/v1';
      const rules = [{ apiGroups: ['rollout-group.dev'], resources: ['*'], verbs: ['*'] }];
      await admin.create(`${rbac}/clusterroles`, { metadata: { name: 'writers' }, rules });
      await admin.create(`${rbac}/clusterrolebindings`, {
        metadata: { name: 'writers' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'writers' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'writers' }],
      });
      ada = clientOf(identityOf({ user: 'ada', groups: ['writers', 'oncall'] }));
      eve = clientOf(identityOf({ user: 'eve', groups: ['writers'] }));
      await eventually(
        'a policy that is in force, of kinds that are served',
        () => ask(ada, 'POST', 'rolloutintents?dryRun=All', intent('probe', stampOf('root'))),
        ({ said }) => isRefused.test(said),
      );
    });
    afterAll(() => closeAll());

    async function ask(client: ApiClient, method: Method, path: string, body?: unknown, type?: string) {
      const { status, body: answer } = await client.askUntilJudged<Asked>(method, `${ours}/${path}`, body, type);
      return { said: `${status} ${answer.message ?? ''}`, stamp: answer.spec?.requestedBy, answer };
    }

    const stampOf = (user: string, groups: readonly string[] = [], aheadMs = 0): Stamp => ({
      user,
      groups,
      at: new Date(Date.now() + aheadMs).toISOString(),
    });

    function intent(name: string, requestedBy?: Stamp, spec: object = {}): object {
      const stamp = requestedBy === undefined ? {} : { requestedBy };
      return {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutIntent',
        metadata: { name },
        spec: { group: 'ingester', action: 'approve', wave: 'rest', ...spec, ...stamp },
      };
    }

    function exception(name: string, requestedBy?: Stamp): object {
      const stamp = requestedBy === undefined ? {} : { requestedBy };
      return {
        apiVersion: 'rollout-group.dev/v1alpha1',
        kind: 'RolloutException',
        metadata: { name },
        spec: {
          rule: 'zone-gap',
          target: { group: 'a' },
          allow: { anything: true },
          reason: 'x',
          expires: '2030-01-01T00:00:00Z',
          ...stamp,
        },
      };
    }

    describe('without a webhook that writes the stamp', () => {
      it.each<[string, () => Stamp]>([
        ['of somebody else', () => stampOf('ada', ['writers'])],
        ['of an administrator', () => stampOf('system:admin', ['system:masters'])],
        ['of oneself in a group of others', () => stampOf('eve', ['writers', 'oncall'])],
      ])('a stamp %s is denied on every path', async (_, forged) => {
        const stamp = forged();
        expect((await ask(eve, 'POST', 'rolloutintents', intent('forged', stamp))).said).toMatch(isRefused);
        expect((await ask(eve, 'POST', 'rolloutexceptions', exception('forged', stamp))).said).toMatch(isRefused);
        const applied = 'rolloutintents/forged?fieldManager=eve&force=true';
        expect((await ask(eve, 'PATCH', applied, intent('forged', stamp), apply)).said).toMatch(isRefused);
        expect((await ask(eve, 'POST', 'rolloutintents?dryRun=All', intent('forged', stamp))).said).toMatch(isRefused);
      });

      it('names the next step', async () => {
        const { said } = await ask(eve, 'POST', 'rolloutintents', intent('forged', stampOf('ada')));
        expect(said).toContain('spec.requestedBy must name the requester eve and only groups of this user; leave spec.requestedBy out');
      });

      it('exempts no user: neither an administrator nor the agent', async () => {
        const forged = intent('forged', stampOf('ada', ['oncall']));
        const account = 'system:serviceaccount:rollout-group:rollout-group-agent';
        const { clientOf, identityOf } = controlPlane();
        const agent = clientOf(identityOf({ user: account, groups: ['writers'] }));
        for (const client of [admin, agent]) expect((await ask(client, 'POST', 'rolloutintents', forged)).said).toMatch(isRefused);
      });

      it('an intent without a stamp is accepted and stays unverified, and so is a correct stamp, with fewer groups too', async () => {
        for (const [path, object] of [
          ['rolloutintents', intent('unsaid')],
          ['rolloutexceptions', exception('unsaid')],
        ] as const) {
          const { said, stamp } = await ask(ada, 'POST', path, object);
          expect([said, stamp]).toEqual(['201 ', undefined]);
        }
        const own = stampOf('ada', ['system:authenticated', 'oncall']);
        const { said, stamp } = await ask(ada, 'POST', 'rolloutintents', intent('own', own));
        expect([said, stamp]).toEqual(['201 ', own]);
      });

      it('a stamp stays while no other action is requested', async () => {
        const own = stampOf('ada', ['oncall']);
        const { answer } = await ask(ada, 'POST', 'rolloutintents', intent('hers', own));
        const forged = stampOf('eve', ['writers']);
        const writes: readonly (readonly [Method, unknown, string?])[] = [
          ['PATCH', { spec: { requestedBy: forged } }, merge],
          ['PATCH', { spec: { requestedBy: { at: forged.at } } }, merge],
          ['PATCH', [{ op: 'replace', path: '/spec/requestedBy/groups', value: [] }], json],
          ['PUT', { ...answer, spec: { ...answer.spec, requestedBy: forged } }],
        ];
        for (const [method, body, type] of writes) {
          expect((await ask(eve, method, 'rolloutintents/hers', body, type)).said).toMatch(/^403 .*must stay unchanged/s);
        }
        const unsaid = await ask(eve, 'PATCH', 'rolloutintents/unsaid', { spec: { requestedBy: forged } }, merge);
        expect(unsaid.said).toMatch(/^403 .*must stay unchanged/s);
        const labelled = await ask(eve, 'PATCH', 'rolloutintents/hers', { metadata: { labels: { a: 'b' } } }, merge);
        expect([labelled.said, labelled.stamp]).toEqual(['200 ', own]);
      });

      it('a stamp may be removed while no other action is requested, as by a manifest without it, and then no requester is verified', async () => {
        const taken: readonly (readonly [string, Method, unknown, string?])[] = [
          ['null', 'PATCH', { spec: { requestedBy: null } }, merge],
          ['removed', 'PATCH', [{ op: 'remove', path: '/spec/requestedBy' }], json],
          ['replaced', 'PUT', undefined],
        ];
        for (const [name, method, body, type] of taken) {
          const { answer } = await ask(ada, 'POST', 'rolloutintents', intent(`taken-${name}`, stampOf('ada', ['oncall'])));
          const { resourceVersion } = answer.metadata;
          const written = method === 'PUT' ? { ...intent(`taken-${name}`), metadata: { name: `taken-${name}`, resourceVersion } } : body;
          const { said, stamp } = await ask(eve, method, `rolloutintents/taken-${name}`, written, type);
          expect([name, said, stamp]).toEqual([name, '200 ', undefined]);
        }
      });

      it('a future time is accepted under the name of its writer, on create and update, and has no effect', async () => {
        const created = await ask(
          ada,
          'POST',
          'rolloutintents',
          intent('early', { ...stampOf('ada', ['oncall']), at: '2099-01-01T00:00:00Z' }),
        );
        expect(created.said).toBe('201 ');
        const hers = await ask(ada, 'POST', 'rolloutintents', intent('honest', stampOf('ada', ['oncall'])));
        const counts = ({ answer }: { readonly answer: Asked }) => {
          const view = readIntent(answer);
          if (isUnknown(view)) throw new Error(view.unknown);
          const context = contextOf({ ...contextWith(group()).snapshot, nowMs: Date.now(), intents: [{ ...view, digest: 'd' }] }, group());
          const approval = { count: 1, from: ['oncall'], expiresMs: 3_600_000 };
          return approvalResults({ context, rule: 'approval', approval, subject: { wave: 'rest' }, digest: 'd', source: undefined })[0]
            ?.outcome;
        };
        expect([counts(created), counts(hers)]).toEqual(['unknown', 'ok']);
        const later = { spec: { reason: 'again', requestedBy: { ...stampOf('ada', ['oncall']), at: '2099-01-01T00:00:00Z' } } };
        const changed = await ask(ada, 'PATCH', 'rolloutintents/honest', later, merge);
        expect([changed.said, changed.stamp?.at, counts(changed)]).toEqual(['200 ', '2099-01-01T00:00:00Z', 'unknown']);
      });

      it('no user changes a request under the name of another user', async () => {
        await ask(ada, 'POST', 'rolloutintents', intent('paused', stampOf('ada', ['oncall']), { action: 'pause' }));
        const changed = { action: 'approve' };
        expect((await ask(eve, 'PATCH', 'rolloutintents/paused', { spec: changed }, merge)).said).toMatch(isRefused);
        expect((await ask(eve, 'PATCH', 'rolloutintents/paused', { spec: { wave: null } }, merge)).said).toMatch(isRefused);
        expect((await ask(eve, 'PATCH', 'rolloutintents/paused', { spec: { reason: 'new' } }, merge)).said).toMatch(isRefused);
        // Groups that she has left are hers no longer.
        const { clientOf, identityOf } = controlPlane();
        const former = clientOf(identityOf({ user: 'ada', groups: ['writers'] }));
        expect((await ask(former, 'PATCH', 'rolloutintents/paused', { spec: changed }, merge)).said).toMatch(isRefused);
        const unsaid = await ask(eve, 'PATCH', 'rolloutintents/paused', { spec: { ...changed, requestedBy: null } }, merge);
        expect([unsaid.said, unsaid.stamp]).toEqual(['200 ', undefined]);
      });

      it('a deletion is always allowed', async () => {
        expect((await ask(eve, 'DELETE', 'rolloutintents/paused')).said).toMatch(/^200/);
      });
    });

    describe('behind the webhook', () => {
      beforeAll(() => installStamping(controlPlane(), namespace));

      it('every requester is stamped, with any value in the object, and the policy accepts it', async () => {
        const groups = expect.arrayContaining(['oncall', 'writers']);
        for (const [name, forged] of [
          ['stamped', undefined],
          ['forged', stampOf('root', ['system:masters'], 3_600_000)],
        ] as const) {
          const { said, stamp } = await ask(ada, 'POST', 'rolloutintents', intent(name, forged));
          expect([said, stamp]).toEqual(['201 ', { user: 'ada', groups, at: expect.any(String) }]);
        }
        const { said, stamp } = await ask(ada, 'POST', 'rolloutexceptions', exception('forged', stampOf('root')));
        expect([said, stamp?.user]).toEqual(['201 ', 'ada']);
      });

      it('a user in hundreds of groups is stamped with as many as fit, and the API server can still compare them', async () => {
        const { clientOf, identityOf } = controlPlane();
        const many = Array.from({ length: 450 }, (_, index) => `department-of-a-large-company:team-${String(index).padStart(4, '0')}`);
        const crowd = clientOf(identityOf({ user: 'crowd', groups: [...many, 'writers'] }));
        const { said, stamp } = await ask(crowd, 'POST', 'rolloutintents', intent('crowd'));
        expect([said, stamp?.user, stamp?.groups.length]).toEqual(['201 ', 'crowd', 200]);
      });

      it('a user who changes the request is stamped, and other changes keep the stamp', async () => {
        const { stamp: before } = await ask(ada, 'POST', 'rolloutintents', intent('changed'));
        const forged = { spec: { requestedBy: stampOf('root') } };
        expect(await ask(eve, 'PATCH', 'rolloutintents/changed', forged, merge)).toMatchObject({ said: '200 ', stamp: before });
        const removed = { spec: { requestedBy: null } };
        expect(await ask(eve, 'PATCH', 'rolloutintents/changed', removed, merge)).toMatchObject({ said: '200 ', stamp: before });
        const other = { spec: { action: 'reject' } };
        expect(await ask(eve, 'PATCH', 'rolloutintents/changed', other, merge)).toMatchObject({ said: '200 ', stamp: { user: 'eve' } });
        const applied = 'rolloutintents/changed?fieldManager=ada&force=true';
        expect(await ask(ada, 'PATCH', applied, intent('changed'), apply)).toMatchObject({ said: '200 ', stamp: { user: 'ada' } });
        // Applied again it says the same.
        expect(await ask(ada, 'PATCH', applied, intent('changed'), apply)).toMatchObject({ said: '200 ', stamp: { user: 'ada' } });
      });

      it('a forged stamp is denied again as soon as the configurations are deleted', async () => {
        for (const kind of ['mutating', 'validating']) await admin.delete(`${admission}/${kind}webhookconfigurations/rollout-group`);
        const forge = () => ask(eve, 'POST', 'rolloutintents?dryRun=All', intent('late', stampOf('ada', ['oncall'])));
        const { said } = await eventually('an API server that asks nobody', forge, (answer) => !answer.said.startsWith('201'));
        expect(said).toMatch(isRefused);
        const { stamp } = await ask(eve, 'POST', 'rolloutintents', intent('late'));
        expect(stamp).toBeUndefined();
      });
    });
  },
  { isStill: true },
);
