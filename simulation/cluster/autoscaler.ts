// Writes replica counts: a person at once, a HorizontalPodAutoscaler in steps.
import type { Actor, Json } from '../server/request.ts';
import { numberAt, type ReplicaOrigin } from './replica-origins.ts';
import type { World } from './world.ts';

interface AutoscalerOptions extends Pick<World, 'server' | 'scheduler'> {
  readonly namespace: string;
}

export interface Autoscaler {
  /** Writes the number to its source, and replaces every earlier request. */
  readonly scale: (origin: ReplicaOrigin, replicas: number, who: 'person' | 'machine') => void;
  /** Writes pending numbers at once. */
  readonly finish: () => void;
}

const actors: Readonly<Record<'person' | 'machine', Actor>> = {
  person: { user: 'alice@example.com' },
  machine: { user: 'system:serviceaccount:kube-system:horizontal-pod-autoscaler' },
};

/** Sync period of the autoscaler (kube-controller-manager, --horizontal-pod-autoscaler-sync-period). */
const syncMs = 15_000;

/** A large change takes the autoscaler two periods: half of the way first. */
export function createAutoscaler({ server, scheduler, namespace }: AutoscalerOptions): Autoscaler {
  const underWay = new Map<string, { readonly write: () => void; readonly cancel: () => void }>();

  const scale: Autoscaler['scale'] = (origin, replicas, who) => {
    const key = `${origin.resource} ${origin.name}`;
    underWay.get(key)?.cancel();
    underWay.delete(key);
    const write = (count: number): void => {
      const isStatus = origin.path[0] === 'status';
      server.change(actors[who], origin.resource, namespace, origin.name, nested(origin.path, count), isStatus ? 'status' : undefined);
    };
    const from = numberAt(server.get(origin.resource, namespace, origin.name), origin.path);
    if (who === 'person' || from === undefined || Math.abs(replicas - from) < 2) {
      write(replicas);
      return;
    }
    write(Math.round((from + replicas) / 2));
    const cancel = scheduler.after(syncMs, () => {
      underWay.delete(key);
      write(replicas);
    });
    underWay.set(key, { write: () => write(replicas), cancel });
  };
  return {
    scale,
    finish: () => {
      for (const { write, cancel } of underWay.values()) {
        cancel();
        write();
      }
      underWay.clear();
    },
  };
}

function nested(path: readonly string[], value: number): Json {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Json;
}
