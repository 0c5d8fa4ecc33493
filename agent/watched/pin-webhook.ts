// Watches the configuration of the webhook that gives pods their pinned revision. Without this webhook an eviction updates no pod.
import { resources } from '../../cluster/request/resource.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import { coverageProblem, type StoredConfiguration, storedConfiguration, trustProblem } from '../../install/registered.ts';
import { membersOf } from '../../install/scope.ts';
import { pinConfigurationName } from '../../install/webhooks.ts';
import type { GroupDefinition } from '../../policies/definition.ts';
import { traitsOf } from '../../policies/strategies.ts';
import { defined } from '../../policies/values/defined.ts';
import type { AgentConfig } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { Degradation } from '../report.ts';
import { Watched } from './watched.ts';

/** If the watch ends and the list is older than this, a new list follows. Events are rare: no later event would replace a lost one. */
const relistMs = 300_000;

export class PinWebhook {
  readonly #env: AgentEnv;
  readonly #name: string;
  readonly #onChange: (pinned: readonly GroupDefinition[]) => void;
  #watched: Watched<StoredConfiguration> | undefined;
  #pinned: readonly GroupDefinition[] = [];

  /** `onChange` receives the groups with pinned pods after each change of the configuration, and of its readability. */
  constructor(
    env: AgentEnv,
    { agentNamespace }: Pick<AgentConfig, 'agentNamespace'>,
    onChange: (pinned: readonly GroupDefinition[]) => void,
  ) {
    this.#env = env;
    this.#name = pinConfigurationName({ namespace: agentNamespace });
    this.#onChange = onChange;
  }

  /** Starts the watch with the first group that pins pods. Other agents need neither the watch nor a permission for it. */
  follow(groups: readonly GroupDefinition[]): void {
    this.#pinned = groups.filter((group) => traitsOf(group).pinsPods);
    if (this.#pinned.length === 0) return;
    const resource = resources.mutatingWebhookConfigurations;
    const onChange = (): void => this.#onChange(this.#pinned);
    this.#watched ??= new Watched({
      env: this.#env,
      resource,
      namespaces: undefined,
      fieldSelector: `metadata.name=${this.#name}`,
      project: (object) => storedConfiguration(resource.kind, object),
      onChange,
      onState: onChange,
      withoutIt: 'no pod of a group with the strategy pinned is replaced',
      relistMs,
      outlivesContact: true,
    });
  }

  /** Returns why new pods of these groups do not get their pinned revision; an empty object if no group pins pods. */
  problems(groups: readonly GroupDefinition[]): Pick<Snapshot, 'webhookProblems'> {
    const pinned = groups.filter((group) => traitsOf(group).pinsPods);
    if (pinned.length === 0) return {};
    const problem = this.#watched?.problem();
    if (this.#watched === undefined || problem !== undefined)
      return { webhookProblems: { pins: problem ?? { unknown: 'it has not been read yet' } } };
    const [stored] = this.#watched.list();
    if (stored === undefined)
      return { webhookProblems: { pins: `${resources.mutatingWebhookConfigurations.kind} ${this.#name} does not exist` } };
    return { webhookProblems: defined({ pins: trustProblem(stored), coverage: coverageProblem(stored, membersOf(pinned)) }) };
  }

  degradation(): Degradation | undefined {
    return this.#watched?.degradation();
  }

  stop(): void {
    this.#watched?.stop();
  }
}
