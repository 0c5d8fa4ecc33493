// What goes wrong with pods, nodes and controllers, for how long, and how all of it ends at once when the group is to heal.
import { between, type Random, streamOf } from '../random.ts';
import type { ClusterEvent } from '../scenario.ts';
import type { Scheduler } from '../scheduler.ts';
import type { DisruptionController } from './budgets.ts';
import type { Kubelets } from './kubelet.ts';
import type { Nodes } from './nodes.ts';
import type { StatefulSetController } from './statefulset-controller.ts';

export interface AccidentsOptions {
  readonly scheduler: Scheduler;
  readonly seed: number;
  readonly namespace: string;
  /** In the order of the zones. */
  readonly statefulSets: readonly string[];
  readonly kubelets: Kubelets;
  readonly nodes: Nodes;
  readonly controller: StatefulSetController;
  readonly disruptions: DisruptionController;
  readonly told: (what: string) => void;
}

export interface Accidents {
  readonly happen: (event: ClusterEvent) => void;
  /** Everything that is still wrong ends now, and nothing follows from what has happened. */
  readonly heal: () => void;
}

export function createAccidents(options: AccidentsOptions): Accidents {
  const { scheduler, seed, namespace, statefulSets, kubelets, nodes, controller, disruptions, told } = options;
  const random: Random = streamOf(seed, 'accidents');
  /** What ends it, of each accident that is not over. */
  const endings = new Set<() => void>();
  /** Of accidents that set something: the last one decides when it is over. */
  const turns = new Map<string, number>();
  let isHealed = false;

  const podName = (zone: string, ordinal: number): string => `${statefulSets[zone.charCodeAt(0) - 97] ?? ''}-${ordinal}`;
  const lasting = (forMs: number, end: (() => void) | undefined): void => {
    if (end === undefined) return;
    const finish = (): void => {
      if (endings.delete(finish)) end();
    };
    endings.add(finish);
    scheduler.after(forMs, finish);
  };
  const setting = (what: string, forMs: number, end: () => void): void => {
    const turn = (turns.get(what) ?? 0) + 1;
    turns.set(what, turn);
    lasting(forMs, () => {
      if (turns.get(what) === turn) end();
    });
  };
  const lag = (delayMs: number): void => {
    controller.lag(delayMs);
    disruptions.lag(delayMs);
  };
  const flap = (pod: string, times: number): void => {
    if (times <= 0 || isHealed) return;
    lasting(between(random, 500, 4000), kubelets.fail(namespace, pod));
    scheduler.after(between(random, 4500, 9000), () => flap(pod, times - 1));
  };

  const happen = (event: ClusterEvent): void => {
    switch (event.kind) {
      case 'podFails': {
        const pod = podName(event.zone, event.ordinal);
        told(`${pod} fails for ${seconds(event.forMs)}`);
        lasting(event.forMs, kubelets.fail(namespace, pod));
        return;
      }
      case 'podFlaps': {
        const pod = podName(event.zone, event.ordinal);
        told(`${pod} flaps ${event.times} times`);
        flap(pod, event.times);
        return;
      }
      case 'podDies': {
        const pod = podName(event.zone, event.ordinal);
        told(`${pod} dies`);
        kubelets.die(namespace, pod);
        return;
      }
      case 'slowKubelet':
        told(`kubelets start ${event.startFactor} and drain ${event.drainFactor} times as slowly for ${seconds(event.forMs)}`);
        kubelets.setPace(event.startFactor, event.drainFactor);
        setting('pace', event.forMs, () => kubelets.setPace(1, 1));
        return;
      case 'stuckTerminating': {
        const pod = podName(event.zone, event.ordinal);
        told(`${pod} does not end for ${seconds(event.forMs)}`);
        lasting(event.forMs, kubelets.stick(namespace, pod));
        return;
      }
      case 'nodeLost':
        told(`a node of zone ${event.zone} is lost for ${seconds(event.forMs)}`);
        lasting(event.forMs, nodes.lose(event.zone));
        return;
      case 'nodeDrained':
        told(`${nodes.drain(event.zone)} is drained`);
        return;
      case 'controllerLags':
        told(`controllers lag by ${seconds(event.delayMs)} for ${seconds(event.forMs)}`);
        lag(event.delayMs);
        setting('lag', event.forMs, () => lag(0));
        return;
      case 'controllerIsStale':
        told(`the StatefulSet controller works with the past for ${seconds(event.forMs)}`);
        controller.goStale();
        setting('stale', event.forMs, () => controller.goFresh());
        return;
      default:
        event satisfies never;
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
    },
  };
}

function seconds(ms: number): string {
  return `${ms < 10_000 ? ms / 1000 : Math.round(ms / 1000)} s`;
}
