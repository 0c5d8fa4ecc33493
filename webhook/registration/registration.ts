// Checks that API servers still call our webhooks as installed: compares our configurations with this version, and reads namespace labels.
import { getObject } from '../../cluster/request/read.ts';
import { type KubernetesObject, resources } from '../../cluster/request/resource.ts';
import { enforceLabel } from '../../install/object.ts';
import { ownNames, type Registered, registrationProblems } from '../../install/registered.ts';
import type { Member } from '../../install/scope.ts';
import { firstOf } from '../../policies/wording.ts';
import { configurationResources, type WebhookConfigurations } from '../certificates/webhook-configurations.ts';
import type { WebhookEnv } from '../env.ts';

/** A deviation from the installation. It has the fields of `Degradation` in agent/report.ts. */
export interface RegistrationProblem {
  readonly id: string;
  readonly reason: 'invalid' | 'missing';
  /** One sentence with the deviation and its consequence. */
  readonly message: string;
}

interface RegistrationOptions {
  readonly env: Pick<WebhookEnv, 'timers' | 'kubernetes'>;
  readonly namespace: string;
  readonly configurations: Pick<WebhookConfigurations, 'list' | 'isSynced'>;
  /** Returns every protected StatefulSet; undefined while unknown. */
  readonly members: () => readonly Member[] | undefined;
  /** Returns every StatefulSet of a group with the strategy `pinned`; undefined while unknown. */
  readonly pinned: () => readonly Member[] | undefined;
  /** Namespaces to check; default: the namespaces with members. */
  readonly namespaces?: readonly string[] | undefined;
  /** Returns further problems, such as failed writes of this process. */
  readonly others?: () => readonly RegistrationProblem[];
  /** Receives all problems after each check. */
  readonly onCheck: (problems: readonly RegistrationProblem[]) => void;
}

/** Interval of the checks. A change is reported only if two checks in a row find it, because a single check may see a write under way. */
const checkMs = 15_000;
const requestTimeoutMs = 5_000;
/** The maximum number of namespaces per check. The next check continues after the last checked namespace. */
const maxNamespaces = 200;

/**
 * Starts the checks and never throws. Returns a function that stops them. Reports a namespace without the enforcement label only if an
 * earlier check found the label there. Checks the validating configuration only after a check found a configuration of ours or the label.
 */
export function startRegistration(options: RegistrationOptions): () => void {
  const { env, namespaces, configurations, members } = options;
  const own = ownOf(options);
  let hasBeenRegistered = false;
  let before: ReadonlySet<string> = new Set();
  let isStopped = false;
  let cancel = (): void => undefined;
  const labels: OptIns = { optedIn: new Set(), lost: new Set() };
  const { optedIn, lost } = labels;
  let lastReadNamespace = '';

  const readLabels = async (known: readonly Member[]): Promise<void> => {
    const all = [...new Set(namespaces ?? known.map((member) => member.namespace))].sort();
    const next = Math.max(0, all.length <= maxNamespaces ? 0 : all.findIndex((namespace) => namespace > lastReadNamespace));
    for (const namespace of [...all.slice(next), ...all.slice(0, next)].slice(0, maxNamespaces)) {
      lastReadNamespace = namespace;
      const options = { site: 'registration.namespace', timeoutMs: requestTimeoutMs };
      const found = await getObject(env, resources.namespaces, { name: namespace }, options).catch(() => 'unread' as const);
      if (isStopped) return;
      if (found !== 'unread') noteLabel(labels, namespace, found);
    }
  };

  const changed = (known: readonly Member[] | undefined): readonly string[] => {
    if (!configurations.isSynced()) return [];
    const stored = own();
    hasBeenRegistered ||= stored.length > 0;
    const isPinOnly = stored.length === 0 && !hasBeenRegistered && optedIn.size === 0;
    const question = {
      namespace: options.namespace,
      members: known?.filter((member) => optedIn.has(member.namespace)),
      pinned: options.pinned(),
    };
    return registrationProblems(stored, question, { isPinOnly });
  };

  const check = async (): Promise<void> => {
    const known = members();
    await readLabels(known ?? []);
    if (isStopped) return;
    const now = changed(known);
    const lasting = now.filter((problem) => before.has(problem));
    before = new Set(now);
    options.onCheck([...(options.others?.() ?? []), ...changedProblem(lasting), ...[...lost].sort().map(lostProblem)]);
    cancel = env.timers.after(checkMs, () => void check());
  };
  cancel = env.timers.after(checkMs, () => void check());
  return () => {
    isStopped = true;
    cancel();
  };
}

interface OptIns {
  /** The namespaces that had the label in some check and still exist. */
  readonly optedIn: Set<string>;
  /** The namespaces of `optedIn` that no longer have the label. */
  readonly lost: Set<string>;
}

function noteLabel({ optedIn, lost }: OptIns, namespace: string, found: KubernetesObject | undefined): void {
  const isOptedIn = found?.metadata.labels?.[enforceLabel] === 'true';
  const isGone = found === undefined || found.metadata.deletionTimestamp !== undefined;
  if (isOptedIn || isGone) lost.delete(namespace);
  else if (optedIn.has(namespace)) lost.add(namespace);
  if (isOptedIn) optedIn.add(namespace);
  else if (isGone) optedIn.delete(namespace);
}

function ownOf({ namespace, configurations }: RegistrationOptions): () => readonly Registered[] {
  const names = ownNames({ namespace });
  return () =>
    configurations
      .list()
      .filter(({ name }) => names.includes(name))
      .map(({ kind, name, webhooks }) => ({ kind: configurationResources[kind].kind, name, webhooks }));
}

function changedProblem(problems: readonly string[]): readonly RegistrationProblem[] {
  if (problems.length === 0) return [];
  const message = `the webhook configurations differ from the installation (${firstOf(problems, 5, '; ')}): requests may bypass policies. Install again with the flags of the installation: kubectl rollout-group install --policies DIR --apply`;
  return [{ id: 'webhook/configurations', reason: 'invalid', message }];
}

function lostProblem(namespace: string): RegistrationProblem {
  const message = `namespace ${namespace} lost the label ${enforceLabel}=true: policies are no longer enforced there`;
  return { id: `webhook/namespaces/${namespace}`, reason: 'missing', message };
}
