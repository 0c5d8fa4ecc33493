// Models the policies of a group in Git: a GitOps tool writes them as objects, or into the policy directory of the agents.
import type { PolicyDirectory } from '../../../agent/env.ts';
import { repeatMs } from '../../../simulation/cluster/client.ts';
import type { PoliciesInGit, PoliciesOptions } from '../../../simulation/cluster/world.ts';
import { policyResource } from '../../../simulation/objects.ts';
import type { EventFields, PolicyState } from '../../../simulation/scenario.ts';
import { isSame } from '../../../simulation/server/json.ts';
import type { Json, ModelObject } from '../../../simulation/server/request.ts';
import { policyFiles, policyObjects, withError } from './group-objects.ts';

/** The windows and rules of a group, with the changes that its people make. */
export class Policies implements PoliciesInGit {
  readonly #options: PoliciesOptions;
  readonly #listeners = new Set<() => void>();
  #state: PolicyState = 'whole';
  /** The number of changes. Only the end of the latest change restores the policies. */
  #turn = 0;

  constructor(options: PoliciesOptions) {
    this.#options = options;
  }

  /** The directory of the agents; undefined if the policies are objects. */
  get directory(): PolicyDirectory | undefined {
    if (this.#options.shape.hasPolicyDirectory !== true) return undefined;
    return {
      read: async () => policyFiles(this.#options.shape, this.#state),
      watch: (onChange) => {
        this.#listeners.add(onChange);
        return () => this.#listeners.delete(onChange);
      },
    };
  }

  /** Changes the policies for a time. Returns false without policies, or if only a directory can have the state. */
  change({ to, forMs }: EventFields<'setPolicies'>): boolean {
    const { shape, report, scheduler } = this.#options;
    const isOfDirectory = to === 'truncated' || to === 'unreadable';
    if ((shape.windows ?? shape.rules) === undefined || (isOfDirectory && shape.hasPolicyDirectory !== true)) return false;
    report(`the policies are ${to} for ${Math.round(forMs / 1000)} s`);
    this.#turn += 1;
    const turn = this.#turn;
    this.#set(to);
    scheduler.after(forMs, () => {
      if (this.#turn === turn) this.restore();
    });
    return true;
  }

  /** Restores the policies. */
  restore(): void {
    this.#turn += 1;
    if (this.#state !== 'whole') this.#set('whole');
  }

  #set(state: PolicyState): void {
    this.#state = state;
    if (this.#options.shape.hasPolicyDirectory === true) {
      this.#options.directoryChanged(state);
      for (const changed of [...this.#listeners]) changed();
    } else for (const policy of this.#policies()) this.#write(policy, state);
  }

  #policies(): readonly Json[] {
    const { shape, namespace, group } = this.#options;
    return policyObjects(shape, { namespace, name: group });
  }

  #write(policy: Json, state: PolicyState): void {
    const { server, scheduler, client, actor, namespace } = this.#options;
    const { name } = policy['metadata'] as ModelObject['metadata'];
    const reference = { resource: policyResource, namespace, name };
    const spec = (state === 'invalid' ? withError(policy) : policy)['spec'];
    const denied = (): void => {
      // A webhook denies a policy with an error, and other policies only while it cannot answer.
      if (state === 'whole') scheduler.after(repeatMs, () => this.#state === state && this.#write(policy, state));
    };
    if (state === 'removed') {
      server.remove(actor, reference);
      return;
    }
    if (server.get(policyResource, namespace, name) === undefined) client.create(actor, policyResource, { ...policy, spec }, { denied });
    // An earlier creation, with another spec, may still wait for the webhooks.
    client.change(actor, reference, (stored) => (isSame(stored['spec'], spec) ? undefined : { spec }), { denied });
  }
}
