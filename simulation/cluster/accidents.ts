// Injects accidents of pods, nodes, controllers and the webhook, each for a time, and ends all of them when the group is to heal.
import { between, type Random, streamOf } from '../random.ts';
import type { ClusterEvent } from '../scenario.ts';
import type { Scheduler } from '../scheduler.ts';
import type { DisruptionController } from './budgets.ts';
import type { Kubelets } from './kubelet.ts';
import type { Nodes } from './nodes.ts';
import type { PinWebhook } from './pin-webhook.ts';
import type { StatefulSetController } from './statefulset-controller.ts';

interface AccidentsOptions {
  readonly scheduler: Scheduler;
  readonly seed: number;
  readonly namespace: string;
  /** One per zone, in order. */
  readonly statefulSets: readonly string[];
  readonly kubelets: Kubelets;
  readonly nodes: Nodes;
  readonly controller: StatefulSetController;
  readonly disruptions: DisruptionController;
  /** Absent: the group needs none. */
  readonly webhook?: PinWebhook | undefined;
  readonly told: (what: string) => void;
}

interface Accidents {
  /** Returns whether the accident had a target. */
  readonly happen: (event: ClusterEvent) => boolean;
  /** Ends every open accident and cancels what would follow. */
  readonly heal: () => void;
}

export function createAccidents(options: AccidentsOptions): Accidents {
  const { scheduler, seed, namespace, statefulSets, kubelets, nodes, controller, disruptions, webhook, told } = options;
  const random: Random = streamOf(seed, 'accidents');
  /** Ends of accidents that are not over. */
  const endings = new Set<() => void>();
  /** Accidents that set a value: the last one decides when it ends. */
  const turns = new Map<string, number>();
  let isHealed = false;

  const podName = (zone: string, ordinal: number): string => `${statefulSets[zone.charCodeAt(0) - 97] ?? ''}-${ordinal}`;
  const lasting = (forMs: number, end: (() => void) | undefined): boolean => {
    if (end === undefined) return false;
    const finish = (): void => {
      if (endings.delete(finish)) end();
    };
    endings.add(finish);
    scheduler.after(forMs, finish);
    return true;
  };
  const setting = (what: string, forMs: number, end: () => void): boolean => {
    const turn = (turns.get(what) ?? 0) + 1;
    turns.set(what, turn);
    return lasting(forMs, () => {
      if (turns.get(what) === turn) end();
    });
  };
  const lag = (delayMs: number): void => {
    controller.lag(delayMs);
    disruptions.lag(delayMs);
  };
  const flap = (pod: string, times: number): boolean => {
    if (times <= 0 || isHealed) return false;
    const isThere = lasting(between(random, 500, 4000), kubelets.fail(namespace, pod));
    scheduler.after(between(random, 4500, 9000), () => flap(pod, times - 1));
    return isThere;
  };

  const happen = (event: ClusterEvent): boolean => {
    switch (event.kind) {
      case 'podFails': {
        const pod = podName(event.zone, event.ordinal);
        told(`${pod} fails for ${seconds(event.forMs)}`);
        return lasting(event.forMs, kubelets.fail(namespace, pod));
      }
      case 'podFlaps': {
        const pod = podName(event.zone, event.ordinal);
        told(`${pod} flaps ${event.times} times`);
        return flap(pod, event.times);
      }
      case 'podDies': {
        const pod = podName(event.zone, event.ordinal);
        told(`${pod} dies`);
        return kubelets.die(namespace, pod);
      }
      case 'slowKubelet':
        told(`kubelets start pods ${event.startFactor} times and drain them ${event.drainFactor} times slower for ${seconds(event.forMs)}`);
        kubelets.setPace(event.startFactor, event.drainFactor);
        return setting('pace', event.forMs, () => kubelets.setPace(1, 1));
      case 'stuckTerminating': {
        const pod = podName(event.zone, event.ordinal);
        told(`${pod} stays terminating for ${seconds(event.forMs)}`);
        return lasting(event.forMs, kubelets.stick(namespace, pod));
      }
      case 'nodeLost':
        told(`a node of zone ${event.zone} is lost for ${seconds(event.forMs)}`);
        return lasting(event.forMs, nodes.lose(event.zone));
      case 'nodeDrained':
        told(`${nodes.drain(event.zone)} is drained`);
        return true;
      case 'controllerLags':
        told(`controllers lag by ${seconds(event.delayMs)} for ${seconds(event.forMs)}`);
        lag(event.delayMs);
        return setting('lag', event.forMs, () => lag(0));
      case 'controllerIsStale':
        told(`the StatefulSet controller uses an old cache for ${seconds(event.forMs)}`);
        controller.goStale();
        return setting('stale', event.forMs, () => controller.goFresh());
      case 'webhookAway':
        if (webhook === undefined) return false;
        told(`the webhook on pod creation does not answer for ${seconds(event.forMs)}`);
        webhook.setAway(true);
        return setting('webhook', event.forMs, () => webhook.setAway(false));
      default:
        event satisfies never;
        return false;
    }
  };
  return {
    happen,
    heal: () => {
      isHealed = true;
      for (const end of [...endings]) end();
      nodes.uncordon();
      kubelets.setPace(1, 1);
      lag(0);
      controller.goFresh();
      webhook?.setAway(false);
    },
  };
}

function seconds(ms: number): string {
  return `${ms < 10_000 ? ms / 1000 : Math.round(ms / 1000)} s`;
}
