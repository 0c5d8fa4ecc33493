// The webhook that stamps and checks our kinds, as an installation registers it, answered by the process of a test.
import { processClock } from '../../cluster/connection/process-env.ts';
import { installation } from '../../install/installation.ts';
import { endpointPaths } from '../../install/object.ts';
import { stampEndpoint } from '../../webhook/native/stamp-endpoint.ts';
import { validateEndpoint } from '../../webhook/native/validate-endpoint.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { optionsOf, webhooksIn } from '../install/given.ts';
import { virtualEnv } from '../kit/virtual-env.ts';
import { changingSource, serve } from '../webhook/server/served.ts';

/** What the process of the test answers; every other webhook would refuse, since nobody serves it. */
const served: readonly string[] = [endpointPaths.stamp, endpointPaths.validate];

/** Registers both endpoints, and waits until an intent of the namespace is stamped. The kinds are there already. */
export async function installStamping({ client, authority }: ControlPlane, namespace: string): Promise<void> {
  const { certificate, privateKey } = authority.issueForServer();
  // No object of these tests names a Secret.
  const env = { clock: processClock, kubernetes: virtualEnv().kubernetes };
  const endpoints = [
    stampEndpoint(env),
    validateEndpoint(env, { agentNamespace: 'rollout-group', groups: () => ({ unknown: 'not read' }) }),
  ];
  const { port } = await serve({ endpoints, tls: changingSource({ cert: certificate, key: privateKey }) });
  const objects = installation(optionsOf());
  for (const kind of ['Mutating', 'Validating']) {
    const name = `${kind}WebhookConfiguration`;
    const webhooks = webhooksIn(objects.filter((one) => one.kind === name))
      .filter(({ clientConfig }) => served.includes(clientConfig.service.path))
      .map((one) => ({
        ...one,
        failurePolicy: 'Fail',
        clientConfig: {
          url: `https://127.0.0.1:${port}${one.clientConfig.service.path}`,
          caBundle: Buffer.from(authority.certificate).toString('base64'),
        },
      }));
    await client.create(`/apis/admissionregistration.k8s.io/v1/${name.toLowerCase()}s`, { metadata: { name: 'rollout-group' }, webhooks });
  }
  const path = `/apis/rollout-group.dev/v1alpha1/namespaces/${namespace}/rolloutintents?dryRun=All`;
  const probe = {
    apiVersion: 'rollout-group.dev/v1alpha1',
    kind: 'RolloutIntent',
    metadata: { name: 'probe' },
    spec: { group: 'x', action: 'pause' },
  };
  for (let attempt = 0; attempt < 400; attempt += 1) {
    const { body } = await client.ask<{ readonly spec?: { readonly requestedBy?: unknown } }>('POST', path, probe);
    if (body.spec?.requestedBy !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('no intent is stamped after 20 s');
}
