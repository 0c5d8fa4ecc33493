// Server-side apply: the model and a real API server answer the same sequences alike, and agree on the owners of fields.
import { beforeAll, expect, it } from 'vitest';
import type { ApiClient, KubernetesObject } from '../../control-plane/client.ts';
import { describeOnControlPlane } from '../../control-plane/suite.ts';
import { type ApplyTarget, created, modelOfApplies, played, sequences } from './applies.ts';

describeOnControlPlane(
  'the model of server-side apply',
  (controlPlane) => {
    let client: ApiClient;
    beforeAll(() => {
      client = controlPlane().client;
    });

    const real = async (namespace: string): Promise<ApplyTarget> => {
      await client.create('/api/v1/namespaces', { metadata: { name: namespace } });
      const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
      // The owner of the fields before the first apply, as the model names it.
      await client.create(`${sets}?fieldManager=before-first-apply`, created);
      return {
        take: async (step) => {
          const [manager, type, body] =
            'patch' in step
              ? ([step.manager, 'application/merge-patch+json', step.patch] as const)
              : ([step.manager, 'application/apply-patch+yaml', step.apply] as const);
          const force = 'patch' in step ? '' : `&force=${step.isForced}`;
          const { status } = await client.ask('PATCH', `${sets}/s?fieldManager=${manager}${force}`, body, type);
          return status;
        },
        read: async () => ({ ...(await client.get<KubernetesObject>(`${sets}/s`)) }),
      };
    };

    it.each(Object.entries(sequences).map(([what, steps], index) => [what, steps, `applies-${index}`] as const))(
      'answers %s',
      async (_what, steps, namespace) => {
        expect(await played(await real(namespace), steps)).toEqual(await played(modelOfApplies(), steps));
      },
    );
  },
  { zones: ['zone-a'] },
);
