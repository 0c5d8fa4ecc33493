// What an API server makes of our configurations: as installed and as the agent narrows them they are taken for what they are, and changed ones are not.
import { expect, it } from 'vitest';
import { installation } from '../../../install/installation.ts';
import { narrowed } from '../../../install/narrowing.ts';
import type { InstallOptions } from '../../../install/object.ts';
import { registrationProblems } from '../../../install/registered.ts';
import type { Member } from '../../../install/scope.ts';
import type { KubernetesObject } from '../../control-plane/client.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { group, optionsOf, scopeOf } from '../../install/given.ts';

type Row = Readonly<Record<string, unknown>>;
type Configuration = KubernetesObject & { readonly webhooks: readonly Row[] };

const pathOf = (kind: string): string => `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}s`;
const members: readonly Member[] = ['ingester-zone-a', 'ingester-zone-b'].map((statefulSet) => ({ namespace: 'mimir', statefulSet }));

describeOnControlPlane(
  'our webhook configurations on an API server',
  (controlPlane) => {
    const applied = async (changes: Partial<InstallOptions>): Promise<readonly Configuration[]> => {
      const { client } = controlPlane();
      const objects = installation(optionsOf(changes)).filter(({ kind }) => kind.endsWith('WebhookConfiguration'));
      return await Promise.all(
        objects.map(async (object) => {
          const path = `${pathOf(object.kind)}/${object.metadata.name}`;
          const { status, body } = await client.ask<Configuration>(
            'PATCH',
            `${path}?fieldManager=rollout-group`,
            object,
            'application/apply-patch+yaml',
          );
          expect(status).toBeLessThan(300);
          return body;
        }),
      );
    };
    const problemsOf = (stored: readonly Configuration[], namespace = 'rollout-group'): readonly string[] =>
      registrationProblems(
        stored.map(({ kind = '', metadata: { name }, webhooks }) => ({ kind, name, webhooks })),
        { namespace, members },
      );

    it('equal the installed ones, also narrowed, and can be installed again over the additions of the agent', async () => {
      const { client } = controlPlane();
      expect(problemsOf(await applied({}))).toEqual([]);
      expect(problemsOf(await applied({ namespace: 'ops', scope: scopeOf(group), isMembersOnly: true }), 'ops')).toEqual([]);
      const path = `${pathOf('ValidatingWebhookConfiguration')}/rollout-group`;
      const stored = await client.get<Configuration>(path);
      const many = Array.from({ length: 2_000 - members.length }, (_, index) => ({ namespace: 'mimir', statefulSet: `other-${index}` }));
      for (const now of [members, [...members, ...many]]) {
        const webhooks = narrowed(stored.webhooks, now);
        const { status, body } = await client.ask<Configuration>(
          'PATCH',
          path,
          [{ op: 'replace', path: '/webhooks', value: webhooks }],
          'application/json-patch+json',
        );
        expect(status).toBe(200);
        expect(narrowed(body.webhooks, now)).toEqual(body.webhooks);
      }
      // No field of it is taken from the agent, and none is lost.
      const again = await applied({});
      expect(problemsOf(again)).toEqual([]);
      expect(again.find(({ kind }) => kind?.startsWith('Validating'))?.webhooks).toHaveLength(stored.webhooks.length + 4);
    });

    it('are distinguished from changed ones', async () => {
      const { client } = controlPlane();
      await applied({});
      const path = `${pathOf('ValidatingWebhookConfiguration')}/rollout-group`;
      const operations = [
        { op: 'replace', path: '/webhooks/0/namespaceSelector', value: { matchLabels: { nobody: 'yes' } } },
        { op: 'add', path: '/webhooks/1/matchConditions/-', value: { name: 'never', expression: 'false' } },
      ];
      const changed = await client.ask<Configuration>('PATCH', path, operations, 'application/json-patch+json');
      expect(changed.status).toBe(200);
      const { webhooks } = changed.body;
      const problems = registrationProblems([{ kind: 'ValidatingWebhookConfiguration', name: 'rollout-group', webhooks }], {
        namespace: 'rollout-group',
      });
      expect(problems.map((problem) => problem.split(' ').slice(0, 2).join(' '))).toEqual([
        'namespaceSelector of',
        'matchCondition never',
        'MutatingWebhookConfiguration rollout-group',
      ]);
    });
  },
  { zones: ['zone-a'] },
);
