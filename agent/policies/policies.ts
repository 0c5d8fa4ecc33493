// Resolves the active policies for turns and webhooks, from the directory, objects and adopted StatefulSets. A policy that becomes invalid
// keeps its last valid version. A policy that was never valid blocks the groups to which it might apply.

import { isSameJson } from '../../cluster/request/json.ts';
import { ruleCatalog } from '../../engine/rules/catalog.ts';
import type { IntentView, Known } from '../../engine/snapshot.ts';
import type { GroupDefinition, PolicyDefinition } from '../../policies/definition.ts';
import { messageOf } from '../../policies/error-message.ts';
import { blockAllGroups, type LivePolicies, resolveLive } from '../../policies/live/sources.ts';
import type { PolicyFile } from '../../policies/load.ts';
import type { Kind } from '../../policies/schema/kinds.ts';
import type { AgentConfig, PolicySourceName } from '../config.ts';
import type { AgentEnv } from '../env.ts';
import type { Degradation } from '../report.ts';
import type { Caches } from '../watched/caches.ts';

type KubernetesObject = ReturnType<Caches['policyObjects']>['objects'][number];

export interface ActivePolicies extends Pick<LivePolicies, 'groups' | 'policies' | 'exceptions' | 'metricSources' | 'findings' | 'digest'> {
  readonly intents: Known<readonly IntentView[]>;
  /** The sources with an unusable part, and the reason. Such a source may define groups that are not in `groups`. */
  readonly unsure: Readonly<Partial<Record<PolicySourceName, string>>>;
}

interface PolicySourceOptions {
  readonly env: AgentEnv;
  readonly config: Pick<AgentConfig, 'policySources' | 'agentNamespace' | 'namespaces' | 'areIntentsStamped'>;
  readonly caches: Pick<Caches, 'manifests' | 'policyObjects' | 'isSettled'>;
  /** Called after a change of the inputs, even if the policies are still equal. */
  readonly onChange: (now: ActivePolicies) => void;
  /** Called when a source may have become readable or unreadable. */
  readonly onState: () => void;
}

const engineRules: readonly string[] = ruleCatalog.map(({ id }) => id);

/** The pause before an unreadable directory is read again. */
const rereadAfterMs = 10_000;

/** Each resolution is followed by a pause this many times as long, so that many changes in a row do not delay renewals of the Lease. */
const restFactor = 9;

/** Keeps the active policies. The constructor reads the directory, each change of a file reads it again, and `refresh` resolves the policies. */
export class PolicySource {
  readonly #options: PolicySourceOptions;
  readonly #directory: ReturnType<typeof followDirectory>;
  readonly #lastGood = new Map<string, KubernetesObject>();
  #goodFiles: readonly PolicyFile[] | undefined;
  #current: ActivePolicies | undefined;
  #inputs: unknown;
  /** The reason why the policies cannot be resolved. */
  #defect: string | undefined;
  #isRefreshDue = false;
  #isStopped = false;
  /** The earliest time of the next resolution (monotonic). */
  #restsUntilMs = 0;
  #cancelRest = (): void => undefined;

  constructor(options: PolicySourceOptions) {
    this.#options = options;
    this.#directory = followDirectory(this.#options.env, this.#options.config.policySources.includes('directory'), () => {
      this.#options.onState();
      this.refresh();
    });
  }

  /** Resolves the policies again after a change of their sources. Several calls at the same time cause one resolution. */
  refresh(): void {
    if (this.#isRefreshDue || this.#isStopped) return;
    this.#isRefreshDue = true;
    const restMs = this.#restsUntilMs - this.#options.env.clock.monotonicMs();
    if (restMs > 0) this.#cancelRest = this.#options.env.timers.after(restMs, () => this.#refreshNow());
    else void Promise.resolve().then(() => this.#refreshNow());
  }

  /** Returns the active policies; undefined until every source was read once. */
  current(): ActivePolicies | undefined {
    return this.#current;
  }

  /** Returns the active policies. Carries out a due refresh first, because a policy that just changed may deny the admission request. */
  upToDate(): ActivePolicies | undefined {
    if (this.#isRefreshDue) {
      this.#cancelRest();
      this.#refreshNow();
    }
    return this.#current;
  }

  degradation(): Degradation | undefined {
    return this.#defect === undefined ? this.#directory.degradation() : degradationOf(this.#defect, this.#current !== undefined);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelRest();
    this.#directory.stop();
  }

  #refreshNow(): void {
    // `upToDate` has already carried out this refresh.
    if (!this.#isRefreshDue) return;
    this.#isRefreshDue = false;
    if (this.#isStopped) return;
    const beganMs = this.#options.env.clock.monotonicMs();
    const resolved = this.#resolveSafely();
    const endedMs = this.#options.env.clock.monotonicMs();
    this.#restsUntilMs = endedMs + restFactor * (endedMs - beganMs);
    if (resolved === undefined || resolved === this.#current) return;
    this.#current = resolved;
    this.#options.onChange(resolved);
  }

  /** Resolves policies. A defect in the resolver must not end the process. */
  #resolveSafely(): ActivePolicies | undefined {
    let message: string | undefined;
    let resolved: ActivePolicies | undefined;
    try {
      resolved = this.#resolve();
    } catch (error) {
      message = messageOf(error);
    }
    if (message !== this.#defect) {
      this.#defect = message;
      if (message !== undefined) this.#options.env.log.error('policies cannot be resolved', { problem: message });
      this.#options.onState();
    }
    return resolved;
  }

  #resolve(): ActivePolicies | undefined {
    const files = this.#directory.files();
    if (files === undefined || !this.#options.caches.isSettled()) return undefined;
    // While StatefulSets cannot be read, the last known ones are used: groups must not vanish, and changes in other sources must count.
    const statefulSets = this.#options.caches.manifests();
    const { objects, unread } = this.#options.caches.policyObjects();
    // A broken or restored watch, or a changed status, may cause a refresh although the inputs are equal.
    const inputs = { files, statefulSets, objects, unread };
    if (this.#current !== undefined && isSameJson(inputs, this.#inputs)) return this.#current;
    const { policySources: order, agentNamespace, namespaces, areIntentsStamped = false } = this.#options.config;
    const watched = namespaces === undefined ? {} : { namespaces };
    const common = { statefulSets, order, agentNamespace, areIntentsStamped, ...watched, engineRules };
    const read = resolveLive({ ...common, directory: files, objects });
    if (read.isDirectorySound) this.#goodFiles = files;
    const broken = brokenObjects(objects, read);
    keepGood(this.#lastGood, objects, broken);
    const kept = objects.map((object) => (broken.has(keyOf(object)) ? (this.#lastGood.get(keyOf(object)) ?? object) : object));
    const isAsRead = broken.size === 0 && (read.isDirectorySound || this.#goodFiles === undefined);
    const used = isAsRead ? read : resolveLive({ ...common, directory: this.#goodFiles ?? files, objects: kept });
    const blocking = policiesForUnread(used.groups, unread);
    this.#inputs = inputs;
    return {
      groups: used.groups.map((group) => withGeneration(group, used.origin(group), kept)),
      policies: [...used.policies, ...blocking],
      exceptions: used.exceptions,
      intents: unread.includes('RolloutIntent') ? { unknown: 'RolloutIntent objects cannot be read' } : used.intents,
      metricSources: used.metricSources,
      // Findings describe the current state, not the last valid one.
      findings: read.findings,
      digest: blocking.length === 0 ? used.digest : `${used.digest}-held`,
      unsure: { ...unsureDirectory(files, read), ...unsureObjects(broken) },
    };
  }
}

/** Returns the group with the generation of its object. The digest omits it: a new generation can have the same meaning. */
function withGeneration(group: GroupDefinition, origin: string | undefined, objects: readonly KubernetesObject[]): GroupDefinition {
  const isSource = (object: KubernetesObject): boolean => keyOf(object) === `RolloutGroup ${group.namespace}/${group.name}`;
  const generation = origin === 'objects' ? objects.find(isSource)?.metadata.generation : undefined;
  return generation === undefined ? group : { ...group, generation };
}

function degradationOf(defect: string, hasPolicies: boolean): Degradation {
  const consequence = hasPolicies ? 'the last valid state stays in force' : 'no action is taken';
  return { id: 'policies', reason: 'invalid', message: `policies cannot be resolved (${defect}): ${consequence}` };
}

/** Marks the directory as unsure if it has errors or no file. An empty directory may not be mounted or fetched yet. */
function unsureDirectory(files: readonly PolicyFile[], { isDirectorySound }: LivePolicies): ActivePolicies['unsure'] {
  if (files.length === 0) return { directory: 'the policy directory is empty' };
  return isDirectorySound ? {} : { directory: 'the policy directory has errors' };
}

function unsureObjects(broken: ReadonlyMap<string, unknown>): ActivePolicies['unsure'] {
  const group = [...broken.keys()].find((key) => key.startsWith('RolloutGroup '));
  return group === undefined ? {} : { objects: `${group} has errors` };
}

function brokenObjects(objects: readonly KubernetesObject[], read: LivePolicies): ReadonlyMap<string, KubernetesObject> {
  const defined = new Set([
    ...read.groups.map(({ namespace, name }) => `RolloutGroup ${namespace}/${name}`),
    ...read.policies.map(({ namespace, name }) => `RolloutPolicy ${namespace}/${name}`),
    ...read.exceptions.map(({ namespace, name }) => `RolloutException ${namespace}/${name}`),
    ...read.intents.map(({ namespace, name }) => `RolloutIntent ${namespace}/${name}`),
  ]);
  const wrong = new Set(read.findings.filter(({ file, severity }) => file === '' && severity === 'error').map(({ object }) => object));
  return new Map(
    objects.map((object): [string, KubernetesObject] => [keyOf(object), object]).filter(([key]) => wrong.has(key) && !defined.has(key)),
  );
}

function keepGood(
  lastGood: Map<string, KubernetesObject>,
  objects: readonly KubernetesObject[],
  broken: ReadonlyMap<string, unknown>,
): void {
  const present = new Set(objects.map(keyOf));
  for (const key of lastGood.keys()) if (!present.has(key)) lastGood.delete(key);
  for (const object of objects) if (!broken.has(keyOf(object))) lastGood.set(keyOf(object), object);
}

function keyOf({ kind = '', metadata }: KubernetesObject): string {
  return `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
}

/**
 * Returns policies that block all groups while RolloutGroup or RolloutPolicy objects cannot be read. Unread exceptions need no such policy,
 * because without them more is blocked.
 */
function policiesForUnread(groups: readonly GroupDefinition[], unread: readonly Kind[]): readonly PolicyDefinition[] {
  const kinds = unread.filter((kind) => kind === 'RolloutGroup' || kind === 'RolloutPolicy');
  return kinds.length === 0 ? [] : blockAllGroups(groups, 'objects', `${kinds.join(' and ')} objects cannot be read`);
}

/**
 * Follows the directory and keeps the files of the last successful read. `files` returns undefined before the first successful read, and an
 * empty list if the agent uses no directory.
 */
function followDirectory({ policyDirectory, timers, log }: AgentEnv, isUsed: boolean, onChange: () => void) {
  if (policyDirectory === undefined || !isUsed) return { files: () => [], degradation: () => undefined, stop: () => undefined };
  let files: readonly PolicyFile[] | undefined;
  let problem: string | undefined;
  let reading = 0;
  let cancelRetry = (): void => undefined;

  const read = async (): Promise<void> => {
    cancelRetry();
    reading += 1;
    const attempt = reading;
    try {
      const found = await policyDirectory.read();
      if (attempt !== reading) return;
      files = found;
      problem = undefined;
    } catch (error) {
      if (attempt !== reading) return;
      problem = messageOf(error);
      log.error('policy directory cannot be read', { problem });
      cancelRetry = timers.after(rereadAfterMs, () => void read());
    }
    onChange();
  };
  const unwatch = policyDirectory.watch(() => void read());
  void read();
  return {
    files: () => files,
    degradation: (): Degradation | undefined => {
      if (problem === undefined) return undefined;
      const consequence = files === undefined ? 'no action is taken' : 'the last state stays in force';
      const message = `the policy directory cannot be read (${problem}): ${consequence}`;
      return { id: 'policies/directory', reason: 'unreachable', message };
    },
    stop: () => {
      reading += 1;
      unwatch();
      cancelRetry();
    },
  };
}
