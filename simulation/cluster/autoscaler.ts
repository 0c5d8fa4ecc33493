// Models the writers of replicas: people, and the horizontal pod autoscaler.
import { numberAt } from '../objects.ts';
import type { Actor, Json } from '../server/request.ts';
import { type Client, repeatMs } from './client.ts';
import { keyOf, type ReplicaOrigin } from './replica-origins.ts';
import { statefulSetResource } from './workload.ts';
import type { World } from './world.ts';

interface AutoscalerOptions extends Pick<World, 'server' | 'scheduler'> {
  readonly client: Client;
  readonly namespace: string;
}

export interface Autoscaler {
  /** Writes the number to its origin, and cancels a pending write to the same origin. */
  readonly scale: (origin: ReplicaOrigin, replicas: number, options: Scaling) => void;
  /** Writes pending numbers at once. */
  readonly finish: () => void;
}

interface Scaling {
  readonly who: 'person' | 'machine';
  readonly done?: () => void;
  /** Called after a denied write. */
  readonly denied?: () => void;
  /** Returns whether a denied write is repeated, and a large change completed. A person who scales by hand gives up. */
  readonly isRepeated?: () => boolean;
}

const actors: Readonly<Record<'person' | 'machine', Actor>> = {
  person: { user: 'alice@example.com' },
  machine: { user: 'system:serviceaccount:kube-system:horizontal-pod-autoscaler' },
};

/** The sync period of the autoscaler (kube-controller-manager, --horizontal-pod-autoscaler-sync-period). */
const syncMs = 15_000;

/** Creates a model of the autoscaler. It makes a large change in two periods, half of the change in each. */
export function createAutoscaler({ server, client, scheduler, namespace }: AutoscalerOptions): Autoscaler {
  const pending = new Map<string, { readonly write: () => void; readonly cancel: () => void }>();

  const scale: Autoscaler['scale'] = (origin, replicas, { who, done = () => undefined, denied: giveUp, isRepeated = () => false }) => {
    const key = keyOf(origin);
    pending.get(key)?.cancel();
    pending.delete(key);
    const write = (count: number): void => {
      const reference = { resource: origin.resource, namespace, name: origin.name };
      const denied = (): void => {
        giveUp?.();
        if (count === replicas && isRepeated()) scheduler.after(repeatMs, () => isRepeated() && write(count));
      };
      if (origin.path[0] === 'status') server.change(actors[who], reference, nested(origin.path, count), 'status');
      else if (origin.resource === statefulSetResource) client.scale(actors[who], reference, count, { done, denied });
      else client.change(actors[who], reference, () => nested(origin.path, count), { denied });
    };
    const from = numberAt(server.get(origin.resource, namespace, origin.name), ...origin.path);
    if (who === 'person' || from === undefined || Math.abs(replicas - from) < 2) {
      write(replicas);
      return;
    }
    write(Math.round((from + replicas) / 2));
    const writeRest = (): void => {
      if (isRepeated()) write(replicas);
    };
    const cancel = scheduler.after(syncMs, () => {
      pending.delete(key);
      writeRest();
    });
    pending.set(key, { write: writeRest, cancel });
  };
  return {
    scale,
    finish: () => {
      for (const { write, cancel } of pending.values()) {
        cancel();
        write();
      }
      pending.clear();
    },
  };
}

function nested(path: readonly string[], value: number): Json {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Json;
}
