// Narrows our webhook configurations to the objects that are protected now, so that an outage of the webhook blocks no other object.
import { isSameJson } from '../../cluster/request/json.ts';
import { patchByOperations } from '../../cluster/request/write.ts';
import { departureMs } from '../../engine/judge/protection.ts';
import { membersNamed, narrowed } from '../../install/narrowing.ts';
import { type Member, memberKey } from '../../install/scope.ts';
import { configurationName, pinConfigurationName } from '../../install/webhooks.ts';
import { isOvertaken, PatchPace, patchProblem } from '../certificates/patch-pace.ts';
import {
  type ConfigurationKind,
  configurationResources,
  type WebhookConfiguration,
  type WebhookConfigurations,
} from '../certificates/webhook-configurations.ts';
import type { WebhookEnv } from '../env.ts';

interface NarrowingOptions {
  readonly env: Pick<WebhookEnv, 'clock' | 'timers' | 'random' | 'kubernetes' | 'log'>;
  readonly namespace: string;
  readonly configurations: Pick<WebhookConfigurations, 'list' | 'isSynced' | 'onChange'>;
  /** Returns every protected StatefulSet; undefined while unknown. */
  readonly members: () => readonly Member[] | undefined;
  /** Returns every StatefulSet of a group with the strategy `pinned`; undefined while unknown. */
  readonly pinned: () => readonly Member[] | undefined;
}

interface Narrowing {
  /** Returns why a configuration could not be narrowed; undefined without a problem. */
  readonly problem: () => string | undefined;
  readonly stop: () => void;
}

/** Interval of the check: new members must be added soon. */
const checkMs = 2_000;
const requestTimeoutMs = 10_000;
/**
 * The number of writes in a row that no delay follows, because many groups may be created in a short time. After further writes the delays
 * grow, because another tool may remove the match conditions repeatedly.
 */
const freePatches = 20;

/**
 * Starts at once. Never throws; retries failures without limit. Each check adds new members and keeps former members for `departureMs`,
 * because their protection stays in force for that time. A check changes no configuration while the members are unknown.
 */
export function startNarrowing(options: NarrowingOptions): Narrowing {
  const { namespace, members, pinned } = options;
  const narrowers = [
    new Narrower(options, { kind: 'ValidatingWebhook', name: configurationName({ namespace }), members }),
    new Narrower(options, { kind: 'MutatingWebhook', name: pinConfigurationName({ namespace }), members: pinned }),
  ];
  const check = (): void => narrowers.forEach((narrower) => void narrower.check());
  const stopListening = options.configurations.onChange(check);
  check();
  return {
    problem: () => narrowers.find(({ problem }) => problem !== undefined)?.problem,
    stop: () => {
      stopListening();
      for (const narrower of narrowers) narrower.stop();
    },
  };
}

/** One of our configurations and the members to which it is narrowed. */
interface Narrowed {
  readonly kind: ConfigurationKind;
  readonly name: string;
  readonly members: () => readonly Member[] | undefined;
}

class Narrower {
  readonly #options: NarrowingOptions;
  readonly #target: Narrowed;
  readonly #pace: PatchPace;
  /** The monotonic time of the first check that did not find a former member, by `namespace/name`. */
  readonly #goneMs = new Map<string, number>();
  #isWriting = false;
  #isStopped = false;
  #cancel: () => void = () => undefined;
  problem: string | undefined;

  constructor(options: NarrowingOptions, target: Narrowed) {
    this.#options = options;
    this.#target = target;
    this.#pace = new PatchPace(options.env.random, freePatches);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  check(): void {
    if (this.#isStopped) return;
    this.#cancel();
    this.#cancel = this.#options.env.timers.after(checkMs, () => this.check());
    const { configurations, env } = this.#options;
    const { kind, name } = this.#target;
    const stored = configurations.list().find((one) => one.kind === kind && one.name === name);
    const members = this.#target.members();
    if (stored === undefined || members === undefined || !configurations.isSynced()) return;
    const wanted = narrowed(stored.webhooks, this.#kept(stored, members));
    if (isSameJson(wanted, stored.webhooks)) {
      this.problem = undefined;
      return;
    }
    if (this.#isWriting || env.clock.monotonicMs() < this.#pace.dueMs || this.#pace.isPatched(stored.resourceVersion)) return;
    this.#isWriting = true;
    void this.#write(stored, wanted).finally(() => {
      this.#isWriting = false;
    });
  }

  /** Returns the members, and former members that the configuration still needs. */
  #kept({ webhooks }: WebhookConfiguration, members: readonly Member[]): readonly Member[] {
    const nowMs = this.#options.env.clock.monotonicMs();
    const now = new Map(members.map((member) => [memberKey(member), member]));
    const named = new Map(membersNamed(webhooks).map((member) => [memberKey(member), member]));
    for (const key of this.#goneMs.keys()) if (now.has(key) || !named.has(key)) this.#goneMs.delete(key);
    for (const [key, member] of named) {
      if (now.has(key)) continue;
      const goneMs = this.#goneMs.get(key) ?? nowMs;
      this.#goneMs.set(key, goneMs);
      if (nowMs - goneMs < departureMs) now.set(key, member);
    }
    return [...now.values()];
  }

  async #write(stored: WebhookConfiguration, wanted: readonly object[]): Promise<void> {
    const { env } = this.#options;
    const { name, uid, resourceVersion } = stored;
    const operations = [
      { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
      { op: 'replace', path: '/webhooks', value: wanted },
    ] as const;
    const nowMs = env.clock.monotonicMs();
    const resource = configurationResources[this.#target.kind];
    try {
      await patchByOperations(env, resource, { name, uid }, { operations, timeoutMs: requestTimeoutMs, site: 'registration.narrow' });
    } catch (error) {
      this.#pace.failed(error, nowMs);
      if (isOvertaken(error) && this.problem === undefined) return;
      const reason = patchProblem(error, resource);
      const problem = `${name} cannot be narrowed to protected objects, so an outage of the webhook may block other requests: ${reason}`;
      if (this.problem !== problem) env.log.warn('a webhook configuration cannot be narrowed', { name, problem: reason });
      this.problem = problem;
      return;
    }
    this.problem = undefined;
    this.#pace.succeeded(resourceVersion, nowMs);
    env.log.info('narrowed a webhook configuration to protected objects', { name });
  }
}
