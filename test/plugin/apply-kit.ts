// Serves our kinds, and runs the executable, for the suites of apply.
import { customResourceDefinition } from '../../policies/schema/json-schema.ts';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import type { Person } from './live-people.ts';
import { pathOf } from './manifest-pairs.ts';
import { runPlugin } from './process.ts';

export async function serveKinds(controlPlane: ControlPlane, namespace: string): Promise<void> {
  for (const kind of ['RolloutGroup', 'RolloutPolicy', 'RolloutIntent'] as const) {
    await controlPlane.client.ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', customResourceDefinition(kind));
    await untilServed(controlPlane, pathOf({ kind, metadata: { namespace } }));
  }
}

/** Runs the executable as this person. */
export function bundleOf({ identity }: Person, cwd: string): (line: string) => ReturnType<typeof runPlugin> {
  return (line) => runPlugin(line.split(' '), { cwd, env: { KUBECONFIG: identity.kubeconfig } });
}

export async function untilServed({ client }: ControlPlane, path: string): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    if ((await client.ask('GET', path)).status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${path} is not served after 10 s`);
}
