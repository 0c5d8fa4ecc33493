// Registers a webhook that denies every decrease of the replicas of one StatefulSet, as `prepare-downscale` of grafana/rollout-operator does.
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { ControlPlane } from './control-plane.ts';
import type { StatefulSet } from './workloads.ts';

interface Review {
  readonly request: { readonly uid: string; readonly object: StatefulSet; readonly oldObject: StatefulSet };
}

export interface DenyingHook {
  /** The number of denials so far. */
  readonly denials: () => number;
  readonly stop: () => Promise<void>;
}

/** `code` is the status code of the denial; `failed` answers no review, so that the API server cannot call the webhook. */
export async function startDenyingHook(
  { client, authority }: ControlPlane,
  { namespace, statefulSet, code }: { readonly namespace: string; readonly statefulSet: string; readonly code: number | 'failed' },
): Promise<DenyingHook> {
  const { certificate, privateKey } = authority.issueForServer();
  let denials = 0;
  const server = createServer({ cert: certificate, key: privateKey }, (request, response) => {
    const answer = async (): Promise<void> => {
      const { uid, object, oldObject } = ((await json(request)) as Review).request;
      const allowed = object.metadata.name !== statefulSet || object.spec.replicas >= oldObject.spec.replicas;
      if (!allowed) denials += 1;
      if (!allowed && code === 'failed') response.writeHead(500).end();
      const status = allowed || code === 'failed' ? {} : { status: { code, message: 'zone a shrank 5m ago' } };
      const body = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed, ...status } };
      if (!response.writableEnded) response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    };
    answer().catch(() => response.destroy());
  });
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const { port } = server.address() as AddressInfo;
  const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
  await client.create(configurations, {
    metadata: { name: `deny-${namespace}` },
    webhooks: [
      {
        name: 'deny.test.rollout-group.dev',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        clientConfig: { url: `https://127.0.0.1:${port}/`, caBundle: Buffer.from(authority.certificate).toString('base64') },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        rules: [{ apiGroups: ['apps'], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['statefulsets'] }],
      },
    ],
  });
  return {
    denials: () => denials,
    stop: async () => {
      await client.delete(`${configurations}/deny-${namespace}`);
      const closed = new Promise((settle) => server.close(settle));
      server.closeAllConnections();
      await closed;
    },
  };
}
