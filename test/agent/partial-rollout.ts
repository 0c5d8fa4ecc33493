// Which version each pod of a namespace runs in the middle of a rollout, and whether it comes back at that when it is killed.
import { expect, vi } from 'vitest';
import type { InProcessAgent } from '../control-plane/agent-in-process.ts';
import type { ApiClient, KubernetesObject } from '../control-plane/client.ts';
import { isReady, type Pod, revisionOf, type StatefulSet } from '../control-plane/workloads.ts';

/** What the agent sets where no pod is the controller's to replace. */
export const holding = 1_000_000;
/** Time for somebody to do what they should not: several times what a turn needs. */
export const temptationMs = 1500;

interface Revision extends KubernetesObject {
  readonly data: {
    readonly spec: { readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } } };
  };
}
type PodWithImage = Pod & { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
export type RollingSet = StatefulSet & {
  readonly spec: { readonly updateStrategy: { readonly rollingUpdate?: { readonly partition?: number } } };
};

const podsIn = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;

/** Each pod with the tag of its image, sorted, as `a-0 1`; or with what disagrees, where its label names a revision of another image. */
export async function versions(client: ApiClient, namespace: string): Promise<readonly string[]> {
  const revisions = await client.list<Revision>(`/apis/apps/v1/namespaces/${namespace}/controllerrevisions`);
  const pods = await client.list<PodWithImage>(podsIn(namespace));
  return pods
    .map((pod) => {
      const image = pod.spec.containers[0]?.image ?? '';
      const template = revisions.find(({ metadata }) => metadata.name === revisionOf(pod))?.data.spec.template.spec.containers[0]?.image;
      const name = pod.metadata.name.replace(/^.*-zone-/, '');
      return image === template ? `${name} ${image.split(':')[1]}` : `${name} ${image} but its label says ${template}`;
    })
    .sort();
}

/** As `versions`, of a zone: all ordinals below `first` at the old version, those from there on at the new one. */
export function split(zone: string, count: number, first: number, [before, after] = ['1', '2']): readonly string[] {
  return Array.from({ length: count }, (_, ordinal) => `${zone}-${ordinal} ${ordinal < first ? before : after}`);
}

/** Deletes every pod at once, as no rule would allow, and waits until as many are Ready again. */
export async function killAll(client: ApiClient, namespace: string): Promise<void> {
  const path = podsIn(namespace);
  const before = await client.list<Pod>(path);
  await Promise.all(before.map(({ metadata }) => client.ask('DELETE', `${path}/${metadata.name}`)));
  const gone = new Set(before.map(({ metadata }) => metadata.uid));
  await client.until<Pod>(
    path,
    'every pod replaced and Ready',
    (pods) => pods.length === before.length && pods.every((pod) => isReady(pod) && !gone.has(pod.metadata.uid)),
    60_000,
  );
}

/** Kills every pod twice, and expects these versions each time. */
export async function expectKilledTwice(client: ApiClient, namespace: string, expected: readonly string[]): Promise<void> {
  for (const round of [1, 2]) {
    await killAll(client, namespace);
    expect([round, ...(await versions(client, namespace))]).toEqual([round, ...expected]);
  }
}

/** Waits until the wave of this index, from 0, has all its pods. */
export async function untilWave(agent: InProcessAgent, index: number): Promise<void> {
  await vi.waitFor(
    () => {
      const run = agent.turns().at(-1)?.decision?.run;
      expect([run?.wave, run?.waveAvailableMs !== undefined]).toEqual([index, true]);
    },
    { timeout: 120_000, interval: 50 },
  );
}
