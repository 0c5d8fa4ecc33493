// Replaces one part of the admission webhook of grafana/rollout-operator: it writes the time of each downscale to the StatefulSet.
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { ControlPlane } from './control-plane.ts';
import type { StatefulSet } from './workloads.ts';

interface Review {
  readonly request: { readonly uid: string; readonly object: StatefulSet; readonly oldObject: StatefulSet };
}

const annotation = 'grafana.com/last-downscale';

/** Serves and registers the hook. Returns a function that ends it. The hook sees writes of StatefulSets, not of `/scale`. */
export async function startLastDownscaleHook({ client, authority }: ControlPlane): Promise<() => Promise<void>> {
  const { certificate, privateKey } = authority.issueForServer();
  const server = createServer({ cert: certificate, key: privateKey }, (request, response) => {
    answer(json(request) as Promise<Review>).then(
      (body) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body)),
      () => response.destroy(),
    );
  });
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const { port } = server.address() as AddressInfo;
  await client.create('/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', {
    metadata: { name: 'last-downscale' },
    webhooks: [
      {
        name: 'last-downscale.test.rollout-group.dev',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        clientConfig: { url: `https://127.0.0.1:${port}/`, caBundle: Buffer.from(authority.certificate).toString('base64') },
        rules: [{ apiGroups: ['apps'], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['statefulsets'] }],
      },
    ],
  });
  return async () => {
    await client.delete('/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/last-downscale');
    const closed = new Promise((settle) => server.close(settle));
    server.closeAllConnections();
    await closed;
  };
}

async function answer(received: Promise<Review>): Promise<object> {
  const { uid, object, oldObject } = (await received).request;
  const isFewer = object.spec.replicas < oldObject.spec.replicas;
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  // The patch has no test operation: the server applies it to the object that it sent.
  const patch = [{ op: 'add', path: '/metadata/annotations', value: { ...object.metadata.annotations, [annotation]: now } }];
  const change = isFewer ? { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') } : {};
  return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid, allowed: true, ...change } };
}
