// Causes the accidents of a scenario in pods, nodes, controllers and the webhook, and ends them when the faults of the simulation end.

import { between, type Random, streamOf } from '../random.ts';
import type { ClusterEvent } from '../scenario.ts';
import type { Admission } from './admitted.ts';
import type { DisruptionController } from './budgets.ts';
import type { Kubelets } from './kubelet.ts';
import { terminateNamespace } from './namespace-controller.ts';
import type { Nodes } from './nodes.ts';
import { leadInVersion } from './other-version.ts';
import type { PinWebhook } from './pin-webhook.ts';
import type { StatefulSetController } from './statefulset-controller.ts';
import type { World } from './world.ts';

interface AccidentsOptions extends World {
  readonly namespace: string;
  readonly group: string;
  readonly statefulSets: readonly string[];
  readonly kubelets: Kubelets;
  readonly nodes: Nodes;
  readonly controller: StatefulSetController;
  readonly disruptions: DisruptionController;
  /** Absent if the group needs no webhook on pod creation. */
  readonly webhook?: PinWebhook | undefined;
  /** Absent if the webhooks do not review all requests. */
  readonly admission?: Pick<Admission, 'setDelay'> | undefined;
  readonly report: (what: string) => void;
}

export class Accidents {
  readonly #options: AccidentsOptions;
  readonly #random: Random;
  readonly #endings = new Set<() => void>();
  /** The number of accidents so far, by the setting that they change. Only the end of the latest accident resets the setting. */
  readonly #turns = new Map<string, number>();
  #isHealed = false;

  constructor(options: AccidentsOptions) {
    this.#options = options;
    this.#random = streamOf(options.seed, 'accidents');
  }

  /** Causes the accident. Returns whether it had a target. */
  happen(event: ClusterEvent): boolean {
    const pod = 'ordinal' in event ? `${this.#options.statefulSets[event.zone.charCodeAt(0) - 97] ?? ''}-${event.ordinal}` : '';
    switch (event.kind) {
      case 'terminateNamespace':
        this.#options.report(`the namespace ${this.#options.namespace} is deleted`);
        terminateNamespace(this.#options, this.#options.namespace, this.#random);
        return true;
      case 'otherVersion':
        this.#options.report(`an agent of ${event.version === 'next' ? 'the next major' : `a ${event.version}`} version leads`);
        return this.#lasting(event.forMs, leadInVersion(this.#options, event.version));
      case 'podFails':
        this.#options.report(`${pod} fails for ${seconds(event.forMs)}`);
        return this.#lasting(event.forMs, this.#options.kubelets.fail(this.#options.namespace, pod));
      case 'podFlaps':
        this.#options.report(`${pod} flaps ${event.times} times`);
        return this.#flap(pod, event.times);
      case 'podDies':
        this.#options.report(`${pod} dies`);
        return this.#options.kubelets.die(this.#options.namespace, pod);
      case 'slowKubelet':
        this.#options.report(
          `pods start ${event.startFactor} times slower and drain ${event.drainFactor} times slower for ${seconds(event.forMs)}`,
        );
        this.#options.kubelets.setPace(event.startFactor, event.drainFactor);
        return this.#setting('pace', event.forMs, () => this.#options.kubelets.setPace(1, 1));
      case 'stuckTerminating':
        this.#options.report(`${pod} stays terminating for ${seconds(event.forMs)}`);
        return this.#lasting(event.forMs, this.#options.kubelets.stick(this.#options.namespace, pod));
      case 'nodeLost':
        this.#options.report(`a node of zone ${event.zone} is lost for ${seconds(event.forMs)}`);
        return this.#lasting(event.forMs, this.#options.nodes.lose(event.zone));
      case 'nodeDrained':
        this.#options.report(`${this.#options.nodes.drain(event.zone)} is drained`);
        return true;
      case 'controllerLags':
        this.#options.report(`controllers lag by ${seconds(event.delayMs)} for ${seconds(event.forMs)}`);
        this.#lag(event.delayMs);
        return this.#setting('lag', event.forMs, () => this.#lag(0));
      case 'controllerIsStale':
        this.#options.report(`the StatefulSet controller uses an old cache for ${seconds(event.forMs)}`);
        this.#options.controller.goStale();
        return this.#setting('stale', event.forMs, () => this.#options.controller.goFresh());
      case 'webhookAway':
        if (this.#options.webhook === undefined && this.#options.admission === undefined) return false;
        this.#options.report(`webhooks do not answer for ${seconds(event.forMs)}`);
        this.#options.webhook?.setUnavailable(true);
        this.#options.admission?.setDelay(undefined);
        return this.#setting('webhook', event.forMs, () => this.#restoreWebhooks());
      case 'webhookSlow':
        if (this.#options.admission === undefined) return false;
        this.#options.report(`calls of webhooks take ${seconds(event.delayMs)} longer for ${seconds(event.forMs)}`);
        this.#options.webhook?.setUnavailable(false);
        this.#options.admission.setDelay(event.delayMs);
        return this.#setting('webhook', event.forMs, () => this.#restoreWebhooks());
      default:
        event satisfies never;
        return false;
    }
  }

  heal(): void {
    this.#isHealed = true;
    for (const end of [...this.#endings]) end();
    this.#options.nodes.uncordon();
    this.#options.kubelets.setPace(1, 1);
    this.#lag(0);
    this.#options.controller.goFresh();
    this.#restoreWebhooks();
  }

  #restoreWebhooks(): void {
    this.#options.webhook?.setUnavailable(false);
    this.#options.admission?.setDelay(0);
  }

  #lasting(forMs: number, end: (() => void) | undefined): boolean {
    if (end === undefined) return false;
    const finish = (): void => {
      if (this.#endings.delete(finish)) end();
    };
    this.#endings.add(finish);
    this.#options.scheduler.after(forMs, finish);
    return true;
  }

  #setting(what: string, forMs: number, end: () => void): boolean {
    const turn = (this.#turns.get(what) ?? 0) + 1;
    this.#turns.set(what, turn);
    return this.#lasting(forMs, () => {
      if (this.#turns.get(what) === turn) end();
    });
  }

  #lag(delayMs: number): void {
    this.#options.controller.lag(delayMs);
    this.#options.disruptions.lag(delayMs);
  }

  #flap(pod: string, times: number): boolean {
    if (times <= 0 || this.#isHealed) return false;
    const hasTarget = this.#lasting(between(this.#random, 500, 4000), this.#options.kubelets.fail(this.#options.namespace, pod));
    this.#options.scheduler.after(between(this.#random, 4500, 9000), () => this.#flap(pod, times - 1));
    return hasTarget;
  }
}

function seconds(ms: number): string {
  return `${ms < 10_000 ? ms / 1000 : Math.round(ms / 1000)} s`;
}
